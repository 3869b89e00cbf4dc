// Elementwise work: which kernel it needs, and what that is given.
#include <algorithm>
#include <cstdlib>

#include "backends/cube/elementwise.h"
#include "backends/cube/elementwise_kernel.h"
#include "backends/cube/kernels.h"
#include "backends/cube/positions.h"
#include "backends/cube/stepwise.h"
#include "base/error.h"

namespace fornax::cube {
namespace {

constexpr int kVectorBytes = 16;
constexpr int64_t kLeastSquare = 8;  // shorter axes are not worth turning
// Where many blocks compute functions such as exp, a thread has several vectors: their loads are
// under way while it computes, and what a block costs to begin is shared.  Copies are faster
// without.
constexpr int kTurns = 2;
constexpr int64_t kManyBlocks = 32;  // per processor

// The work over its nest, and what is promised of it.
class Planned {
 public:
  Planned(Device& device, Elementwise work) : device_(device), work_(std::move(work)) {
    for (const auto* side : {&work_.reads, &work_.writes}) {
      operands_.insert(operands_.end(), side->begin(), side->end());
    }
    std::vector<Strides> strides;
    for (const ElementwiseOperand& operand : operands_) strides.push_back(operand.strides);
    if (has_arange(work_.graph.steps)) strides.push_back(last_axis_strides(work_.domain));
    nest_ = collapse(work_.domain, std::move(strides));
    if (nest_.rank() == 0) {
      nest_.extents = {1};
      for (size_t i = 0; i < operands_.size(); i++) {
        nest_.strides[i] = {is_number(operands_[i]) ? 0 : 1};
      }
    }
    count_ = nest_.count();
    across_ = find_across();
  }

  bool empty() const { return count_ == 0; }

  // 16 bytes of the widest operand, or as many as all operands have side by side.
  int best_lanes() const {
    if (across_ >= 0) return 1;
    int most = kVectorBytes;
    for (const ElementwiseOperand& operand : operands_) {
      if (is_number(operand)) continue;
      most = std::min(most, kVectorBytes / int(size_of(step_of(operand).type.dtype)));
    }
    for (int lanes = most; lanes > 1; lanes /= 2) {
      const ElementwiseClass known = describe(lanes);
      bool whole = true;
      for (size_t i = 0; i < operands_.size() && whole; i++) {
        const bool repeated = known.rows && nest_.strides[i].back() == 0;
        whole = known.accesses[i] != Access::strided || repeated;
      }
      if (whole) return lanes;
    }
    // Then at least the results are written as vectors, where they lie so.
    const ElementwiseClass known = describe(most);
    return known.accesses.back() == Access::flat ? most : 1;
  }

  std::vector<VectorGroup::Operand> vector_operands(int lanes) const {
    std::vector<VectorGroup::Operand> list;
    const ElementwiseClass known = describe(lanes);
    for (size_t i = 0; i < operands_.size(); i++) {
      if (known.views[i].alignment == 1) continue;
      list.push_back({operands_[i].place, known.views[i].dtype, operands_[i].first});
    }
    return list;
  }

  std::unique_ptr<PreparedGroup> make(int lanes) const {
    const ElementwiseClass known = describe(lanes);
    Arguments arguments;
    for (size_t i = 0; i < operands_.size(); i++) {
      pass_view(arguments, operands_[i].place, known.views[i], nest_.extents, nest_.strides[i],
                known.vectors.index, operands_[i].first);
    }
    pass_extents(arguments, nest_.extents, known.vectors.index);
    runtime::Grid grid = grid_of(known.vectors, count_, kElementwiseThreads);
    if (known.across >= 0) {
      std::vector<int64_t> blocks = nest_.extents;
      for (const size_t axis : {size_t(known.across), blocks.size() - 1}) {
        blocks[axis] = ceiling(blocks[axis], kSquare);
      }
      pass_extents(arguments, blocks, known.vectors.index);
      grid = blocks_for(product(blocks), 1);
    } else {
      pass_vectors(arguments, known.vectors, count_);
    }
    auto list = std::make_unique<LaunchList>(device_);
    list->add(Launch(device_, {known.key(), [known] { return build_elementwise(known); }}, grid,
                     std::move(arguments)));
    if (!list->waits() || device_.capabilities().language == runtime::Language::kernel) return list;
    std::unique_ptr<Stepwise> stepwise = prepare_stepwise(device_, work_);
    if (!stepwise) return list;
    return std::make_unique<Meanwhile>(std::move(list), std::move(stepwise));
  }

 private:
  const Step& step_of(const ElementwiseOperand& operand) const {
    return work_.graph.steps[size_t(operand.step)];
  }
  bool is_number(const ElementwiseOperand& operand) const {
    return operand.place.kind == Place::Kind::input && step_of(operand).op == Op::full;
  }

  ElementwiseClass describe(int lanes) const {
    ElementwiseClass known;
    known.name = work_.name;
    for (const Step& step : work_.graph.steps) {
      known.steps.push_back({step.op, {step.type.dtype, {}}, step.inputs, {}, {}});
    }
    known.inputs = work_.inputs;
    for (const ElementwiseOperand& read : work_.reads) known.read_steps.push_back(read.step);
    for (const ElementwiseOperand& write : work_.writes) known.write_steps.push_back(write.step);
    known.across = across_;
    known.vectors.lanes = lanes;
    known.rank = nest_.rank();
    known.vectors.whole = count_ % lanes == 0;
    if (across_ < 0 && computes_functions() &&
        count_ / (kElementwiseThreads * lanes) >= kManyBlocks * device_.capabilities().processors) {
      known.vectors.turns = kTurns;
    }
    known.rows = known.rank == 1 || nest_.extents.back() % lanes == 0;
    std::vector<Span> spans;
    for (size_t i = 0; i < operands_.size(); i++) {
      spans.push_back(span_of(nest_.extents, nest_.strides[i]));
      ViewClass view = view_class(step_of(operands_[i]).type.dtype, nest_.strides[i]);
      view.number = is_number(operands_[i]);
      view.aliased = operands_[i].aliased;
      known.accesses.push_back(access(known, i));
      const bool vectors = known.accesses[i] == Access::flat || known.accesses[i] == Access::vector;
      view.alignment = vectors && !view.number ? lanes : 1;
      known.views.push_back(view);
    }
    known.vectors.index = index_dtype(count_, spans);
    return known;
  }

  bool computes_functions() const {
    const std::vector<Step>& steps = work_.graph.steps;
    return std::any_of(steps.begin() + work_.inputs, steps.end(),
                       [](const Step& step) { return gives_floats(info(step.op).rule); });
  }

  // The axis along which an operand lies closely that does not along the innermost one.
  int find_across() const {
    const int last = nest_.rank() - 1;
    if (nest_.extents[size_t(last)] < kLeastSquare) return -1;
    for (size_t i = 0; i < work_.reads.size(); i++) {
      if (std::abs(nest_.strides[i][size_t(last)]) <= 1) continue;
      for (int axis = 0; axis < last; axis++) {
        if (nest_.strides[i][size_t(axis)] == 1 && nest_.extents[size_t(axis)] >= kLeastSquare) {
          return axis;
        }
      }
    }
    return -1;
  }

  Access access(const ElementwiseClass& known, size_t operand) const {
    const Strides& strides = nest_.strides[operand];
    if (across_ >= 0) {
      const bool read = operand < work_.reads.size();
      const bool turned = read && strides[size_t(across_)] == 1 && std::abs(strides.back()) > 1;
      return turned ? Access::staged : Access::strided;
    }
    if (strides == row_major_strides(nest_.extents)) return Access::flat;
    const bool none = std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
    if (none) return Access::single;
    const bool aligned = known.rank > 1 && known.rows && strides.back() == 1 &&
                         std::all_of(strides.begin(), strides.end() - 1,
                                     [&](int64_t s) { return s % known.vectors.lanes == 0; });
    return aligned ? Access::vector : Access::strided;
  }

  Device& device_;
  Elementwise work_;
  std::vector<ElementwiseOperand> operands_;  // reads, then writes
  Nest nest_;
  int64_t count_ = 0;
  int across_ = -1;
};

struct Nothing : PreparedGroup {
  void run(std::span<const Argument>, std::span<const Argument>) const override {}
};

}  // namespace

std::unique_ptr<PreparedGroup> prepare_elementwise(Device& device, Elementwise work) {
  auto planned = std::make_shared<const Planned>(device, std::move(work));
  if (planned->empty()) return std::make_unique<Nothing>();
  const int lanes = planned->best_lanes();
  return std::make_unique<VectorGroup>(lanes, planned->vector_operands(lanes),
                                       [planned](int n) { return planned->make(n); });
}

Elementwise elementwise_of(const Group& group) {
  Elementwise work;
  work.name = "pointwise";
  work.graph = group.graph;
  work.inputs = group.inputs;
  work.domain = group.domain;
  const auto& steps = group.graph.steps;
  for (size_t i = 0; i < group.graph.outputs.size(); i++) {
    const int step = group.graph.outputs[i];
    work.writes.push_back(
        {Place::output(int(i)), step, 0,
         strides_over(group.domain, steps[size_t(step)].type.shape, group.output_layout(i)),
         false});
  }
  for (int i = 0; i < group.inputs; i++) {
    const Step& step = steps[size_t(i)];
    ElementwiseOperand read{Place::input(i), i, 0,
                            strides_over(group.domain, step.type.shape, group.layouts[size_t(i)]),
                            false};
    // An output of this type may take the input's buffer over.
    for (ElementwiseOperand& write : work.writes) {
      if (step.op == Op::full || steps[size_t(write.step)].type != step.type) continue;
      if (!is_contiguous(step.type.shape, group.layouts[size_t(i)])) continue;
      read.aliased = write.aliased = true;
    }
    work.reads.push_back(std::move(read));
  }
  return work;
}

std::unique_ptr<PreparedGroup> prepare_pointwise(Device& device, const Group& group) {
  return prepare_elementwise(device, elementwise_of(group));
}

std::unique_ptr<PreparedGroup> prepare_cast(Device& device, const CopySide& from, DType from_dtype,
                                            const CopySide& to, DType to_dtype,
                                            const Shape& domain) {
  Elementwise work;
  work.name = "copy";
  work.domain = domain;
  const Op op = from_dtype == to_dtype ? Op::copy : Op::cast;
  work.graph.steps = {{from.number ? Op::full : Op::leaf, {from_dtype, {}}, {}, {}, {}},
                      {op, {to_dtype, {}}, {0}, {}, {}}};
  work.inputs = 1;
  work.reads = {{from.place, 0, from.first, from.strides, false}};
  work.writes = {{to.place, 1, to.first, to.strides, false}};
  return prepare_elementwise(device, std::move(work));
}
std::unique_ptr<PreparedGroup> prepare_copy(Device& device, const CopySide& from,
                                            const CopySide& to, DType dtype, const Shape& domain) {
  return prepare_cast(device, from, dtype, to, dtype, domain);
}

}  // namespace fornax::cube
