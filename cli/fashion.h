// The model of the demo: a small convolutional network for 28x28 pictures in ten classes.
#pragma once
#include <fornax/nn.h>

namespace fashion {

struct Net {
  fornax::nn::Conv2d conv1, conv2;
  fornax::nn::Linear hidden, output;

  explicit Net(fornax::Device device = {})
      : conv1(1, 16, 3, {.padding = 1, .device = device}),
        conv2(16, 32, 3, {.padding = 1, .device = device}),
        hidden(32 * 7 * 7, 128, {.device = device}),
        output(128, 10, {.device = device}) {}

  // x [n, 1, 28, 28] gives [n, 10].
  fornax::Tensor operator()(const fornax::Tensor& x) const {
    const fornax::Tensor half = max_pool2d(relu(conv1(x)), 2);
    const fornax::Tensor quarter = max_pool2d(relu(conv2(half)), 2);
    return output(relu(hidden(quarter.flatten(1))));
  }
  FORNAX_FIELDS(conv1, conv2, hidden, output)
};

}  // namespace fashion
