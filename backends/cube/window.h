// Windows that move over pictures [n, c, h, w], as kernels see them (graph/attributes.h, Window2d).
#pragma once
#include "backends/cube/operand.h"
#include "backends/cube/sequence.h"
#include "graph/attributes.h"

namespace fornax::cube {

// Inside a kernel; axis 0 is the height.  What Extents give is divided by.
struct Window {
  Value size[2], before[2], dilation[2];
  Extent stride[2];

  // Element `tap` of window `number` along `axis` is this element of the picture, which may lie
  // outside of it.
  Value place(int axis, Value number, Value tap) const;
};
Window declare_window(Builder& k, DType index);
void pass_window(Arguments& arguments, const Window2d& window, DType index);

Value within(Value place, Value size);

// Operands of four axes each with a view, walked by their positions.
struct Pictures {
  std::vector<Source> sources;  // the last one is the result, row-major
  std::vector<ViewClass> known;
  DType index = DType::i32;

  Pictures(Device& device, ScratchSequence& sequence, const Group& group);
  const Shape& result() const { return sources.back().shape; }
  std::string key() const;
  // All, or the operands alone.
  std::vector<View> declare(Builder& k, bool with_result = true) const;
  void pass(Arguments& arguments, bool with_result = true) const;
};

}  // namespace fornax::cube
