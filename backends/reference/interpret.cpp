// Checking a group against the rules of the seam, and computing its steps one after another.
#include "backends/reference/interpret.h"

#include <algorithm>

#include "backends/reference/value.h"
#include "base/error.h"

namespace fornax::reference {
namespace {

using ValueRule = void (*)(const Work&, Value&);

// Null for pointwise ops, which the value column computes.
constexpr ValueRule kRules[] = {
#define OP1(...) nullptr,
#define OP2(...) nullptr,
#define OP3(...) nullptr,
#define OPX(name, ...) value_##name,
#include <fornax/ops.def>
};

// Casts work element by element like the ops with a value column, and stand among them.
bool works_by_element(Op op) { return is_pointwise(op) || op == Op::cast; }

// The inferred type of step `number`, whose anchor reads the domain.
Type inferred(const Group& group, int number) {
  const Step& step = group.graph.steps[size_t(number)];
  std::vector<Type> types;
  for (int input : step.inputs) types.push_back(group.graph.steps[size_t(input)].type);
  if (is_reduce(step.op)) {
    types[0].shape = broadcast(types[0].shape, group.domain);
    FORNAX_CHECK(types[0].shape == group.domain);
  }
  std::vector<const Type*> pointers;
  for (const Type& type : types) pointers.push_back(&type);
  return infer({step.op, pointers.data(), int(pointers.size()), step.attributes});
}

[[noreturn]] void invalid(int number, const Step& step, std::string_view rule) {
  fail(ErrorKind::internal, "reference: step %{} ({}) of a group {}; please report it", number,
       info(step.op).name, rule);
}

void check_step(const Group& group, int number) {
  const Step& step = group.graph.steps[size_t(number)];
  const bool is_input = number < group.inputs;
  if (is_input != (step.op == Op::leaf || (step.op == Op::full && number != group.anchor))) {
    invalid(number, step, is_input ? "is an input but computed" : "is an input behind the inputs");
  }
  if (is_input) return;
  if (!works_by_element(step.op) && number != group.anchor) {
    invalid(number, step, "moves data but is not the anchor");
  }
  for (int input : step.inputs) {
    if (input < 0 || input >= number) invalid(number, step, "reads a later step");
  }
  Type type;
  try {
    type = inferred(group, number);
    // A pointwise step may be larger than what it reads: it then has the shape of its group.
    if (is_pointwise(step.op)) type.shape = broadcast(type.shape, step.type.shape);
  } catch (const Error& error) {
    invalid(number, step, fmt::format("breaks a rule: {}", error.what()));
  }
  if (type != step.type) {
    invalid(number, step, fmt::format("is {}, not {}", text_of(step.type), text_of(type)));
  }
}

// The words of an input, read through its layout.
Value loaded(const Step& step, const Layout& layout, const Argument& argument) {
  Value value{step.type, std::vector<Word>(size_t(step.type.shape.element_count()))};
  if (step.op == Op::full) {
    std::fill(value.words.begin(), value.words.end(), word_of(step.type.dtype, argument.scalar));
    return value;
  }
  each(step.type.shape, [&](const Position& at, size_t i) {
    int64_t place = argument.offset + layout.offset;
    for (int axis = 0; axis < step.type.shape.rank(); axis++) {
      place += at[size_t(axis)] * layout.strides[axis];
    }
    value.words[i] = load(step.type.dtype, argument.buffer->data, place);
  });
  return value;
}

void compute_pointwise(const Work& work, Value& result) {
  std::vector<Value> repeated(work.inputs.size());
  std::vector<const Word*> operands;
  for (size_t i = 0; i < work.inputs.size(); i++) {
    const Value* operand = work.inputs[i];
    if (operand->type.shape != result.type.shape) {
      repeated[i] = broadcast_to(*operand, result.type.shape);
      operand = &repeated[i];
    }
    operands.push_back(operand->words.data());
  }
  evaluate(work.step.op, work.inputs.back()->type.dtype, operands, result.words);
}

Value computed(const Group& group, const Step& step, const std::vector<Value>& values) {
  Value result{step.type, std::vector<Word>(size_t(step.type.shape.element_count()))};
  std::vector<const Value*> inputs;
  for (int input : step.inputs) inputs.push_back(&values[size_t(input)]);
  const ValueRule rule = kRules[size_t(step.op)];
  if (rule == nullptr) {
    compute_pointwise({step, inputs}, result);
    return result;
  }
  Value domain;
  if (is_reduce(step.op) && inputs[0]->type.shape != group.domain) {
    domain = broadcast_to(*inputs[0], group.domain);
    inputs[0] = &domain;
  }
  rule({step, inputs}, result);
  round_to(result.type.dtype, result.words);
  return result;
}

}  // namespace

void check(const Group& group) {
  const int steps = int(group.graph.steps.size());
  FORNAX_CHECK(group.inputs >= 0 && group.inputs <= steps);
  FORNAX_CHECK(int(group.layouts.size()) == group.inputs);
  FORNAX_CHECK(group.anchor == -1 || (group.anchor >= group.inputs && group.anchor < steps));
  for (int number = 0; number < steps; number++) check_step(group, number);
  if (group.anchor >= 0 && !is_reduce(group.graph.steps[size_t(group.anchor)].op)) {
    FORNAX_CHECK(steps == group.inputs + 1);
  }
  for (int output : group.graph.outputs) FORNAX_CHECK(output >= 0 && output < steps);
}

void interpret(const Group& group, std::span<const Argument> inputs,
               std::span<const Argument> outputs) {
  const Graph& graph = group.graph;
  FORNAX_CHECK(int(inputs.size()) == group.inputs && outputs.size() == graph.outputs.size());
  std::vector<Value> values;
  values.reserve(graph.steps.size());
  for (size_t i = 0; i < graph.steps.size(); i++) {
    const Step& step = graph.steps[i];
    values.push_back(i < inputs.size() ? loaded(step, group.layouts[i], inputs[i])
                                       : computed(group, step, values));
  }
  for (size_t i = 0; i < outputs.size(); i++) {
    const Value& value = values[size_t(graph.outputs[i])];
    const Argument& output = outputs[i];
    for (size_t k = 0; k < value.words.size(); k++) {
      store(value.type.dtype, output.buffer->data, output.offset + int64_t(k), value.words[k]);
    }
  }
}

}  // namespace fornax::reference
