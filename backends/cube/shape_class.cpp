#include "backends/cube/shape_class.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace fornax::cube {

Strides strides_over(const Shape& domain, const Shape& shape, const Layout& layout) {
  const int shift = domain.rank() - shape.rank();
  FORNAX_CHECK(shift >= 0);
  Strides strides(size_t(domain.rank()), 0);
  for (int axis = 0; axis < shape.rank(); axis++) {
    if (shape[axis] != 1) strides[size_t(axis + shift)] = layout.strides[axis];
  }
  return strides;
}

Strides row_major_strides(const std::vector<int64_t>& extents) {
  Strides strides(extents.size());
  int64_t stride = 1;
  for (size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= extents[axis];
  }
  return strides;
}

int64_t Nest::count() const {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}
int64_t Nest::count(int kind) const {
  int64_t count = 1;
  for (size_t axis = 0; axis < extents.size(); axis++) {
    if (kinds[axis] == kind) count *= extents[axis];
  }
  return count;
}

Nest collapse(const Shape& domain, std::vector<Strides> strides, std::vector<int> kinds) {
  kinds.resize(size_t(domain.rank()), 0);
  Nest nest;
  nest.strides.resize(strides.size());
  for (size_t axis = 0; axis < kinds.size(); axis++) {
    const int64_t extent = domain[int(axis)];
    const bool alone = kinds[axis] == kAlone;
    if (extent == 1 && !alone) continue;
    bool joins = !nest.kinds.empty() && nest.kinds.back() == kinds[axis] && !alone;
    for (size_t i = 0; joins && i < strides.size(); i++) {
      joins = nest.strides[i].back() == strides[i][axis] * extent;
    }
    if (joins) {
      nest.extents.back() *= extent;
    } else {
      nest.extents.push_back(extent);
      nest.kinds.push_back(kinds[axis]);
    }
    for (size_t i = 0; i < strides.size(); i++) {
      if (joins) nest.strides[i].pop_back();
      nest.strides[i].push_back(strides[i][axis]);
    }
  }
  return nest;
}

StrideClass class_of(int64_t stride) {
  if (stride < 0) return StrideClass::backward;
  return stride == 0 ? StrideClass::zero : stride == 1 ? StrideClass::one : StrideClass::forward;
}

bool ViewClass::backward() const {
  return std::find(strides.begin(), strides.end(), StrideClass::backward) != strides.end();
}

ViewClass view_class(DType dtype, const Strides& strides) {
  ViewClass view;
  view.dtype = dtype;
  for (const int64_t stride : strides) view.strides.push_back(class_of(stride));
  return view;
}

std::string key_of(const ViewClass& view) {
  if (view.number) return fmt::format("{}#", name_of(view.dtype));
  std::string key = fmt::format("{}:", name_of(view.dtype));
  for (const StrideClass stride : view.strides) key += "01fb"[size_t(stride)];
  if (view.alignment > 1) key += fmt::format("@{}", view.alignment);
  if (view.divisor > 1) key += fmt::format("/{}", view.divisor);
  return view.aliased ? key + "&" : key;
}

Span span_of(const std::vector<int64_t>& extents, const Strides& strides) {
  int64_t lowest = 0, highest = 0;
  for (size_t axis = 0; axis < extents.size(); axis++) {
    if (extents[axis] == 0) return {0, 0};
    const int64_t reach = strides[axis] * (extents[axis] - 1);
    (reach < 0 ? lowest : highest) += reach;
  }
  return {lowest, highest - lowest + 1};
}

DType index_dtype(int64_t count, const std::vector<Span>& spans) {
  int64_t most = count;
  for (const Span& span : spans) most = std::max(most, span.count);
  return most <= INT32_MAX ? DType::i32 : DType::i64;
}
DType index_dtype(int64_t count, std::initializer_list<Span> spans) {
  return index_dtype(count, std::vector<Span>(spans));
}

int common_power(const std::vector<int64_t>& numbers, int most) {
  int power = most;
  for (const int64_t number : numbers) {
    while (power > 1 && number % power != 0) power /= 2;
  }
  return power;
}

}  // namespace fornax::cube
