// prepare_reduce(): pointwise steps, one reduction, pointwise steps on its result.
//
// The first part is a Program whose first output is what is reduced, in the type that the reduction
// computes in: f32 for all floats up to 32 bits, f64, i64, u64.  The last part is a Program that
// casts the result to its dtype and goes on from there.  So there are loops for four types only,
// and a reduction gives the same bits whatever is fused with it.
#include <algorithm>

#include "backends/flex/kernels.h"
#include "backends/flex/memory.h"
#include "backends/flex/program.h"
#include "backends/flex/rows.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::flex {
namespace {

// Steps of a group copied to a graph of their own, with the inputs they read.
class Part {
 public:
  // result: the step that comes as a leaf of dtype `computed`; -1 for none.
  Part(const Group& group, int result, DType computed)
      : group_(group),
        number_(size(), -1),
        needed_(size(), false),
        result_(result),
        computed_(computed) {}

  void want(int step) {
    if (needed_[size_t(step)]) return;
    needed_[size_t(step)] = true;
    if (step == result_) return;
    for (int input : group_.graph.steps[size_t(step)].inputs) want(input);
  }
  // Copies all wanted steps: inputs, then the reduction's result where it is wanted, then the rest.
  void copy();
  int append(Op op, DType dtype, const Shape& shape, int input) {
    Step step;
    step.op = op;
    step.type = {dtype, shape};
    step.inputs = {input};
    graph.steps.push_back(step);
    return int(graph.steps.size()) - 1;
  }
  int number(int step) const { return number_[size_t(step)]; }

  Graph graph;
  std::vector<int> inputs;  // of the group; -1: the reduction's result
  std::vector<Layout> layouts;

 private:
  size_t size() const { return group_.graph.steps.size(); }
  void add(int step, Step copy) {
    number_[size_t(step)] = int(graph.steps.size());
    graph.steps.push_back(std::move(copy));
  }

  const Group& group_;
  std::vector<int> number_;
  std::vector<bool> needed_;
  int result_;
  DType computed_;
};

void Part::copy() {
  const auto& steps = group_.graph.steps;
  for (int i = 0; i < group_.inputs; i++) {
    if (!needed_[size_t(i)]) continue;
    add(i, steps[size_t(i)]);
    inputs.push_back(i);
    layouts.push_back(group_.layouts[size_t(i)]);
  }
  if (result_ >= 0 && needed_[size_t(result_)]) {
    Step leaf;
    leaf.type = {computed_, steps[size_t(result_)].type.shape};
    layouts.push_back(row_major(leaf.type.shape));
    inputs.push_back(-1);
    graph.steps.push_back(leaf);
  }
  const int first = int(graph.steps.size());
  if (result_ >= 0 && needed_[size_t(result_)]) {
    const Type& type = steps[size_t(result_)].type;
    number_[size_t(result_)] = append(Op::cast, type.dtype, type.shape, first - 1);
  }
  for (int i = group_.inputs; i < int(size()); i++) {
    if (!needed_[size_t(i)] || i == result_) continue;
    Step step = steps[size_t(i)];
    for (int& input : step.inputs) input = number_[size_t(input)];
    add(i, std::move(step));
  }
}

std::vector<Argument> arguments_of(const Part& part, std::span<const Argument> inputs,
                                   Buffer* result) {
  std::vector<Argument> arguments;
  for (int input : part.inputs) {
    arguments.push_back(input < 0 ? Argument{result, 0, {}} : inputs[size_t(input)]);
  }
  return arguments;
}

char* first_byte(const Argument& argument, DType dtype) {
  return static_cast<char*>(argument.buffer->data) + size_t(argument.offset) * size_of(dtype);
}

// Elements as the first program computes them, or as they lie in memory.
template <class T>
class Computed : public Elements<T> {
 public:
  Computed(const Program& program, std::span<const Argument> inputs, std::vector<char*> outputs)
      : program_(program), inputs_(inputs), outputs_(std::move(outputs)) {}

  const T* get(int64_t begin, int64_t end, T* buffer) const override {
    std::vector<char*> outputs = outputs_;
    // Where element 0 would lie, if the buffer began there.
    outputs[0] =
        reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(buffer) - uintptr_t(begin) * sizeof(T));
    program_.run(inputs_, outputs, begin, end);
    return buffer;
  }

 private:
  const Program& program_;
  std::span<const Argument> inputs_;
  std::vector<char*> outputs_;
};
template <class T>
class Stored : public Elements<T> {
 public:
  explicit Stored(const T* data) : data_(data) {}
  const T* get(int64_t begin, int64_t, T*) const override { return data_ + begin; }

 private:
  const T* data_;
};

class ReduceKernel : public Kernel {
 public:
  explicit ReduceKernel(const Group& group);
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  struct Output {
    int index;  // of the group's outputs
    DType dtype;
  };
  void split_outputs(const Group& group);
  template <class T>
  void reduce(std::span<const Argument> inputs, std::span<const Argument> outputs,
              void* result) const;

  Op op_;
  DType computed_;  // what the reduction computes in
  Shape result_shape_;
  Walk walk_;
  std::unique_ptr<Part> before_, after_;
  std::vector<Output> before_outputs_, after_outputs_;
  std::unique_ptr<Program> first_, last_;
  int stored_input_ = -1;   // the group's input that is reduced as it lies in memory
  int direct_output_ = -1;  // the output that the reduction itself writes
};

ReduceKernel::ReduceKernel(const Group& group)
    : op_(group.graph.steps[size_t(group.anchor)].op),
      walk_(group.domain, axes_of(group.graph.steps[size_t(group.anchor)].attributes)) {
  const Step& anchor = group.graph.steps[size_t(group.anchor)];
  const int operand = anchor.inputs[0];
  const DType dtype = group.graph.steps[size_t(operand)].type.dtype;
  computed_ = computed_in(op_, dtype);
  result_shape_ = anchor.type.shape;
  split_outputs(group);

  const bool stored = operand < group.inputs && dtype == computed_ && before_outputs_.empty() &&
                      group.graph.steps[size_t(operand)].op == Op::leaf && !is_question(op_) &&
                      is_contiguous(group.domain, group.layouts[size_t(operand)]);
  if (stored) stored_input_ = operand;
  before_ = std::make_unique<Part>(group, -1, computed_);
  before_->want(operand);
  for (const Output& output : before_outputs_)
    before_->want(group.graph.outputs[size_t(output.index)]);
  before_->copy();
  int reduced = before_->number(operand);
  if (is_question(op_)) reduced = before_->append(Op::cast, DType::bool_, group.domain, reduced);
  if (before_->graph.steps[size_t(reduced)].type.dtype != computed_) {
    reduced = before_->append(Op::cast, computed_, group.domain, reduced);
  }
  before_->graph.outputs = {reduced};
  for (const Output& output : before_outputs_) {
    before_->graph.outputs.push_back(before_->number(group.graph.outputs[size_t(output.index)]));
  }
  first_ = std::make_unique<Program>(before_->graph, int(before_->inputs.size()), group.domain,
                                     before_->layouts);

  const DType given = is_position(op_) ? DType::i64 : computed_;
  const bool only_result = after_outputs_.size() == 1 && given == anchor.type.dtype &&
                           group.graph.outputs[size_t(after_outputs_[0].index)] == group.anchor;
  if (only_result) {
    direct_output_ = after_outputs_[0].index;
    return;
  }
  after_ = std::make_unique<Part>(group, group.anchor, given);
  after_->want(group.anchor);
  for (const Output& output : after_outputs_)
    after_->want(group.graph.outputs[size_t(output.index)]);
  after_->copy();
  for (const Output& output : after_outputs_) {
    after_->graph.outputs.push_back(after_->number(group.graph.outputs[size_t(output.index)]));
  }
  last_ = std::make_unique<Program>(after_->graph, int(after_->inputs.size()), result_shape_,
                                    after_->layouts);
}

// Outputs that depend on the reduction come after it.
void ReduceKernel::split_outputs(const Group& group) {
  const auto& steps = group.graph.steps;
  std::vector<bool> depends(steps.size(), false);
  depends[size_t(group.anchor)] = true;
  for (size_t i = size_t(group.inputs); i < steps.size(); i++) {
    for (int input : steps[i].inputs) depends[i] = depends[i] || depends[size_t(input)];
  }
  for (size_t i = 0; i < group.graph.outputs.size(); i++) {
    const int step = group.graph.outputs[i];
    // What neither depends on it nor has the domain's shape is computed beside the result.
    const bool after = depends[size_t(step)] || steps[size_t(step)].type.shape != group.domain;
    (after ? after_outputs_ : before_outputs_).push_back({int(i), steps[size_t(step)].type.dtype});
  }
}

template <class T>
void ReduceKernel::reduce(std::span<const Argument> inputs, std::span<const Argument> outputs,
                          void* result) const {
  const auto arguments = arguments_of(*before_, inputs, nullptr);
  std::vector<char*> pointers = {nullptr};
  for (const Output& output : before_outputs_) {
    pointers.push_back(first_byte(outputs[size_t(output.index)], output.dtype));
  }
  std::unique_ptr<Elements<T>> elements;
  if (stored_input_ >= 0) {
    elements = std::make_unique<Stored<T>>(data_of<const T>(inputs[size_t(stored_input_)]));
  } else {
    elements = std::make_unique<Computed<T>>(*first_, arguments, pointers);
  }
  const double cost = stored_input_ >= 0 ? 0.08 * sizeof(T) : first_->cost();
  if (is_position(op_)) {
    reduce_position(walk_, *elements, fold_of(op_), cost, static_cast<int64_t*>(result));
  } else if (walk_.empty && is_question(op_)) {
    std::fill_n(static_cast<T*>(result), walk_.outputs(), T(op_ == Op::all));
  } else {
    reduce_fold(walk_, *elements, fold_of(op_), cost, static_cast<T*>(result));
  }
}

void ReduceKernel::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  const int64_t count = result_shape_.element_count();
  if (count == 0) return;
  Ref<Buffer> temporary;
  void* result = nullptr;
  if (direct_output_ >= 0) {
    result = first_byte(outputs[size_t(direct_output_)], is_position(op_) ? DType::i64 : computed_);
  } else {
    temporary = allocate_buffer(0, size_t(count) * sizeof(int64_t));
    result = temporary->data;
  }
  switch (computed_) {
    case DType::f32:
      reduce<float>(inputs, outputs, result);
      break;
    case DType::f64:
      reduce<double>(inputs, outputs, result);
      break;
    case DType::i64:
      reduce<int64_t>(inputs, outputs, result);
      break;
    default:
      reduce<uint64_t>(inputs, outputs, result);
      break;
  }
  if (!last_) return;
  std::vector<char*> pointers;
  for (const Output& output : after_outputs_) {
    pointers.push_back(first_byte(outputs[size_t(output.index)], output.dtype));
  }
  last_->run_whole(arguments_of(*after_, inputs, temporary.get()), pointers);
}

}  // namespace

std::unique_ptr<Kernel> prepare_reduce(const Group& group) {
  const RowPlan plan(group);
  if (plan.levels.size() == 2 && plan.levels[0].reductions.size() == 1 &&
      plan.levels[1].whole.empty()) {
    return std::make_unique<ReduceKernel>(group);
  }
  return has_rows(plan) ? prepare_rows(plan) : prepare_split(plan);
}

}  // namespace fornax::flex
