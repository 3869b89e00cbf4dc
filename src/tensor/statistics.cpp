// Statistics, and comparing with tolerance.
#include <fornax/ops.h>

#include <algorithm>
#include <limits>

#include "tensor/compose.h"

namespace fornax {

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t axis, double epsilon,
                         Site site) {
  Call call("cosine_similarity", site);
  const Tensor x = computable(a), y = computable(b);
  const Tensor product = x * y;
  const Tensor lengths = maximum(x.norm(2, axis), epsilon) * maximum(y.norm(2, axis), epsilon);
  const DType dtype = promote(summed_dtype(a.dtype()), summed_dtype(b.dtype()));
  return converted(product.sum(axis) / lengths, dtype);
}

Tensor covariance(const Tensor& x, int64_t correction, Site site) {
  Call call("covariance", site);
  if (x.rank() != 2) {
    fail(ErrorKind::shape, "covariance: needs 2 axes, variables and observations, got {}",
         text_of(node_of(x).type));
  }
  const Tensor wide = computable(x);
  const Tensor distance = wide - mean_over(wide, {1});
  const NoAutocast exact;  // a sum of squares, not a layer's product
  const Tensor product = distance.matmul(distance.transpose());
  const int64_t divisor = std::max<int64_t>(x.shape(1) - correction, 0);
  return converted(product / double(divisor), summed_dtype(x.dtype()));
}

// NaN sorts last and would be passed by, so it is looked for.
Tensor median(const Tensor& x, int64_t axis, Site site) {
  Call call("median", site);
  if (x.rank() == 0) return median(reshaped(x, {1}), axis, site);
  const int along = normal_axis(axis, x);
  const int64_t count = x.shape()[along];
  if (count == 0) {
    fail(ErrorKind::shape, "median: axis {} of {} has no elements", along,
         text_of(node_of(x).type));
  }
  const Tensor middle = x.sort({.axis = along}).select(along, (count - 1) / 2);
  if (!is_floating(x.dtype())) return middle;
  const Tensor nan = number_like(x, std::numeric_limits<double>::quiet_NaN());
  return where(is_nan(x).any(along), nan, middle);
}

Tensor is_close(const Tensor& a, const Tensor& b, Closeness c, Site site) {
  Call call("is_close", site);
  const DType common = promote(a.dtype(), b.dtype());
  const DType dtype = is_floating(common) ? compute_dtype(common) : DType::f64;
  const Tensor x = converted(a, dtype), y = converted(b, dtype);
  const Tensor near = abs(x - y) <= abs(y) * c.relative + c.absolute;
  Tensor close = (x == y) | (near & is_finite(y));
  if (c.equal_nan) close = close | (is_nan(x) & is_nan(y));
  return close;
}

bool all_close(const Tensor& a, const Tensor& b, Closeness c, Site site) {
  Call call("all_close", site);
  return is_close(a, b, c).all().item<bool>(site);
}

}  // namespace fornax
