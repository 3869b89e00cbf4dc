// The program of README.md: a network of two layers that learns to tell clothes apart.
#include <fornax/fornax.h>

#include <cstdio>

using namespace fornax;

struct Net {
  nn::Linear hidden, output;
  nn::Dropout dropout;

  explicit Net(Device device)
      : hidden(784, 128, {.device = device}),
        output(128, 10, {.device = device}),
        dropout(0.1, device) {}

  Tensor operator()(const Tensor& x) const { return output(dropout(relu(hidden(x.flatten(1))))); }
  FORNAX_FIELDS(hidden, output, dropout)  // names, counts, saves, moves and trains them
};

int main() {
  const Device device;  // the best one here, or what FORNAX_DEVICE says
  device.seed(0);
  Net net(device.autodiff());
  optim::Adam adam({.learning_rate = 1e-3});
  const data::Loader loader(data::fashion_mnist("train"),
                            {.batch_size = 128, .shuffle = true, .device = device});

  for (int64_t epoch = 0; epoch < 2; epoch++) {
    train::Average loss;
    for (const data::Batch& batch : loader.epoch(epoch)) {
      const Tensor cost = cross_entropy(net(batch.inputs), batch.targets);
      cost.backward();
      adam.step(net);
      loss.add(cost);
    }
    std::printf("epoch %ld: loss %.3f\n", long(epoch), loss.value());
  }
  io::save(net, "net.safetensors");  // PyTorch's safetensors library reads it
}
