// Type rules of reductions, scans, products and convolutions.
#include <algorithm>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/rules.h"

namespace fornax {
namespace {

const char* name(const Signature& s) { return Call::name_or(info(s.op).name.data()); }

void check_axis(const Signature& s, int64_t axis) {
  const int rank = s.input(0).shape.rank();
  if (axis < 0 || axis >= rank) {
    fail(ErrorKind::index, "{}: axis {} is outside {}, which has {} axes", name(s), axis,
         text_of(s.input(0)), rank);
  }
}

Type reduced(const Signature& s, DType dtype, bool has_identity) {
  Type result{dtype, s.input(0).shape};
  for (int64_t axis : axes_of(s.attributes)) {
    check_axis(s, axis);
    if (!has_identity && result.shape[int(axis)] == 0) {
      fail(ErrorKind::shape, "{}: axis {} of {} has no elements, and {} of nothing is undefined",
           name(s), axis, text_of(s.input(0)), info(s.op).name);
    }
    result.shape[int(axis)] = 1;
  }
  return result;
}

Type argument(const Signature& s) {
  if (s.attributes.size() != 1) fail(ErrorKind::value, "{}: takes one axis", name(s));
  return reduced(s, DType::i64, false);
}

Type scanned(const Signature& s, DType dtype) {
  check_axis(s, axis_of(s.attributes));
  return {dtype, s.input(0).shape};
}

void check_numbers(const Signature& s) {
  for (int i = 0; i < s.input_count; i++) {
    if (s.input(i).dtype != s.input(0).dtype || is_boolean(s.input(i).dtype)) {
      fail(ErrorKind::dtype, "{}: operands must be numbers of one dtype, got {} and {}", name(s),
           text_of(s.input(0)), text_of(s.input(i)));
    }
  }
}

void check_pictures(const Signature& s) {
  check_numbers(s);
  for (int i = 0; i < s.input_count; i++) {
    if (s.input(i).shape.rank() != 4) {
      fail(ErrorKind::shape, "{}: operands must have 4 axes, got {}", name(s), text_of(s.input(i)));
    }
  }
}

void check_window(const Signature& s, const Window2d& w) {
  for (int i = 0; i < 2; i++) {
    if (w.size[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.before[i] < 0 ||
        w.after[i] < 0) {
      fail(ErrorKind::value,
           "{}: kernel {}, stride {}, dilation {} must be at least 1 and padding {} at least 0",
           name(s), w.size[i], w.stride[i], w.dilation[i], std::min(w.before[i], w.after[i]));
    }
  }
  if (w.groups < 1)
    fail(ErrorKind::value, "{}: groups must be at least 1, got {}", name(s), w.groups);
}

// Channel rule shared by the three convolutions: x has `channels`, weight is [o, channels/groups,
// ..].
void check_channels(const Signature& s, int64_t channels, int64_t outputs, int64_t per_group,
                    int64_t groups) {
  if (channels != per_group * groups || outputs % groups != 0) {
    fail(
        ErrorKind::shape,
        "{}: {} channels in {} groups want a weight with {} channels and a multiple of {} outputs, "
        "got {} and {}",
        name(s), channels, groups, channels / groups, groups, per_group, outputs);
  }
}

void check_kernel(const Signature& s, const Window2d& w, const Shape& weight) {
  if (weight[2] != w.size[0] || weight[3] != w.size[1]) {
    fail(ErrorKind::shape, "{}: a weight of {} x {} meets a kernel of {} x {}", name(s), weight[2],
         weight[3], w.size[0], w.size[1]);
  }
}

// Checks that axes of these lengths have a window for each element of dy, input `i`.  They may
// have more: a transposed convolution with output padding leaves some unread.
void check_windows(const Signature& s, const Window2d& w, int i, int64_t height, int64_t width) {
  const Shape& dy = s.input(i).shape;
  for (int axis = 0; axis < 2; axis++) {
    const int64_t count = w.count(axis, axis == 0 ? height : width);
    if (dy[2 + axis] > count) {
      fail(ErrorKind::shape, "{}: {} windows fit axis {}, dy has {}", name(s), count, 2 + axis,
           dy[2 + axis]);
    }
  }
}

int64_t checked_count(const Signature& s, const Window2d& w, int axis, int64_t length) {
  const int64_t count = w.count(axis, length);
  if (count < 1) {
    fail(ErrorKind::shape, "{}: kernel {} with dilation {} does not fit {} elements padded by {}",
         name(s), w.size[axis], w.dilation[axis], length, w.before[axis] + w.after[axis]);
  }
  return count;
}

}  // namespace

DType widened(DType dtype) {
  switch (info(dtype).kind) {
    case Kind::floating:
      return dtype;
    case Kind::unsigned_integer:
      return DType::u64;
    default:
      return DType::i64;
  }
}

Type type_sum(const Signature& s) { return reduced(s, widened(s.input(0).dtype), true); }
Type type_prod(const Signature& s) { return reduced(s, widened(s.input(0).dtype), true); }
Type type_max(const Signature& s) { return reduced(s, s.input(0).dtype, false); }
Type type_min(const Signature& s) { return reduced(s, s.input(0).dtype, false); }
Type type_any(const Signature& s) { return reduced(s, DType::bool_, true); }
Type type_all(const Signature& s) { return reduced(s, DType::bool_, true); }
Type type_argmax(const Signature& s) { return argument(s); }
Type type_argmin(const Signature& s) { return argument(s); }
Type type_cumsum(const Signature& s) { return scanned(s, widened(s.input(0).dtype)); }
Type type_cumprod(const Signature& s) { return scanned(s, widened(s.input(0).dtype)); }
Type type_cummax(const Signature& s) { return scanned(s, s.input(0).dtype); }
Type type_cummin(const Signature& s) { return scanned(s, s.input(0).dtype); }
Type type_argsort(const Signature& s) { return scanned(s, DType::i64); }

Type type_matmul(const Signature& s) {
  check_numbers(s);
  const Type &a = s.input(0), &b = s.input(1);
  const int rank = a.shape.rank();
  if (rank < 2 || b.shape.rank() != rank) {
    fail(ErrorKind::shape, "{}: operands must have the same number of axes, at least 2: {} and {}",
         name(s), text_of(a), text_of(b));
  }
  if (a.shape[rank - 1] != b.shape[rank - 2]) {
    fail(ErrorKind::shape,
         "{}: inner sizes differ: a is {}, b is {}; a's last ({}) must equal b's second to last "
         "({})",
         name(s), text_of(a), text_of(b), a.shape[rank - 1], b.shape[rank - 2]);
  }
  for (int i = 0; i < rank - 2; i++) {
    if (a.shape[i] != b.shape[i]) {
      fail(ErrorKind::shape, "{}: leading axes differ: {} and {}", name(s), text_of(a), text_of(b));
    }
  }
  Type result = a;
  result.shape[rank - 1] = b.shape[rank - 1];
  return result;
}

Type type_convolve(const Signature& s) {
  check_pictures(s);
  const Window2d w(s.attributes);
  check_window(s, w);
  const Shape &x = s.input(0).shape, &k = s.input(1).shape;
  check_channels(s, x[1], k[0], k[1], w.groups);
  check_kernel(s, w, k);
  return {s.input(0).dtype,
          {x[0], k[0], checked_count(s, w, 0, x[2]), checked_count(s, w, 1, x[3])}};
}

Type type_convolve_input(const Signature& s) {
  check_pictures(s);
  const Window2d w(s.attributes);
  check_window(s, w);
  const Shape &dy = s.input(0).shape, &k = s.input(1).shape;
  if (dy[1] != k[0]) {
    fail(ErrorKind::shape, "{}: {} channels meet a weight for {}", name(s), dy[1], k[0]);
  }
  check_channels(s, k[1] * w.groups, k[0], k[1], w.groups);
  check_kernel(s, w, k);
  check_windows(s, w, 0, w.extent[0], w.extent[1]);
  return {s.input(0).dtype, {dy[0], k[1] * w.groups, w.extent[0], w.extent[1]}};
}

Type type_convolve_weight(const Signature& s) {
  check_pictures(s);
  const Window2d w(s.attributes);
  check_window(s, w);
  const Shape &x = s.input(0).shape, &dy = s.input(1).shape;
  if (x[0] != dy[0]) {
    fail(ErrorKind::shape, "{}: batches differ: {} and {}", name(s), x[0], dy[0]);
  }
  check_channels(s, x[1], dy[1], x[1] / w.groups, w.groups);
  check_windows(s, w, 1, x[2], x[3]);
  return {s.input(0).dtype, {dy[1], x[1] / w.groups, w.size[0], w.size[1]}};
}

Type type_pool_argmax(const Signature& s) {
  check_pictures(s);
  const Window2d w(s.attributes);
  check_window(s, w);
  for (int i = 0; i < 2; i++) {
    if (std::max(w.before[i], w.after[i]) * 2 > w.size[i]) {
      fail(ErrorKind::value, "{}: padding {} must be at most half the kernel {}", name(s),
           std::max(w.before[i], w.after[i]), w.size[i]);
    }
  }
  const Shape& x = s.input(0).shape;
  return {DType::i64, {x[0], x[1], checked_count(s, w, 0, x[2]), checked_count(s, w, 1, x[3])}};
}

}  // namespace fornax
