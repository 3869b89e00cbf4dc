// Groups that run one after another, with memory of their own between them: how an op is made of
// simpler ones.
//
// Objects do not change once prepared; running them is safe from several threads at once.
#pragma once
#include <memory>
#include <vector>

#include "backends/cube/launch.h"
#include "backends/cube/shape_class.h"

namespace fornax::cube {

class Sequence : public PreparedGroup {
 public:
  Sequence(Device& device, const Group& group) : device_(device), inputs_(group.inputs) {}
  void add(std::unique_ptr<PreparedGroup> part) { parts_.push_back(std::move(part)); }
  void add(Launch launch);
  // Memory of `bytes` bytes that lives while the group runs, not initialised.  It is passed on as
  // one more input.
  Place scratch(int64_t bytes);
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  Device& device_;
  const int inputs_;
  std::vector<std::unique_ptr<PreparedGroup>> parts_;
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
Source source_of(Device& device, Sequence& sequence, const Group& group, int operand);
// `source` with its elements in row-major order of its axes, in scratch memory.
Source copied(Device& device, Sequence& sequence, const Source& source);

// The lines along one axis: the nest of `source` and of a row-major result over all other axes,
// with that axis behind them.
Nest lines_along(const Source& source, int axis);

}  // namespace fornax::cube
