// What each op's attribute integers mean: one typed view per op, built from and read as integers.
// Requires: the attributes come from the same view's `pack`, or have passed infer().
#pragma once
#include "graph/type.h"

namespace fornax {

// sum prod max min any all argmax argmin: the axes reduced, ascending, none twice.
inline const Attributes& axes_of(const Attributes& attributes) { return attributes; }

// cumsum ... cummin, cat, gather: the axis.
inline int axis_of(const Attributes& attributes) { return int(attributes.at(0)); }

// argsort: axis, then 1 for descending.
struct SortSettings {
  int axis;
  bool descending;
  explicit SortSettings(const Attributes& a) : axis(int(a.at(0))), descending(a.at(1) != 0) {}
  static Attributes pack(int axis, bool descending) { return {axis, descending}; }
};

// How scatter combines repeated and old values.  assign: the last one in row-major order wins.
enum class ScatterMode { assign, add, multiply, minimum, maximum };
struct ScatterSettings {
  int axis;
  ScatterMode mode;
  explicit ScatterSettings(const Attributes& a) : axis(int(a.at(0))), mode(ScatterMode(a.at(1))) {}
  static Attributes pack(int axis, ScatterMode mode) { return {axis, int64_t(mode)}; }
};

// slice: start, count, step per axis; pad: before, after, between per axis (before and after may be
// negative, which crops).
struct PerAxis {
  const Attributes& numbers;
  int64_t first(int axis) const { return numbers[size_t(axis) * 3]; }
  int64_t second(int axis) const { return numbers[size_t(axis) * 3 + 1]; }
  int64_t third(int axis) const { return numbers[size_t(axis) * 3 + 2]; }
};

// unfold, and fold its adjoint: for each window axis the axis, size, step, dilation.  fold adds the
// size of the axis that comes out.  Windows are appended after the input's axes in this order.
struct WindowAxis {
  int axis;
  int64_t size, step, dilation, extent;
};
inline constexpr size_t kWindowFields = 5;  // unfold stores the input's size as extent
inline int window_count(const Attributes& a) { return int(a.size() / kWindowFields); }
inline WindowAxis window_of(const Attributes& a, int i) {
  const int64_t* p = a.data() + size_t(i) * kWindowFields;
  return {int(p[0]), p[1], p[2], p[3], p[4]};
}

// convolve, convolve_input, convolve_weight, pool_argmax: two spatial axes.
// size is the kernel's; extent is the spatial size of x for convolve_input and unused elsewhere.
struct Window2d {
  int64_t size[2], stride[2], before[2], after[2], dilation[2], groups, extent[2];
  static constexpr size_t kFields = 13;
  Window2d()
      : size{1, 1},
        stride{1, 1},
        before{0, 0},
        after{0, 0},
        dilation{1, 1},
        groups(1),
        extent{0, 0} {}
  explicit Window2d(const Attributes& a) {
    for (size_t i = 0; i < 2; i++) {
      size[i] = a.at(i), stride[i] = a.at(2 + i), before[i] = a.at(4 + i), after[i] = a.at(6 + i);
      dilation[i] = a.at(8 + i), extent[i] = a.at(11 + i);
    }
    groups = a.at(10);
  }
  Attributes pack() const {
    return {size[0],  size[1],     stride[0],   stride[1], before[0], before[1], after[0],
            after[1], dilation[0], dilation[1], groups,    extent[0], extent[1]};
  }
  // How many windows fit an axis of `length`.
  int64_t count(int axis, int64_t length) const {
    const int64_t span = dilation[axis] * (size[axis] - 1) + 1;
    const int64_t room = length + before[axis] + after[axis] - span;
    return room < 0 ? 0 : room / stride[axis] + 1;
  }
};

// reshape, expand, arange, random_bits, full: the sizes of the result.  arange and full start with
// the dtype; cast is the dtype alone.  permute: the input axis of each result axis.
inline DType dtype_attribute(const Attributes& a) { return DType(a.at(0)); }

}  // namespace fornax
