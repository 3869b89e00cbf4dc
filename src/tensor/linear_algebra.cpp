// Matrix products and what is made of them.
#include <fornax/ops.h>

#include <algorithm>

#include "tensor/compose.h"

namespace fornax {
namespace {

const Tensor& tensor_in(const char* name, const Operand& operand) {
  if (operand.is_number()) {
    fail(ErrorKind::shape, "{}: takes tensors, got the number {}", name,
         operand.number().as_double());
  }
  return operand.tensor();
}

// The sizes before the last two axes.
Shape leading(const Shape& shape) {
  return Shape(std::span(shape.begin(), size_t(shape.rank() - 2)));
}

Tensor with_leading(const Tensor& x, Shape lead) {
  lead.push_back(x.shape(-2));
  lead.push_back(x.shape(-1));
  return expanded(x, lead);
}

void check_inner(const Tensor& a, const Tensor& b) {
  const int64_t columns = a.shape(-1), rows = b.shape(b.rank() == 1 ? -1 : -2);
  if (columns == rows) return;
  fail(ErrorKind::shape,
       "{}: inner sizes differ: a is {}, b is {}; a's last ({}) must equal b's {} ({})",
       Call::name_or("matmul"), text_of(node_of(a).type), text_of(node_of(b).type), columns,
       b.rank() == 1 ? "only one" : "second to last", rows);
}

// Requires: both have at least 2 axes, inner sizes agree, one dtype.
Tensor product(const Tensor& a, const Tensor& b) {
  if (b.rank() == 2 && a.rank() > 2) {
    // One wide product instead of many with the same b.
    Shape rows{a.element_count() / std::max<int64_t>(a.shape(-1), 1), a.shape(-1)};
    if (a.shape(-1) == 0) {
      rows[0] = 1;
      for (int axis = 0; axis < a.rank() - 1; axis++) rows[0] *= a.shape()[axis];
    }
    const Tensor flat = reshaped(a, rows);
    Shape result = a.shape();
    result[a.rank() - 1] = b.shape(-1);
    return reshaped(record(Op::matmul, {&flat, &b}), result);
  }
  const Shape lead = broadcast(leading(a.shape()), leading(b.shape()));
  const Tensor left = with_leading(a, lead), right = with_leading(b, lead);
  return record(Op::matmul, {&left, &right});
}

// The operand in `dtype`; that of a transpose lies as the matrix does.
Tensor factor(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype || !is_transpose(x)) return converted(x, dtype);
  return converted(x.transpose(), dtype).transpose();
}

// A vector counts as a row on the left and as a column on the right; its axis goes from the result.
Tensor product_of(const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0) {
    fail(ErrorKind::shape, "{}: operands need at least one axis, got {} and {}; use * for numbers",
         Call::name_or("matmul"), text_of(node_of(a).type), text_of(node_of(b).type));
  }
  check_inner(a, b);
  const DType dtype = taken_dtype(Op::matmul, promote(a.dtype(), b.dtype()));
  const Tensor left = factor(a.rank() == 1 ? reshaped(a, {1, a.shape(0)}) : a, dtype);
  const Tensor right = factor(b.rank() == 1 ? reshaped(b, {b.shape(0), 1}) : b, dtype);
  const Tensor result = product(left, right);
  Shape shape = result.shape();
  if (b.rank() == 1) shape.erase(shape.rank() - 1);
  if (a.rank() == 1) shape.erase(shape.rank() - (b.rank() == 1 ? 1 : 2));
  return reshaped(result, shape);
}

void check_vectors(const char* name, const Tensor& a, const Tensor& b) {
  if (a.rank() != 1 || b.rank() != 1) {
    fail(ErrorKind::shape, "{}: takes two tensors of one axis, got {} and {}", name,
         text_of(node_of(a).type), text_of(node_of(b).type));
  }
}

}  // namespace

Tensor Tensor::matmul(const Operand& b) const {
  Call call("matmul", b.site());
  return product_of(*this, tensor_in("matmul", b));
}

Tensor Tensor::dot(const Operand& b) const {
  Call call("dot", b.site());
  const Tensor& other = tensor_in("dot", b);
  check_vectors("dot", *this, other);
  return product_of(*this, other);
}

Tensor Tensor::outer(const Operand& b) const {
  Call call("outer", b.site());
  const Tensor& other = tensor_in("outer", b);
  check_vectors("outer", *this, other);
  return reshaped(*this, {shape(0), 1}) * other;
}

Tensor Tensor::trace(Site site) const {
  Call call("trace", site);
  return diagonal().sum(-1);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Site site) {
  Call call("linear", site);
  if (weight.rank() != 2) {
    fail(ErrorKind::shape, "linear: the weight must be [in, out], got {}",
         text_of(node_of(weight).type));
  }
  const Tensor y = product_of(x, weight);
  if (!bias.defined()) return y;
  if (bias.shape() != Shape{weight.shape(1)}) {
    fail(ErrorKind::shape, "linear: the bias must be [{}] for the weight {}, got {}",
         weight.shape(1), text_of(node_of(weight).type), text_of(node_of(bias).type));
  }
  return y + addend(Op::matmul, y, bias);
}

}  // namespace fornax
