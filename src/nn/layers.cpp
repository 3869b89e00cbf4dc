// Layers whose construction or call takes more than a line.
#include <fornax/grad.h>
#include <fornax/nn.h>

#include "base/error.h"

namespace fornax::nn {
namespace {

// A parameter, tracked where it is made on an autodiff device.  The layer's Call says where.
Tensor parameter(const Initializer& start, const Shape& shape, Fan fan, Options o) {
  const Tensor value = start(shape, fan, o);
  return o.device.is_autodiff() ? value.require_grad() : value;
}

void check_sizes(const char* layer, const Shape& sizes) {
  for (const int64_t size : sizes) {
    if (size < 1) {
      fail(ErrorKind::shape, "{}: a size is {}; sizes must be at least 1", layer, size);
    }
  }
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, LinearOptions o, Site site) {
  const Call call("linear", site);
  check_sizes("linear", {in, out});
  const Options options{o.dtype, o.device};
  weight = parameter(o.weight, {in, out}, {in, out}, options);
  if (o.bias) bias = parameter(o.bias_start, {out}, {in, out}, options);
}

Conv2d::Conv2d(int64_t in, int64_t out, Pair kernel, Conv2dOptions o, Site site)
    : options{
          .stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups} {
  const Call call("conv2d", site);
  check_sizes("conv2d", {in, out, kernel.height, kernel.width, o.groups});
  if (in % o.groups != 0 || out % o.groups != 0) {
    fail(ErrorKind::shape, "conv2d: {} groups do not divide {} channels in and {} out", o.groups,
         in, out);
  }
  const int64_t window = kernel.height * kernel.width;
  const Fan fan{in / o.groups * window, out / o.groups * window};
  const Options options_{o.dtype, o.device};
  weight = parameter(o.weight, {out, in / o.groups, kernel.height, kernel.width}, fan, options_);
  if (o.bias) bias = parameter(o.bias_start, {out}, fan, options_);
}

Embedding::Embedding(int64_t count, int64_t width, EmbeddingOptions o, Site site) {
  const Call call("embedding", site);
  check_sizes("embedding", {count, width});
  weight = parameter(o.weight, {count, width}, {count, width}, {o.dtype, o.device});
}

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions o, Site site)
    : mode(o.device), epsilon(o.epsilon), momentum(o.momentum) {
  const Call call("batch_norm", site);
  check_sizes("batch_norm", {channels});
  const Options options{o.dtype, o.device};
  if (o.affine) {
    weight = parameter(constant(1), {channels}, {}, options);
    bias = parameter(constant(0), {channels}, {}, options);
  }
  running_mean.value = zeros({channels}, options);
  running_var.value = ones({channels}, options);
}

Tensor BatchNorm::operator()(const Tensor& x, Site site) const {
  const Call call("batch_norm", site);
  const NormOptions options{.weight = weight, .bias = bias, .epsilon = epsilon};
  if (!mode.training) {
    return batch_norm(x, running_mean.value, running_var.value, options);
  }
  const int64_t channels = running_mean.value.element_count();
  if (x.rank() < 2 || x.shape(1) != channels) {
    fail(ErrorKind::shape, "batch_norm: x is {}; axis 1 must have the layer's {} channels",
         text_of(x.shape()), channels);
  }
  const int64_t count = x.element_count() / channels;
  if (count < 2) {
    fail(ErrorKind::shape,
         "batch_norm: x is {}; training needs more than one value per channel, so use a larger "
         "batch or valid()",
         text_of(x.shape()));
  }
  const NormedBatch normed = batch_norm(x, options);
  const NoGrad no_grad;
  const double unbiased = double(count) / double(count - 1);
  const auto blend = [&](const Tensor& old, const Tensor& fresh, double scale) {
    return (old * (1 - momentum) + fresh * (momentum * scale)).cast(old.dtype());
  };
  running_mean.value = blend(running_mean.value, normed.mean, 1);
  running_var.value = blend(running_var.value, normed.variance, unbiased);
  return normed.y;
}

LayerNorm::LayerNorm(const Shape& shape, LayerNormOptions o, Site site)
    : axes(shape.rank()), epsilon(o.epsilon) {
  const Call call("layer_norm", site);
  check_sizes("layer_norm", shape);
  const Options options{o.dtype, o.device};
  if (o.affine) {
    weight = parameter(constant(1), shape, {}, options);
    bias = parameter(constant(0), shape, {}, options);
  }
}

RmsNorm::RmsNorm(int64_t size, RmsNormOptions o, Site site) : epsilon(o.epsilon) {
  const Call call("rms_norm", site);
  check_sizes("rms_norm", {size});
  weight = parameter(constant(1), {size}, {}, {o.dtype, o.device});
}

Dropout::Dropout(double probability, Device device, Site site)
    : probability(probability), mode(device) {
  const Call call("dropout", site);
  if (!(probability >= 0 && probability <= 1)) {
    fail(ErrorKind::value, "dropout: the probability is {}; it must be within [0, 1]", probability);
  }
}

}  // namespace fornax::nn
