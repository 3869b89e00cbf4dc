// Elementwise work as one kernel.  A thread computes a vector of `lanes` neighbouring elements of
// the domain, which are 16 bytes of the widest operand where the facts allow it:
//
//   flat      the operand lies as the domain is counted: one vector access
//   single    one element for all positions: loaded once
//   otherwise its position is worked out: once per vector where rows are whole vectors, and then
//             one vector access where its rows are whole vectors too; else element by element
//
// What is left over where the domain is no whole number of vectors is computed by a thread each.
#include <algorithm>
#include <bit>

#include "backends/cube/elementwise.h"
#include "backends/cube/kernels.h"
#include "backends/cube/operand.h"
#include "base/error.h"

namespace fornax::cube {
namespace {

constexpr int kThreads = 256;
constexpr int kVectorBytes = 16;

enum class Access : uint8_t { flat, single, vector, strided };

// All that the kernel's text follows from.
struct ElementwiseClass {
  std::string name;
  std::vector<Step> steps;  // op, dtype and inputs alone
  int inputs = 0;
  std::vector<int> read_steps, write_steps;
  Vectors vectors;
  bool rows = true;  // each row is a whole number of vectors
  int rank = 1;
  std::vector<ViewClass> views;  // reads, then writes
  std::vector<Access> accesses;

  std::string key() const {
    std::string key = fmt::format("{} {}{} r{}", name, key_of(vectors), rows ? "" : " split", rank);
    for (size_t i = 0; i < views.size(); i++) {
      key += fmt::format(" {}{}", key_of(views[i]), "/1v-"[size_t(accesses[i])]);
    }
    for (size_t i = 0; i < steps.size(); i++) {
      const Step& step = steps[i];
      key += fmt::format("; {} {}", info(step.op).name, name_of(step.type.dtype));
      for (const int input : step.inputs) key += fmt::format(" {}", input);
    }
    key += " ->";
    for (const int step : write_steps) key += fmt::format(" {}", step);
    return key;
  }
};

class ElementwiseKernel {
 public:
  explicit ElementwiseKernel(const ElementwiseClass& known)
      : known_(known), k_(known.name, {.threads = kThreads}) {}

  kernel::Kernel build() {
    const size_t reads = known_.read_steps.size();
    for (size_t i = 0; i < known_.views.size(); i++) {
      const bool written = i >= reads;
      const std::string name =
          written ? fmt::format("y{}", i - reads) : fmt::format("x{}", known_.read_steps[i]);
      views_.push_back(declare_view(k_, name, known_.views[i], written, known_.vectors.index));
    }
    extents_ = declare_extents(k_, known_.rank, known_.vectors.index);
    for_vectors(k_, known_.vectors, [&](Value element, int lanes) { compute(element, lanes); });
    return k_.finish();
  }

 private:
  // The positions of `lanes` elements from `element` on, one for all where they share a row.
  std::vector<Position> positions(Value element, int lanes) {
    const bool needed = std::any_of(known_.accesses.begin(), known_.accesses.end(), [](Access a) {
      return a == Access::vector || a == Access::strided;
    });
    std::vector<Position> list;
    if (!needed) return list;
    for (int lane = 0; lane < (known_.rows ? 1 : lanes); lane++) {
      list.push_back(position_of(k_, extents_, element + lane));
    }
    return list;
  }

  Value index_of_lane(size_t view, const std::vector<Position>& at, int lane) {
    if (!known_.rows) return views_[view].index(k_, at[size_t(lane)]);
    Position position = at[0];
    position.back() = position.back() + lane;
    return views_[view].index(k_, position);
  }

  Value load(size_t view, Value element, const std::vector<Position>& at, int lanes) {
    if (views_[view].number) return views_[view].number;
    const Value memory = views_[view].memory;
    switch (known_.accesses[view]) {
      case Access::flat:
        return k_.load_vector(memory, element, lanes);
      case Access::single:
        return k_.load(memory, k_.constant(known_.vectors.index, 0));
      case Access::vector:
        return k_.load_vector(memory, views_[view].index(k_, at[0]), lanes);
      case Access::strided:
        break;
    }
    if (known_.rows && known_.views[view].strides.back() == StrideClass::zero) {
      return views_[view].load(k_, at[0]);
    }
    std::vector<Value> elements;
    for (int lane = 0; lane < lanes; lane++) {
      elements.push_back(k_.load(memory, index_of_lane(view, at, lane)));
    }
    return k_.pack(elements);
  }

  void store(size_t view, Value element, const std::vector<Position>& at, Value value, int lanes) {
    const Value memory = views_[view].memory;
    switch (known_.accesses[view]) {
      case Access::flat:
        k_.store(memory, element, widen(k_, value, lanes));
        return;
      case Access::single:
        k_.store(memory, k_.constant(known_.vectors.index, 0), value);
        return;
      case Access::vector:
        k_.store(memory, views_[view].index(k_, at[0]), widen(k_, value, lanes));
        return;
      case Access::strided:
        for (int lane = 0; lane < lanes; lane++) {
          k_.store(memory, index_of_lane(view, at, lane), k_.extract(value, lane));
        }
    }
  }

  void compute(Value element, int lanes) {
    const std::vector<Position> at = positions(element, lanes);
    const size_t reads = known_.read_steps.size();
    std::vector<Value> values(size_t(known_.inputs));
    for (size_t i = 0; i < reads; i++) {
      values[size_t(known_.read_steps[i])] = load(i, element, at, lanes);
    }
    for (size_t i = size_t(known_.inputs); i < known_.steps.size(); i++) {
      const Step& step = known_.steps[i];
      std::vector<Value> operands;
      for (const int input : step.inputs) operands.push_back(values[size_t(input)]);
      values.push_back(step.op == Op::cast ? k_.cast(operands[0], step.type.dtype)
                                           : kernel::evaluate(k_, step.op, operands));
    }
    for (size_t i = 0; i < known_.write_steps.size(); i++) {
      store(reads + i, element, at, values[size_t(known_.write_steps[i])], lanes);
    }
  }

  const ElementwiseClass& known_;
  Builder k_;
  std::vector<View> views_;
  std::vector<Extent> extents_;
};

// The work over its nest, and what is promised of it.
class Planned {
 public:
  Planned(Device& device, Elementwise work) : device_(device), work_(std::move(work)) {
    for (const auto* side : {&work_.reads, &work_.writes}) {
      operands_.insert(operands_.end(), side->begin(), side->end());
    }
    std::vector<Strides> strides;
    for (const ElementwiseOperand& operand : operands_) strides.push_back(operand.strides);
    nest_ = collapse(work_.domain, std::move(strides));
    if (nest_.rank() == 0) {
      nest_.extents = {1};
      for (Strides& own : nest_.strides) own = {0};
    }
    count_ = nest_.count();
    for (const ElementwiseOperand& operand : operands_) {
      if (is_number(operand)) continue;
      best_ = std::min(best_, kVectorBytes / int(size_of(step_of(operand).type.dtype)));
    }
  }

  bool empty() const { return count_ == 0; }
  int best_lanes() const { return best_; }

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
    pass_vectors(arguments, known.vectors, count_);
    auto list = std::make_unique<LaunchList>(device_);
    list->add(Launch(device_, {known.key(), [known] { return ElementwiseKernel(known).build(); }},
                     grid_of(known.vectors, count_, kThreads), std::move(arguments)));
    return list;
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
    known.vectors.lanes = lanes;
    known.rank = nest_.rank();
    known.vectors.whole = count_ % lanes == 0;
    known.rows = known.rank == 1 || nest_.extents.back() % lanes == 0;
    std::vector<Span> spans;
    for (size_t i = 0; i < operands_.size(); i++) {
      spans.push_back(span_of(nest_.extents, nest_.strides[i]));
      ViewClass view = view_class(step_of(operands_[i]).type.dtype, nest_.strides[i]);
      view.number = is_number(operands_[i]);
      view.aliased = operands_[i].aliased;
      known.accesses.push_back(access(known, nest_.strides[i]));
      const bool vectors = known.accesses[i] == Access::flat || known.accesses[i] == Access::vector;
      view.alignment = vectors ? lanes : 1;
      known.views.push_back(view);
    }
    known.vectors.index = index_dtype(count_, spans);
    return known;
  }

  Access access(const ElementwiseClass& known, const Strides& strides) const {
    if (strides == row_major_strides(nest_.extents)) return Access::flat;
    if (std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; })) {
      return Access::single;
    }
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
  int best_ = kVectorBytes;
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

std::unique_ptr<PreparedGroup> prepare_pointwise(Device& device, const Group& group) {
  Elementwise work;
  work.name = "pointwise";
  work.graph = group.graph;
  work.inputs = group.inputs;
  work.domain = group.domain;
  const auto& steps = group.graph.steps;
  const Layout plain = row_major(group.domain);
  for (size_t i = 0; i < group.graph.outputs.size(); i++) {
    const int step = group.graph.outputs[i];
    work.writes.push_back({Place::output(int(i)), step, 0,
                           strides_over(group.domain, steps[size_t(step)].type.shape, plain),
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
  return prepare_elementwise(device, std::move(work));
}

std::unique_ptr<PreparedGroup> prepare_copy(Device& device, const CopySide& from,
                                            const CopySide& to, DType dtype, const Shape& domain) {
  Elementwise work;
  work.name = "copy";
  work.domain = domain;
  work.graph.steps = {{from.number ? Op::full : Op::leaf, {dtype, {}}, {}, {}, {}},
                      {Op::copy, {dtype, {}}, {0}, {}, {}}};
  work.inputs = 1;
  work.reads = {{from.place, 0, from.first, from.strides, false}};
  work.writes = {{to.place, 1, to.first, to.strides, false}};
  return prepare_elementwise(device, std::move(work));
}

}  // namespace fornax::cube
