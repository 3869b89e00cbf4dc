// Positions as values: what an arange computes, alone or as a step of a group.
#pragma once
#include <algorithm>

#include "backends/cube/operand.h"

namespace fornax::cube {

// Element number `position` of an arange of `dtype`.
Value arange_element(Builder& k, DType dtype, Value start, Value step, Value position);

inline bool has_arange(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& s) { return s.op == Op::arange; });
}
// Strides over `domain` of a step that runs along its last axis, so that this stays by itself.
inline Strides last_axis_strides(const Shape& domain) {
  Strides strides(size_t(domain.rank()), 0);
  strides.back() = 1;
  return strides;
}

}  // namespace fornax::cube
