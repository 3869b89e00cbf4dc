// Convolutions: one node each.  A line of n elements is a picture of height 1.
#include <fornax/ops.h>

#include <algorithm>

#include "tensor/compose.h"

namespace fornax {
namespace {

void check_rank(const Tensor& x, int rank, const char* what) {
  if (x.rank() != rank) {
    fail(ErrorKind::shape, "{}: {} must have {} axes, got {}", Call::name_or("conv2d"), what, rank,
         text_of(node_of(x).type));
  }
}

// y + bias, one number per channel.
Tensor with_bias(const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  if (bias.shape() != Shape{y.shape(1)}) {
    fail(ErrorKind::shape, "{}: the bias must be [{}], one number per output channel, got {}",
         Call::name_or("conv2d"), y.shape(1), text_of(node_of(bias).type));
  }
  return y + reshaped(addend(Op::convolve, y, bias), {y.shape(1), 1, 1});
}

int64_t after_or(int64_t after, int64_t otherwise) { return after < 0 ? otherwise : after; }

Window2d window_of(const Tensor& weight, const ConvOptions& o) {
  Window2d w;
  const Pair after{after_or(o.padding_after.height, o.padding.height),
                   after_or(o.padding_after.width, o.padding.width)};
  w.size[0] = weight.shape(2), w.size[1] = weight.shape(3);
  w.stride[0] = o.stride.height, w.stride[1] = o.stride.width;
  w.before[0] = o.padding.height, w.before[1] = o.padding.width;
  w.after[0] = after.height, w.after[1] = after.width;
  w.dilation[0] = o.dilation.height, w.dilation[1] = o.dilation.width;
  w.groups = o.groups;
  for (int i = 0; i < 2; i++) {
    check_numbers({w.size[i], w.stride[i], w.before[i], w.after[i], w.dilation[i]}, kMostOfWindow);
  }
  return w;
}

Tensor convolve(const Tensor& x, const Tensor& weight, const ConvOptions& o) {
  const DType dtype = taken_dtype(Op::convolve, promote(x.dtype(), weight.dtype()));
  const Tensor picture = converted(x, dtype), kernel = converted(weight, dtype);
  return record(Op::convolve, {&picture, &kernel}, window_of(weight, o).pack());
}

void check_transpose(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& o) {
  if (x.shape(1) != weight.shape(0) || o.groups < 1 || x.shape(1) % o.groups != 0) {
    fail(ErrorKind::shape,
         "{}: x is {} and the weight {}; x's channels ({}) must equal the weight's first size ({}) "
         "and be a multiple of the groups ({})",
         Call::name_or("conv_transpose2d"), text_of(node_of(x).type), text_of(node_of(weight).type),
         x.shape(1), weight.shape(0), o.groups);
  }
  const auto check = [](int64_t extra, int64_t stride, int64_t dilation) {
    if (extra < 0 || extra >= std::max(stride, dilation)) {
      fail(ErrorKind::value,
           "{}: output padding {} must be at least 0 and below the stride {} or the dilation {}",
           Call::name_or("conv_transpose2d"), extra, stride, dilation);
    }
  };
  check(o.output_padding.height, o.stride.height, o.dilation.height);
  check(o.output_padding.width, o.stride.width, o.dilation.width);
}

// Output padding shortens the padding at the end.  What it asks for beyond that lies behind every
// window and is 0: those columns are appended.
Tensor transpose(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& o) {
  check_transpose(x, weight, o);
  Window2d w = window_of(
      weight,
      {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups});
  const int64_t extra[2] = {o.output_padding.height, o.output_padding.width};
  Attributes zeros(12, 0);
  for (int i = 0; i < 2; i++) {
    const int64_t span = w.dilation[i] * (w.size[i] - 1) + 1;
    zeros[size_t(6 + 3 * i + 1)] = std::max<int64_t>(extra[i] - w.after[i], 0);
    w.after[i] = std::max<int64_t>(w.after[i] - extra[i], 0);
    w.extent[i] = (x.shape(2 + i) - 1) * w.stride[i] + span - w.before[i] - w.after[i];
    if (w.extent[i] < 1) {
      fail(ErrorKind::shape, "{}: padding {} leaves nothing of {} with a kernel of {}",
           Call::name_or("conv_transpose2d"), w.before[i], text_of(node_of(x).type), w.size[i]);
    }
  }
  const DType dtype = taken_dtype(Op::convolve_input, promote(x.dtype(), weight.dtype()));
  const Tensor picture = converted(x, dtype), kernel = converted(weight, dtype);
  const Tensor y = record(Op::convolve_input, {&picture, &kernel}, w.pack());
  return zeros == Attributes(12, 0) ? y : padded(y, zeros, 0);
}

Tensor as_picture(const Tensor& line) {
  return reshaped(line, {line.shape(0), line.shape(1), 1, line.shape(2)});
}
Tensor as_line(const Tensor& picture) {
  return reshaped(picture, {picture.shape(0), picture.shape(1), picture.shape(3)});
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions o, Site site) {
  Call call("conv2d", site);
  check_rank(x, 4, "x");
  check_rank(weight, 4, "the weight");
  return with_bias(convolve(x, weight, o), bias);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions o, Site site) {
  Call call("conv1d", site);
  check_rank(x, 3, "x");
  check_rank(weight, 3, "the weight");
  o.stride.height = o.dilation.height = 1;
  o.padding.height = o.padding_after.height = 0;
  return as_line(with_bias(convolve(as_picture(x), as_picture(weight), o), bias));
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        ConvTransposeOptions o, Site site) {
  Call call("conv_transpose2d", site);
  check_rank(x, 4, "x");
  check_rank(weight, 4, "the weight");
  return with_bias(transpose(x, weight, o), bias);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        ConvTransposeOptions o, Site site) {
  Call call("conv_transpose1d", site);
  check_rank(x, 3, "x");
  check_rank(weight, 3, "the weight");
  o.stride.height = o.dilation.height = 1;
  o.padding.height = o.output_padding.height = 0;
  return as_line(with_bias(transpose(as_picture(x), as_picture(weight), o), bias));
}

}  // namespace fornax
