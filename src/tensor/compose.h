// Shorthands for ops that are composed from primitives.  Each records at most one node and none
// where the result would equal its input.  Axes are normal: 0 <= axis < rank.
#pragma once
#include "tensor/autocast.h"
#include "tensor/record.h"

namespace fornax {

inline Attributes sizes_of(const Shape& shape) { return Attributes(shape.begin(), shape.end()); }

inline Tensor reshaped(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : record(Op::reshape, {&x}, sizes_of(shape));
}
inline Tensor expanded(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : record(Op::expand, {&x}, sizes_of(shape));
}
// The order of axes that undoes `order`.
inline Attributes inverse_of(const Attributes& order) {
  Attributes inverse(order.size());
  for (size_t i = 0; i < order.size(); i++) inverse[size_t(order[i])] = int64_t(i);
  return inverse;
}
inline Tensor permuted(const Tensor& x, const Attributes& order) {
  return record(Op::permute, {&x}, order);
}
// Whether x is the transpose of matrices.
inline bool is_transpose(const Tensor& x) {
  const Node& node = node_of(x);
  const size_t rank = node.attributes.size();
  return node.op == Op::permute && rank >= 2 && node.attributes[rank - 1] == int64_t(rank) - 2 &&
         node.attributes[rank - 2] == int64_t(rank) - 1;
}
inline Tensor converted(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : record(Op::cast, {&x}, {int64_t(dtype)});
}

// The dtype in which means, norms and exponentials of `dtype` are computed: f64 for f64, else f32.
inline DType compute_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
inline Tensor computable(const Tensor& x) { return converted(x, compute_dtype(x.dtype())); }
// The dtype of the result of such a computation: floats keep theirs, others give f32.
inline DType floating_dtype(DType dtype) { return is_floating(dtype) ? dtype : DType::f32; }
// The same of what is made of sums, which Autocast keeps in f32.
inline DType summed_dtype(DType dtype) { return taken_dtype(Op::sum, floating_dtype(dtype)); }

// What is added to a product: under Autocast it counts as an operand.
inline Tensor addend(Op product, const Tensor& y, const Tensor& x) {
  return converted(x, taken_dtype(product, promote(y.dtype(), x.dtype())));
}

// Reduced axes keep size 1.
inline Tensor reduced(Op op, const Tensor& x, const Attributes& axes) {
  return record(op, {&x}, axes);
}
inline Shape without(const Shape& shape, const Attributes& axes) {
  Shape rest = shape;
  for (size_t i = axes.size(); i-- > 0;) rest.erase(int(axes[i]));
  return rest;
}
inline int64_t count_over(const Shape& shape, const Attributes& axes) {
  int64_t count = 1;
  for (int64_t axis : axes) count *= shape[int(axis)];
  return count;
}

inline Attributes whole_slices(const Shape& shape) {
  Attributes numbers;
  for (int64_t size : shape) numbers.insert(numbers.end(), {0, size, 1});
  return numbers;
}
inline Tensor sliced(const Tensor& x, int axis, int64_t start, int64_t count, int64_t step = 1) {
  if (start == 0 && step == 1 && count == x.shape()[axis]) return x;
  Attributes numbers = whole_slices(x.shape());
  numbers[size_t(axis) * 3] = start;
  numbers[size_t(axis) * 3 + 1] = count;
  numbers[size_t(axis) * 3 + 2] = step;
  return record(Op::slice, {&x}, std::move(numbers));
}
inline Tensor gathered(const Tensor& x, int axis, const Tensor& index) {
  return record(Op::gather, {&x, &index}, {axis});
}

// `value` in the kind of number that `dtype` holds.
inline Scalar scalar_as(DType dtype, Scalar value) {
  if (is_floating(dtype)) return value.as_double();
  if (is_boolean(dtype)) return value.as_double() != 0;
  return is_signed(dtype) ? Scalar(value.as_int64()) : Scalar(value.as_uint64());
}
inline Tensor number_like(const Tensor& x, Scalar value) {
  return constant(x.device(), {x.dtype(), {}}, scalar_as(x.dtype(), value));
}
// 0, 1, ... count - 1 on the device.
Tensor positions(Device device, int64_t count, int64_t start = 0);

// What `work` makes of x; to it, a single number is a line of one element.
template <class Work>
Tensor on_line(const Tensor& x, Work work) {
  return x.rank() > 0 ? work(x) : reshaped(work(reshaped(x, {1})), {});
}

// Elements, each 0, in the host's memory.  Error(out_of_memory).
template <class T>
std::vector<T> host_memory(size_t count) {
  try {
    if (count <= PTRDIFF_MAX / sizeof(T)) return std::vector<T>(count);
  } catch (const std::bad_alloc&) {
  }
  fail(ErrorKind::out_of_memory, "{}: the host has no memory for {} elements of {} bytes",
       Call::name_or("tensor"), count, sizeof(T));
}

// Error(value): a number of a window or of padding is beyond `most`; sums of them might overflow.
inline constexpr int64_t kMostOfWindow = int64_t(1) << 24, kMostPadding = int64_t(1) << 40;
void check_numbers(std::initializer_list<int64_t> numbers, int64_t most);

// Pads each axis by its (before, after), with `between` zero elements between neighbours.
Tensor padded(const Tensor& x, Attributes before_after_between, Scalar value);

// The square root of numbers >= 0, whose gradient at 0 is 0 instead of infinite.
Tensor root(const Tensor& x);
// Sum and mean over `axes`, which keep size 1.  Requires: x is floating, not of half precision.
inline Tensor sum_over(const Tensor& x, const Attributes& axes) {
  return reduced(Op::sum, x, axes);
}
inline Tensor mean_over(const Tensor& x, const Attributes& axes) {
  return sum_over(x, axes) / double(count_over(x.shape(), axes));
}
// The largest element over `axes`, of size 1 and untracked: a shift that leaves gradients alone.
Tensor shift_over(const Tensor& x, const Attributes& axes);
// The gradient of gathered() by `index` with extent 1 along `axis`, which has `size` elements:
// `values` at the index of their line, 0 elsewhere.
Tensor placed_along(const Tensor& values, const Tensor& index, int axis, int64_t size);

}  // namespace fornax
