// Types, attributes and layouts: what the graph says about values without holding any.
#pragma once
#include <fornax/dtype.h>
#include <fornax/scalar.h>
#include <fornax/shape.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/blocks.h"
#include "graph/op.h"

namespace fornax {

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const Type&) const = default;
};
std::string text_of(const Type& type);  // "f32[4,3]"

// An op's settings: integers whose meaning graph/attributes.h defines per op.
using Attributes = std::vector<int64_t, BlockAllocator<int64_t>>;

// Where the elements of a value lie in its buffer, in elements.  Strides may be 0 or negative.
struct Layout {
  int64_t offset = 0;
  int64_t strides[kMaxRank] = {};
  bool operator==(const Layout&) const = default;
};
// Row-major strides from offset 0.
inline Layout row_major(const Shape& shape) {
  Layout layout;
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; axis--) {
    layout.strides[axis] = stride;
    stride *= shape[axis];
  }
  return layout;
}
// Whether the elements lie in row-major order without gaps, at any offset.  Axes of size 1 and
// values without elements place no demand: this is the library's one definition of contiguous.
inline bool is_contiguous(const Shape& shape, const Layout& layout) {
  int64_t stride = 1;
  bool follows = true;
  for (int axis = shape.rank() - 1; axis >= 0; axis--) {
    if (shape[axis] == 0) return true;
    follows &= shape[axis] == 1 || layout.strides[axis] == stride;
    stride *= shape[axis];
  }
  return follows;
}

// The layout that the view `op` of a value with `type` and `layout` has, or false where the
// elements cannot be reached by strides (a reshape of a non-contiguous value): copy first. `result`
// is the view's type.  Requires: is_view(op).
bool view_layout(Op op, const Attributes& attributes, const Type& type, const Layout& layout,
                 const Type& result, Layout& out);

// What a type rule sees of an op: its inputs' types and its settings.
struct Signature {
  Op op;
  const Type* const* inputs;
  int input_count;
  const Attributes& attributes;
  const Type& input(int i) const { return *inputs[i]; }
};

// The result's type.  Error(shape, dtype, index, value): the operands break the op's rule.
// Pointwise operands broadcast against each other and must already share a dtype (the tensor layer
// promotes); `where` takes a bool first.
Type infer(const Signature& signature);

// The shape that a and b broadcast to.  Error(shape), told of `name`: an axis differs and neither
// is 1.
Shape broadcast(const Shape& a, const Shape& b, const char* name = "broadcast");

}  // namespace fornax
