#include "backends/cube/sequence.h"

#include <array>

#include "backends/cube/batch.h"
#include "backends/cube/elementwise.h"
#include "backends/cube/operand.h"
#include "base/error.h"
#include "base/few.h"

namespace fornax::cube {
namespace {

constexpr size_t kMostScratch = 8;

}  // namespace

void ScratchSequence::add(Launch launch) {
  auto list = std::make_unique<LaunchList>(device_);
  list->add(std::move(launch));
  add(std::move(list));
}

Place ScratchSequence::scratch(int64_t bytes) {
  FORNAX_CHECK(scratch_.size() < kMostScratch);
  scratch_.push_back(size_t(bytes));
  return Place::input(inputs_ + int(scratch_.size()) - 1);
}

void ScratchSequence::run(std::span<const Argument> inputs,
                          std::span<const Argument> outputs) const {
  if (scratch_.empty()) return Sequence::run(inputs, outputs);
  ScratchMemory memory(device_);
  std::array<Buffer, kMostScratch> buffers;
  Few<Argument, 16> all;
  for (const Argument& input : inputs) all.push_back(input);
  for (size_t i = 0; i < scratch_.size(); i++) {
    buffers[i].data = reinterpret_cast<void*>(memory.allocate(scratch_[i]));
    buffers[i].bytes = scratch_[i];
    all.push_back({&buffers[i], 0, {}});
  }
  Sequence::run({all.begin(), all.end()}, outputs);
}

Source source_of(Device& device, ScratchSequence& sequence, const Group& group, int operand) {
  const int input = group.graph.steps[size_t(group.anchor)].inputs[size_t(operand)];
  const Step& step = group.graph.steps[size_t(input)];
  Source source{Place::input(input), step.type.dtype, step.type.shape, {}};
  if (step.op != Op::full) {
    source.strides = strides_over(step.type.shape, step.type.shape, group.layouts[size_t(input)]);
    return source;
  }
  source.strides.assign(size_t(source.shape.rank()), 0);
  source.place = sequence.scratch(int64_t(size_of(source.dtype)));
  sequence.add(prepare_copy(device, {Place::input(input), 0, {}, true},
                            {source.place, 0, {}, false}, source.dtype, {}));
  return source;
}

Source copied(Device& device, ScratchSequence& sequence, const Source& source) {
  Source copy = source;
  copy.strides = row_major_strides({source.shape.begin(), source.shape.end()});
  copy.place = sequence.scratch(source.shape.element_count() * int64_t(size_of(source.dtype)));
  sequence.add(prepare_copy(device, {source.place, 0, source.strides, false},
                            {copy.place, 0, copy.strides, false}, source.dtype, source.shape));
  return copy;
}

Nest lines_along(const Source& source, int axis) {
  Shape others;
  std::vector<Strides> strides(2);
  const Strides result = row_major_strides({source.shape.begin(), source.shape.end()});
  for (int i = 0; i < source.shape.rank(); i++) {
    if (i == axis) continue;
    others.push_back(source.shape[i]);
    strides[0].push_back(source.strides[size_t(i)]);
    strides[1].push_back(result[size_t(i)]);
  }
  Nest nest = collapse(others, std::move(strides));
  nest.extents.push_back(source.shape[axis]);
  nest.strides[0].push_back(source.strides[size_t(axis)]);
  nest.strides[1].push_back(result[size_t(axis)]);
  return nest;
}

}  // namespace fornax::cube
