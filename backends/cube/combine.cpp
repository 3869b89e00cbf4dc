#include "backends/cube/combine.h"

#include <limits>

#include "base/error.h"

namespace fornax::cube {
namespace {

bool finds_place(Op op) { return op == Op::argmax || op == Op::argmin; }
bool asks(Op op) { return op == Op::any || op == Op::all; }

// The number of `dtype` that every other one is above, or below.
Scalar extreme(DType dtype, bool lowest) {
  const auto of = [&](auto number) -> Scalar {
    using Limits = std::numeric_limits<decltype(number)>;
    return lowest ? Limits::lowest() : Limits::max();
  };
  switch (dtype) {
    case DType::i32:
      return of(int32_t());
    case DType::u32:
      return of(uint32_t());
    case DType::i64:
      return of(int64_t());
    case DType::u64:
      return of(uint64_t());
    default:
      return lowest ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  }
}

// Bools are counted as u32: shuffles and shared memory know no bool.
DType element_dtype(DType dtype) {
  return dtype == DType::bool_ ? DType::u32 : kernel::compute_dtype(dtype);
}

bool starts_low(Op op) { return op == Op::max || op == Op::argmax; }

}  // namespace

std::vector<DType> accumulator_dtypes(Op op, DType dtype, DType result, DType index) {
  if (asks(op)) return {DType::u32};
  if (finds_place(op)) return {element_dtype(dtype), index};
  return {element_dtype(op == Op::sum || op == Op::prod ? result : dtype)};
}

Accumulators identity(Builder& k, const Step& step, DType dtype, DType index) {
  const std::vector<DType> dtypes = accumulator_dtypes(step.op, dtype, step.type.dtype, index);
  Scalar first;
  switch (step.op) {
    case Op::sum:
    case Op::any:
      first = 0;
      break;
    case Op::prod:
    case Op::all:
      first = 1;
      break;
    default:
      first = extreme(dtypes[0], starts_low(step.op));
  }
  Accumulators all = {k.constant(dtypes[0], first)};
  if (dtypes.size() > 1) all.push_back(k.constant(index, extreme(index, false)));
  return all;
}

Accumulators begin(Builder& k, const Step& step, Value element, Value position) {
  if (asks(step.op)) return {k.cast(k.cast(element, DType::bool_), DType::u32)};
  const DType dtype = element.dtype();
  const DType own = accumulator_dtypes(step.op, dtype, step.type.dtype, position.dtype())[0];
  Accumulators all = {k.cast(element, own)};
  if (finds_place(step.op)) all.push_back(position);
  return all;
}

Accumulators combine(Op op, const Accumulators& a, const Accumulators& b) {
  switch (op) {
    case Op::sum:
      return {a[0] + b[0]};
    case Op::prod:
      return {a[0] * b[0]};
    case Op::max:
      return {maximum(a[0], b[0])};
    case Op::min:
      return {minimum(a[0], b[0])};
    case Op::any:
      return {max(a[0], b[0])};
    case Op::all:
      return {min(a[0], b[0])};
    default:
      break;
  }
  FORNAX_CHECK(finds_place(op));
  // NaN comes before all numbers; of equals, the first.
  const Value nan_a = is_nan(a[0]), nan_b = is_nan(b[0]);
  const Value better = op == Op::argmax ? a[0] > b[0] : a[0] < b[0];
  const Value same = (a[0] == b[0]) | (nan_a & nan_b);
  const Value takes_a = better | (nan_a & ~nan_b) | (same & (a[1] < b[1]));
  // A NaN is neither better nor worse than a number by comparison.
  return {select(takes_a, a[0], b[0]), select(takes_a, a[1], b[1])};
}

Value finish(Builder& k, const Step& step, const Accumulators& all) {
  if (finds_place(step.op)) return k.cast(all[1], step.type.dtype);
  if (step.type.dtype == DType::bool_) return all[0] != 0;
  return k.cast(all[0], step.type.dtype);
}

}  // namespace fornax::cube
