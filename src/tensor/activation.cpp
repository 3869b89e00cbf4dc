// Activations and the softmax family.  Written so that large arguments neither overflow on the way
// nor make a gradient 0 * inf; NaN stays NaN.  What takes several steps computes halves in f32.
#include <fornax/ops.h>

#include <limits>

#include "tensor/compose.h"

namespace fornax {
namespace {

// A number stands for a tensor of one.
Tensor tensor_from(const Operand& x) {
  if (!x.is_number()) return x.tensor();
  return constant(Device(), {DType::f32, {}}, scalar_as(DType::f32, x.number()));
}

// Computed in f32 at least, and rounded once.
template <class F>
Tensor widely(const Operand& x, F&& function) {
  const Tensor t = tensor_from(x);
  return converted(function(computable(t)), floating_dtype(t.dtype()));
}

// x within [low, high]; the gradient is 0 at both bounds.
Tensor limited(const Tensor& x, double low, double high) {
  return where(x <= low, low, where(x >= high, high, x));
}

// log(1 + exp(x)) without overflow.
Tensor soft_maximum(const Tensor& x) { return maximum(x, 0) + log1p(exp(-abs(x))); }

// x where it is positive, else alpha * (exp(x) - 1), whose argument is kept from overflowing.
Tensor exponential_unit(const Tensor& x, double alpha) {
  const Tensor positive = x > 0;
  const Tensor below = expm1(where(positive, 0, x));
  return where(positive, x, alpha == 1 ? below : below * alpha);
}

}  // namespace

// By `x <= 0` and not by maximum: NaN stays, -0 becomes +0, and no tie shares the gradient at 0.
Tensor relu(const Operand& x) {
  Call call("relu", x.site());
  const Tensor t = tensor_from(x);
  return where(t <= 0, 0, t);
}

Tensor relu6(const Operand& x) {
  Call call("relu6", x.site());
  return limited(tensor_from(x), 0, 6);
}

Tensor leaky_relu(const Operand& x, double slope) {
  Call call("leaky_relu", x.site());
  const Tensor t = tensor_from(x);
  return where(t > 0, t, t * slope);
}

Tensor elu(const Operand& x, double alpha) {
  Call call("elu", x.site());
  return widely(x, [&](const Tensor& t) { return exponential_unit(t, alpha); });
}

// Constants for which activations keep mean 0 and variance 1.
Tensor selu(const Operand& x) {
  Call call("selu", x.site());
  return widely(x, [](const Tensor& t) {
    return exponential_unit(t, 1.6732632423543772848) * 1.0507009873554804934;
  });
}

Tensor gelu(const Operand& x) {
  Call call("gelu", x.site());
  return widely(x, [](const Tensor& t) {
    return t * 0.5 * (erf(t * 0.70710678118654752440) + 1);  // 1 / sqrt(2)
  });
}

Tensor gelu_tanh(const Operand& x) {
  Call call("gelu_tanh", x.site());
  return widely(x, [](const Tensor& t) {
    const Tensor inner = t * (square(t) * 0.044715 + 1) * 0.79788456080286535588;  // sqrt(2 / pi)
    return t * 0.5 * (tanh(inner) + 1);
  });
}

Tensor silu(const Operand& x) {
  Call call("silu", x.site());
  return widely(x, [](const Tensor& t) { return t * sigmoid(t); });
}

Tensor mish(const Operand& x) {
  Call call("mish", x.site());
  return widely(x, [](const Tensor& t) { return t * tanh(soft_maximum(t)); });
}

Tensor softplus(const Operand& x, double beta) {
  Call call("softplus", x.site());
  if (!(beta > 0)) fail(ErrorKind::value, "softplus: beta must be positive, got {}", beta);
  return widely(x, [&](const Tensor& t) {
    return beta == 1 ? soft_maximum(t) : soft_maximum(t * beta) / beta;
  });
}

Tensor softsign(const Operand& x) {
  Call call("softsign", x.site());
  return widely(x, [](const Tensor& t) { return t / (abs(t) + 1); });
}

Tensor hardtanh(const Operand& x, double low, double high) {
  Call call("hardtanh", x.site());
  if (!(low <= high)) {
    fail(ErrorKind::value, "hardtanh: the bounds {} and {} are not ascending", low, high);
  }
  return limited(tensor_from(x), low, high);
}

Tensor hard_sigmoid(const Operand& x) {
  Call call("hard_sigmoid", x.site());
  return widely(x, [](const Tensor& t) { return limited(t + 3.0, 0, 6) / 6; });
}

Tensor hard_swish(const Operand& x) {
  Call call("hard_swish", x.site());
  return widely(x, [](const Tensor& t) { return t * limited(t + 3.0, 0, 6) / 6; });
}

Tensor log_sigmoid(const Operand& x) {
  Call call("log_sigmoid", x.site());
  return widely(x, [](const Tensor& t) { return -soft_maximum(-t); });
}

Tensor glu(const Tensor& x, int64_t axis, Site site) {
  Call call("glu", site);
  const int along = normal_axis(axis, x);
  const int64_t size = x.shape()[along];
  if (size % 2 != 0) {
    fail(ErrorKind::shape, "glu: axis {} of {} must have an even size to be halved", along,
         text_of(node_of(x).type));
  }
  return sliced(x, along, 0, size / 2) * sigmoid(sliced(x, along, size / 2, size / 2));
}

Tensor softmax(const Tensor& x, int64_t axis, Site site) {
  Call call("softmax", site);
  const Attributes over = normal_axes({axis}, x);
  const DType dtype = summed_dtype(x.dtype());
  if (x.element_count() == 0) return converted(x, dtype);
  const Tensor wide = computable(x);
  const Tensor weight = exp(wide - shift_over(wide, over));
  // One division per row.
  return converted(weight * reciprocal(sum_over(weight, over)), dtype);
}

Tensor log_softmax(const Tensor& x, int64_t axis, Site site) {
  Call call("log_softmax", site);
  const Attributes over = normal_axes({axis}, x);
  const DType dtype = summed_dtype(x.dtype());
  if (x.element_count() == 0) return converted(x, dtype);
  const Tensor wide = computable(x);
  const Tensor shifted = wide - shift_over(wide, over);
  return converted(shifted - log(sum_over(exp(shifted), over)), dtype);
}

// Equal operands, infinite ones too, lie 0 apart.
Tensor logaddexp(const Operand& a, const Operand& b) {
  Call call("logaddexp", a.site());
  const Tensor distance = where(equal(a, b), 0, -abs(sub(a, b)));
  return maximum(a, b) + log1p(exp(distance));
}

}  // namespace fornax
