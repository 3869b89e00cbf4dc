// Gradient rules of reductions, scans, products and convolutions.
#include <algorithm>

#include "grad/rules.h"
#include "tensor/compose.h"

namespace fornax {
namespace {

Tensor cumulate(Op op, const Tensor& x, int axis) { return record(op, {&x}, {axis}); }

Tensor reversed(const Tensor& x, int axis) { return x.flip(axis); }

// Along the axis: the product of all elements before each one (after it, where `backward`).
Tensor exclusive_product(const Tensor& x, int axis, bool backward) {
  const Tensor y = backward ? reversed(x, axis) : x;
  const int64_t length = x.shape(axis);
  const Tensor first = constant(x.device(), {x.dtype(), y.narrow(axis, 0, 1).shape()}, 1);
  const Tensor product =
      cat({first, cumulate(Op::cumprod, y.narrow(axis, 0, length - 1), axis)}, axis);
  return backward ? reversed(product, axis) : product;
}

// Axes of x in the order: not reduced, then reduced.
Attributes reduced_last(const Attributes& reduced, int rank) {
  Attributes order;
  for (int64_t axis = 0; axis < rank; axis++) {
    if (std::find(reduced.begin(), reduced.end(), axis) == reduced.end()) order.push_back(axis);
  }
  order.insert(order.end(), reduced.begin(), reduced.end());
  return order;
}

// Equal, or both NaN.
Tensor same(const Tensor& a, const Tensor& b) { return (a == b) | (is_nan(a) & is_nan(b)); }

// All elements that equal the extreme share its gradient.
void grad_extreme(Backward& b) {
  const Tensor wins = same(b.input(0), b.y);
  const Tensor count = record(Op::sum, {&wins}, b.attributes()).cast(b.dy.dtype());
  b.set(0, where(wins, b.dy / count, 0));
}

}  // namespace

void grad_sum(Backward& b) { b.set(0, b.dy.expand(b.input_type(0).shape)); }

void grad_prod(Backward& b) {
  const Tensor& x = b.input(0);
  if (x.element_count() == 0) {
    b.set(0, zeros_like(x));
    return;
  }
  // The product of all others, as what stands before times what stands after: exact where elements
  // are 0.  In f64, so that partial products do not overflow before a 0 comes.
  const Attributes order = reduced_last(b.attributes(), x.rank());
  const Attributes inverse = inverse_of(order);
  const Tensor moved = record(Op::permute, {&x}, order).cast(DType::f64);
  Shape flat;
  int64_t reduced = 1;
  for (int i = 0; i < x.rank(); i++) {
    if (i < x.rank() - int(b.attributes().size())) {
      flat.push_back(moved.shape()[i]);
    } else {
      reduced *= moved.shape()[i];
    }
  }
  flat.push_back(reduced);
  const int last = flat.rank() - 1;
  const Tensor line = moved.reshape(flat);
  const Tensor others = exclusive_product(line, last, false) * exclusive_product(line, last, true);
  const Tensor back = others.reshape(moved.shape()).cast(x.dtype());
  b.set(0, b.dy * record(Op::permute, {&back}, inverse));
}

void grad_max(Backward& b) { grad_extreme(b); }
void grad_min(Backward& b) { grad_extreme(b); }
void grad_any(Backward&) {}
void grad_all(Backward&) {}
void grad_argmax(Backward&) {}
void grad_argmin(Backward&) {}
void grad_argsort(Backward&) {}

void grad_cumsum(Backward& b) {
  const int axis = axis_of(b.attributes());
  b.set(0, reversed(cumulate(Op::cumsum, reversed(b.dy, axis), axis), axis));
}

void grad_cumprod(Backward& b) {
  const int axis = axis_of(b.attributes());
  const Tensor& x = b.input(0);
  if (x.element_count() == 0) {
    b.set(0, zeros_like(x));
    return;
  }
  if (!(x == 0).any().item<bool>()) {
    const Tensor weighted = reversed(b.dy * b.y, axis);
    b.set(0, reversed(cumulate(Op::cumsum, weighted, axis), axis) / x);
    return;
  }
  // With zeros: row i of a matrix is x with element i replaced by 1; its running product from i on
  // says how much each result changes with x[i].
  const int64_t length = x.shape(axis);
  const Tensor line = x.move_axis(axis, -1).unsqueeze(-2);  // [..., 1, length]
  const Tensor identity = eye(length, {.dtype = DType::f32, .device = x.device()}) != 0;
  const Tensor matrix = where(identity, 1, line);
  const Tensor products = cumulate(Op::cumprod, matrix, matrix.rank() - 1).triu();
  const Tensor dy = b.dy.move_axis(axis, -1).unsqueeze(-2);
  b.set(0, (products * dy).sum(-1).move_axis(-1, axis));
}

namespace {

// Each result's gradient goes to the element that it came from: the last one that set the extreme.
void grad_running_extreme(Backward& b) {
  const int axis = axis_of(b.attributes());
  const Tensor& x = b.input(0);
  Shape shape;
  for (int i = 0; i < x.rank(); i++) shape.push_back(i == axis ? x.shape(axis) : 1);
  const Tensor positions =
      arange(x.shape(axis), {.dtype = DType::i64, .device = x.device()}).reshape(shape);
  const Tensor set_here = where(same(x, b.y), positions, 0);
  const Tensor source = cumulate(Op::cummax, set_here, axis);
  b.set(0, zeros_like(b.dy).scatter_add(axis, source, b.dy));
}

}  // namespace

void grad_cummax(Backward& b) { grad_running_extreme(b); }
void grad_cummin(Backward& b) { grad_running_extreme(b); }

// That of an operand that is known and a transpose is computed as one too: then that of the matrix
// lies in rows, as the matrix does.
void grad_matmul(Backward& b) {
  const auto product = [](const Tensor& a, const Tensor& c, const Tensor& operand) {
    if (!operand.defined() || !is_transpose(operand)) return record(Op::matmul, {&a, &c});
    const Tensor left = c.transpose(), right = a.transpose();
    return record(Op::matmul, {&left, &right}).transpose();
  };
  if (b.wants(0)) b.set(0, product(b.dy, b.input(1).transpose(), b.input(0)));
  if (b.wants(1)) b.set(1, product(b.input(0).transpose(), b.dy, b.input(1)));
}

// The three convolutions are each other's gradients: all three say the same trilinear form, with x,
// weight and dy in turn as what is asked for.
void grad_convolve(Backward& b) {
  Window2d window(b.attributes());
  const Shape& x = b.input_type(0).shape;
  window.extent[0] = x[2], window.extent[1] = x[3];
  if (b.wants(0)) b.set(0, record(Op::convolve_input, {&b.dy, &b.input(1)}, window.pack()));
  if (b.wants(1)) b.set(1, record(Op::convolve_weight, {&b.input(0), &b.dy}, window.pack()));
}

void grad_convolve_input(Backward& b) {
  if (b.wants(0)) b.set(0, record(Op::convolve, {&b.dy, &b.input(1)}, b.attributes()));
  if (b.wants(1)) b.set(1, record(Op::convolve_weight, {&b.dy, &b.input(0)}, b.attributes()));
}

void grad_convolve_weight(Backward& b) {
  Window2d window(b.attributes());
  const Shape& x = b.input_type(0).shape;
  window.extent[0] = x[2], window.extent[1] = x[3];
  if (b.wants(0)) b.set(0, record(Op::convolve_input, {&b.input(1), &b.dy}, window.pack()));
  if (b.wants(1)) b.set(1, record(Op::convolve, {&b.input(0), &b.dy}, window.pack()));
}

void grad_pool_argmax(Backward&) {}

}  // namespace fornax
