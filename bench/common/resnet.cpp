// ResNet-18: what it says of pictures, with the norms' running statistics, and its gradients in
// training.
#include <memory>

#include "bench/common/models.h"

namespace bench {
namespace {

// A convolution and its norm.
struct Unit {
  nn::Conv2d conv;
  nn::BatchNorm norm;
  Unit(int64_t in, int64_t out, int64_t kernel, int64_t stride, Device device)
      : conv(in, out, kernel,
             {.stride = stride, .padding = kernel / 2, .bias = false, .device = device}),
        norm(out, {.device = device}) {}
  Tensor operator()(const Tensor& x) const { return norm(conv(x)); }
  FORNAX_FIELDS(conv, norm)
};

struct Block {
  Unit first, second;
  std::optional<Unit> shortcut;
  Block(int64_t in, int64_t out, int64_t stride, Device device)
      : first(in, out, 3, stride, device), second(out, out, 3, 1, device) {
    if (in != out) shortcut.emplace(in, out, 1, stride, device);
  }
  Tensor operator()(const Tensor& x) const {
    return relu(second(relu(first(x))) + (shortcut ? (*shortcut)(x) : x));
  }
  FORNAX_FIELDS(first, second, shortcut)
};

constexpr int64_t kClasses = 1000;

struct ResNet18 {
  Unit stem;
  std::vector<Block> blocks;
  nn::Linear output;
  explicit ResNet18(Device device)
      : stem(3, 64, 7, 2, device), output(512, kClasses, {.device = device}) {
    int64_t in = 64;
    for (const int64_t out : {64, 128, 256, 512}) {
      blocks.emplace_back(in, out, in == out ? 1 : 2, device);
      blocks.emplace_back(out, out, 1, device);
      in = out;
    }
  }
  Tensor operator()(const Tensor& pictures) const {
    Tensor x = max_pool2d(relu(stem(pictures)), 3, {.stride = 2, .padding = 1});
    for (const Block& block : blocks) x = block(x);
    return output(x.mean({2, 3}));
  }
  FORNAX_FIELDS(stem, blocks, output)
};

}  // namespace

Call resnet18(const std::vector<int64_t>& shape, bool gradients, Device device) {
  const auto net = std::make_shared<ResNet18>(gradients ? device.autodiff() : device);
  start(*net, device);
  const Tensor x = values(0, {shape[0], 3, shape[1], shape[1]}, DType::f32, device);
  if (!gradients) {
    const auto still = std::make_shared<ResNet18>(net->valid());
    return [still, x](int) { return std::vector<Tensor>{(*still)(x)}; };
  }
  const Tensor targets = classes(64, {shape[0]}, kClasses, device);
  return [net, x, targets](int) {
    const Tensor loss = cross_entropy((*net)(x), targets);
    std::vector<Tensor> results{loss.detach()};
    for (Tensor& gradient : grad({loss}, parameters(*net))) results.push_back(std::move(gradient));
    return results;
  };
}

}  // namespace bench
