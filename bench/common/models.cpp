// The classifiers of the training rows, and their steps.
#include <memory>

#include "bench/common/models.h"

namespace bench {
namespace {

struct Mlp {
  nn::Linear first, second, last;
  Mlp(const std::vector<int64_t>& sizes, Device device)
      : first(sizes[1], sizes[2], {.device = device}),
        second(sizes[2], sizes[2], {.device = device}),
        last(sizes[2], sizes[3], {.device = device}) {}
  Tensor operator()(const Tensor& x) const { return last(relu(second(relu(first(x))))); }
  FORNAX_FIELDS(first, second, last)
};

struct Cnn {
  nn::Conv2d first, second;
  nn::Linear hidden, output;
  Cnn(const std::vector<int64_t>& s, Device device)
      : first(1, s[2], 3, {.padding = 1, .device = device}),
        second(s[2], s[3], 3, {.padding = 1, .device = device}),
        hidden(s[3] * (s[1] / 4) * (s[1] / 4), s[4], {.device = device}),
        output(s[4], s[5], {.device = device}) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor half = max_pool2d(relu(first(x)), 2);
    return output(relu(hidden(max_pool2d(relu(second(half)), 2).flatten(1))));
  }
  FORNAX_FIELDS(first, second, hidden, output)
};

// A classifier and Adam, on one batch.
template <class Net>
Call train(Net net, Tensor x, Tensor targets, Device device) {
  struct Training {
    Net net;
    optim::Adam adam{{.learning_rate = 1e-3}};
    Tensor x, targets;
  };
  const auto training = std::make_shared<Training>(
      Training{.net = std::move(net), .x = std::move(x), .targets = std::move(targets)});
  start(training->net, device);
  return [training](int) {
    const Tensor loss = cross_entropy(training->net(training->x), training->targets);
    loss.backward();
    training->adam.step(training->net);
    return std::vector<Tensor>{loss.detach()};
  };
}

}  // namespace

Call train_mlp(const std::vector<int64_t>& s, Device device) {
  return train(Mlp(s, device.autodiff()), values(0, {s[0], s[1]}, DType::f32, device),
               classes(64, {s[0]}, s[3], device), device);
}

Call train_cnn(const std::vector<int64_t>& s, Device device) {
  return train(Cnn(s, device.autodiff()), values(0, {s[0], 1, s[1], s[1]}, DType::f32, device),
               classes(64, {s[0]}, s[5], device), device);
}

}  // namespace bench
