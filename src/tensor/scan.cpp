// Running sums and the like, and sorting.  Sorting is argsort and gather, so that gradients follow.
#include "tensor/compose.h"

namespace fornax {
namespace {

Tensor scan(Op op, const Tensor& given, int64_t axis) {
  const Tensor x = converted(given, taken_dtype(op, given.dtype()));
  return on_line(
      x, [&](const Tensor& line) { return record(op, {&line}, {normal_axis(axis, line)}); });
}

Tensor order_of(const Tensor& x, int axis, bool descending) {
  return record(Op::argsort, {&x}, SortSettings::pack(axis, descending));
}

Tensor sorted(const Tensor& x, const SortOptions& o) {
  const int along = normal_axis(o.axis, x);
  return gathered(x, along, order_of(x, along, o.descending));
}

}  // namespace

Tensor Tensor::cumsum(int64_t axis, Site site) const {
  Call call("cumsum", site);
  return scan(Op::cumsum, *this, axis);
}
Tensor Tensor::cumprod(int64_t axis, Site site) const {
  Call call("cumprod", site);
  return scan(Op::cumprod, *this, axis);
}
Tensor Tensor::cummax(int64_t axis, Site site) const {
  Call call("cummax", site);
  return scan(Op::cummax, *this, axis);
}
Tensor Tensor::cummin(int64_t axis, Site site) const {
  Call call("cummin", site);
  return scan(Op::cummin, *this, axis);
}

Tensor Tensor::argsort(SortOptions o, Site site) const {
  Call call("argsort", site);
  return on_line(*this, [&](const Tensor& line) {
    return order_of(line, normal_axis(o.axis, line), o.descending);
  });
}

Tensor Tensor::sort(SortOptions o, Site site) const {
  Call call("sort", site);
  return on_line(*this, [&](const Tensor& line) { return sorted(line, o); });
}

std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t axis, Site site) const {
  Call call("topk", site);
  const int along = normal_axis(axis, *this);
  if (k < 0 || k > shape()[along]) {
    fail(ErrorKind::index, "topk: k is {}, axis {} of {} has {} elements", k, along,
         text_of(node_of(*this).type), shape()[along]);
  }
  const Tensor order = sliced(order_of(*this, along, true), along, 0, k);
  return {gathered(*this, along, order), order};
}

}  // namespace fornax
