// Reductions.  The primitives keep reduced axes with size 1; a reshape drops them.  Means,
// variances and norms of half precision, integers and bool are computed in f32; the results of
// halves go back.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/rules.h"
#include "tensor/compose.h"

namespace fornax {
namespace {

Tensor dropped(const Tensor& reduced, const Shape& shape, const Attributes& axes, bool keep) {
  return keep ? reduced : reshaped(reduced, without(shape, axes));
}

// What `op` makes of each element where nothing is reduced.
Tensor of_single_elements(Op op, const Tensor& x) {
  if (op == Op::sum || op == Op::prod) return converted(x, widened(x.dtype()));
  if (op == Op::any || op == Op::all) return converted(x, DType::bool_);
  return x;
}

Tensor reduce(Op op, const Tensor& given, const Axes& axes, bool keep) {
  const Attributes over = normal_axes(axes, given);
  const Tensor x = converted(given, taken_dtype(op, given.dtype()));
  if (over.empty()) return of_single_elements(op, x);
  return dropped(reduced(op, x, over), x.shape(), over, keep);
}

Tensor reduce_argument(Op op, const Tensor& x, int64_t axis, bool keep) {
  return on_line(x, [&](const Tensor& line) {
    const Attributes over{normal_axis(axis, line)};
    return dropped(reduced(op, line, over), line.shape(), over, keep);
  });
}

// Sums of integers are exact, and their quotient is taken in f64.
Tensor mean_of(const Tensor& x, const Attributes& axes) {
  if (is_floating(x.dtype())) return mean_over(computable(x), axes);
  const double count = double(count_over(x.shape(), axes));
  const Tensor total = axes.empty() ? x : reduced(Op::sum, x, axes);
  return converted(converted(total, DType::f64) / count, DType::f32);
}

// Two passes.  Too few elements give 0 / 0, NaN.  Requires: x is computable.
Tensor variance_of(const Tensor& x, const Attributes& axes, int64_t correction) {
  const Tensor distance = x - mean_over(x, axes);
  const int64_t divisor = count_over(x.shape(), axes) - correction;
  return sum_over(square(distance), axes) / double(std::max<int64_t>(divisor, 0));
}

Tensor norm_of(const Tensor& x, const Attributes& axes, double p) {
  if (p == 2) return root(sum_over(square(x), axes));
  if (p == 1) return sum_over(abs(x), axes);
  if (p == 0) return sum_over(converted(not_equal(x, 0), x.dtype()), axes);
  if (std::isinf(p)) return reduced(p > 0 ? Op::max : Op::min, abs(x), axes);
  return pow(sum_over(pow(abs(x), p), axes), 1 / p);
}

// Where everything is -inf the sum of exponentials is 0: its logarithm is right, and the detour by
// 1 keeps the gradient 0 instead of NaN.
Tensor logsumexp_of(const Tensor& x, const Attributes& axes) {
  Tensor shift = shift_over(x, axes);
  shift = where(is_finite(shift), shift, 0);
  const Tensor total = sum_over(exp(x - shift), axes);
  if (!total.requires_grad()) return log(total) + shift;
  const Tensor nothing = equal(total, 0);
  const Tensor logarithm = log(where(nothing, 1, total)) + shift;
  return where(nothing, -std::numeric_limits<double>::infinity(), logarithm);
}

}  // namespace

Tensor root(const Tensor& x) {
  if (!x.requires_grad()) return sqrt(x);
  const Tensor zero = equal(x, 0);
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

Tensor shift_over(const Tensor& x, const Attributes& axes) {
  Untracked untracked;
  return reduced(Op::max, x, axes);
}

Tensor Tensor::sum(Axes axes, ReduceOptions o, Site site) const {
  Call call("sum", site);
  return reduce(Op::sum, *this, axes, o.keep_dims);
}
Tensor Tensor::prod(Axes axes, ReduceOptions o, Site site) const {
  Call call("prod", site);
  return reduce(Op::prod, *this, axes, o.keep_dims);
}
Tensor Tensor::max(Axes axes, ReduceOptions o, Site site) const {
  Call call("max", site);
  return reduce(Op::max, *this, axes, o.keep_dims);
}
Tensor Tensor::min(Axes axes, ReduceOptions o, Site site) const {
  Call call("min", site);
  return reduce(Op::min, *this, axes, o.keep_dims);
}
Tensor Tensor::any(Axes axes, ReduceOptions o, Site site) const {
  Call call("any", site);
  return reduce(Op::any, *this, axes, o.keep_dims);
}
Tensor Tensor::all(Axes axes, ReduceOptions o, Site site) const {
  Call call("all", site);
  return reduce(Op::all, *this, axes, o.keep_dims);
}

Tensor Tensor::argmax(Site site) const {
  Call call("argmax", site);
  return reduce_argument(Op::argmax, reshaped(*this, {element_count()}), 0, false);
}
Tensor Tensor::argmin(Site site) const {
  Call call("argmin", site);
  return reduce_argument(Op::argmin, reshaped(*this, {element_count()}), 0, false);
}
Tensor Tensor::argmax(int64_t axis, ReduceOptions o, Site site) const {
  Call call("argmax", site);
  return reduce_argument(Op::argmax, *this, axis, o.keep_dims);
}
Tensor Tensor::argmin(int64_t axis, ReduceOptions o, Site site) const {
  Call call("argmin", site);
  return reduce_argument(Op::argmin, *this, axis, o.keep_dims);
}

Tensor Tensor::mean(Axes axes, ReduceOptions o, Site site) const {
  Call call("mean", site);
  const Attributes over = normal_axes(axes, *this);
  const Tensor mean = converted(mean_of(*this, over), summed_dtype(dtype()));
  return dropped(mean, shape(), over, o.keep_dims);
}

Tensor Tensor::variance(Axes axes, VarianceOptions o, Site site) const {
  Call call("variance", site);
  const Attributes over = normal_axes(axes, *this);
  const Tensor variance = variance_of(computable(*this), over, o.correction);
  return dropped(converted(variance, summed_dtype(dtype())), shape(), over, o.keep_dims);
}

Tensor Tensor::deviation(Axes axes, VarianceOptions o, Site site) const {
  Call call("deviation", site);
  const Attributes over = normal_axes(axes, *this);
  const Tensor deviation = root(variance_of(computable(*this), over, o.correction));
  return dropped(converted(deviation, summed_dtype(dtype())), shape(), over, o.keep_dims);
}

// No scaling: squares of numbers above 1.8e19 overflow in f32.
Tensor Tensor::norm(double p, Axes axes, ReduceOptions o, Site site) const {
  Call call("norm", site);
  if (std::isnan(p)) fail(ErrorKind::value, "norm: p must be a number, got NaN");
  const Attributes over = normal_axes(axes, *this);
  const Tensor norm = norm_of(computable(*this), over, p);
  return dropped(converted(norm, summed_dtype(dtype())), shape(), over, o.keep_dims);
}

Tensor Tensor::logsumexp(Axes axes, ReduceOptions o, Site site) const {
  Call call("logsumexp", site);
  const Attributes over = normal_axes(axes, *this);
  const Tensor result = logsumexp_of(computable(*this), over);
  return dropped(converted(result, summed_dtype(dtype())), shape(), over, o.keep_dims);
}

}  // namespace fornax
