// Lesson 5: a training loop is your own loop.
#include <fornax/fornax.h>

#include "claim.h"

using namespace fornax;

int main() {
  const Device device;
  device.seed(1);  // the same numbers on every run, and on every kind of device

  // A module made on an autodiff device tracks its parameters.
  nn::Sequential net(nn::Linear(1, 16, {.device = device.autodiff()}), nn::Tanh(),
                     nn::Linear(16, 1, {.device = device.autodiff()}));
  optim::Adam adam({.learning_rate = 0.02});
  const optim::Cosine rate{.peak = 0.02, .total = 200};

  const Tensor x = linspace(-3, 3, 64).reshape({64, 1});
  const Tensor y = sin(x);
  train::Average early, late;
  for (int64_t step = 0; step < 200; step++) {
    const Tensor loss = mse_loss(net(x), y);
    loss.backward();
    optim::clip_gradients(net, 1.0);
    adam.options.learning_rate = rate(step);
    adam.step(net);                        // new parameters without gradients: nothing to zero
    (step < 10 ? early : late).add(loss);  // averages wait for nothing until they are read
  }
  claim(late.value() < early.value() / 3);

  // Products of 16-bit numbers, while parameters, sums and losses stay f32.
  {
    const Autocast products(DType::bf16);
    const Tensor loss = mse_loss(net(x), y);
    claim(net(x).dtype() == DType::bf16 && loss.dtype() == DType::f32);
    loss.backward();
    adam.step(net);
  }

  // For use: valid() untracks and switches modes.
  const auto trained = net.valid();
  claim((trained(x) - y).abs().mean().item<float>() < 0.2f);
}
