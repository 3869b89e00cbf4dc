// How an op is made of simpler ones: groups that run one after another, with memory of their own
// between them.
//
// Objects do not change once prepared; running them is safe from several threads at once.
#pragma once
#include <memory>
#include <vector>

#include "backends/cube/launch.h"
#include "backends/cube/shape_class.h"

namespace fornax::cube {

class ScratchSequence : public Sequence {
 public:
  ScratchSequence(Device& device, const Group& group) : device_(device), inputs_(group.inputs) {}
  using Sequence::add;
  void add(Launch launch);
  // Memory of `bytes` bytes that lives while the group runs, not initialised.  It is passed on as
  // one more input.
  Place scratch(int64_t bytes);
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  Device& device_;
  const int inputs_;
  std::vector<size_t> scratch_;
};

// A tensor in memory: the input of an anchor, or a copy of it.
struct Source {
  Place place = {};
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;
};
// Operand number `operand` of the group's anchor.  A number is put into memory first, once.
Source source_of(Device& device, ScratchSequence& sequence, const Group& group, int operand);
// `source` with its elements in row-major order of its axes, in scratch memory.
Source copied(Device& device, ScratchSequence& sequence, const Source& source);

// The lines along one axis: the nest of `source` and of a row-major result over all other axes,
// with that axis behind them.
Nest lines_along(const Source& source, int axis);

}  // namespace fornax::cube
