// Axes: which axes of a tensor an op is about.  One, several, or by default all.  Negative numbers
// count from the end.  A plain value.
#pragma once
#include <fornax/shape.h>

#include <concepts>
#include <initializer_list>

namespace fornax {

class Axes {
 public:
  Axes() = default;                                                     // all of them
  Axes(std::integral auto axis) : list_{int64_t(axis)}, all_(false) {}  // NOLINT: implicit
  Axes(std::initializer_list<int64_t> axes) : list_(axes), all_(axes.size() == 0) {}
  explicit Axes(std::span<const int64_t> axes) : list_(axes), all_(false) {}

  bool all() const { return all_; }
  const Shape& list() const { return list_; }  // as given; empty where all()

 private:
  Shape list_;
  bool all_ = true;
};

}  // namespace fornax
