// Shapes as kernels see them: a nest of few loops, and what is promised of it.  The promises, never
// the sizes, enter the keys of kernels, so that a new size finds the program of the old one.
//
// Plain values and pure functions.
#pragma once
#include <string>
#include <vector>

#include "graph/type.h"

namespace fornax::cube {

using Strides = std::vector<int64_t>;  // in elements, per axis

// The strides with which a value of `shape` and `layout` is walked over `domain`, to which it
// broadcasts.
Strides strides_over(const Shape& domain, const Shape& shape, const Layout& layout);
int64_t product(const std::vector<int64_t>& extents);
// How many times b it takes to hold a.
inline int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }
Strides row_major_strides(const std::vector<int64_t>& extents);

// Loops from the outermost to the innermost, and of every operand a stride per loop.
struct Nest {
  std::vector<int64_t> extents;
  std::vector<int> kinds;        // per axis, as given to collapse()
  std::vector<Strides> strides;  // per operand
  int rank() const { return int(extents.size()); }
  int64_t count() const;          // of positions
  int64_t count(int kind) const;  // of positions along the axes of one kind
};
// The nest over `domain` without axes of size 1, neighbours joined where every operand walks both
// with one stride.  Only axes of one kind are joined (of a reduction, kept and reduced ones);
// without kinds all are of kind 0.  Axes of kind kAlone stay and are not joined.
inline constexpr int kAlone = 1 << 10;
Nest collapse(const Shape& domain, std::vector<Strides> strides, std::vector<int> kinds = {});

// What a kernel knows of a stride.  Those that are neither 0 nor 1 come as numbers, without a sign.
enum class StrideClass : uint8_t { zero, one, forward, backward };
StrideClass class_of(int64_t stride);

// What a kernel knows of an operand.
struct ViewClass {
  DType dtype = DType::f32;
  std::vector<StrideClass> strides;  // per axis of the nest
  bool number = false;               // an input of op full: one number everywhere, no memory
  bool aliased = false;              // another operand may be the same memory
  int alignment = 1;  // what its first element, and every position of a vector, is a multiple of
  int divisor = 1;    // of the strides that come as numbers
  bool backward() const;
};
ViewClass view_class(DType dtype, const Strides& strides);
std::string key_of(const ViewClass& view);  // "f32:f1@4"

// The elements that an operand touches, counted from its position 0: `lowest` <= 0 is the first in
// memory, and from there `count` may be touched.
struct Span {
  int64_t lowest = 0, count = 0;
};
Span span_of(const std::vector<int64_t>& extents, const Strides& strides);

// Whether operands of these spans and `count` positions need 64-bit indices.
DType index_dtype(int64_t count, std::initializer_list<Span> spans);
DType index_dtype(int64_t count, const std::vector<Span>& spans);

// The largest power of two, at most `most`, that divides all of `numbers`.
int common_power(const std::vector<int64_t>& numbers, int most);

}  // namespace fornax::cube
