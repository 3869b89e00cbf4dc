// Running random graphs, and what keeps their numbers tame.
#include <fornax/ops.h>

#include <algorithm>

#include "tests/ops/random_graph.h"
#include "tests/ops/sample.h"

namespace fornax::conformance {
namespace {

constexpr double kLargest = 4;  // what floats are cut to after each op

constexpr struct {
  Op op;
  int operand;
  Domain domain;
} kDomains[] = {
    {Op::reciprocal, 0, {0.5, 2}}, {Op::sqrt, 0, {0.25, 1}},      {Op::rsqrt, 0, {0.5, 2}},
    {Op::exp, 0, {-1, 1}},         {Op::exp2, 0, {-1, 1}},        {Op::expm1, 0, {-1, 1}},
    {Op::log, 0, {0.5, 2}},        {Op::log2, 0, {0.5, 2}},       {Op::log10, 0, {0.5, 2}},
    {Op::log1p, 0, {-0.5, 1}},     {Op::tan, 0, {-0.75, 0.75}},   {Op::asin, 0, {-0.75, 0.75}},
    {Op::acos, 0, {-0.75, 0.75}},  {Op::sinh, 0, {-1, 1}},        {Op::cosh, 0, {-1, 1}},
    {Op::acosh, 0, {1.25, 2.25}},  {Op::atanh, 0, {-0.75, 0.75}}, {Op::div, 0, {0, 1}},
    {Op::div, 1, {0.5, 2}},        {Op::pow, 0, {0.5, 2}},        {Op::pow, 1, {-0.5, 1}},
    {Op::atan2, 0, {-1, 1}},       {Op::atan2, 1, {0.5, 1.5}},    {Op::mul_add, 0, {0, 1}},
    {Op::mul_add, 1, {0, 1}},      {Op::mul_add, 2, {0, 1}},
};

// Keeps numbers small and, where asked for, on the grid of eighths.
Tensor tamed(const Tensor& y, const RandomGraph& graph) {
  if (is_boolean(y.dtype())) return y;
  if (is_integer(y.dtype())) {
    const DType kept = kept_dtype(y.dtype(), graph.wide);
    return kept == y.dtype() ? y % 97 : (y % 97).cast(kept);
  }
  const Tensor bounded = where(is_finite(y), y, 1).clamp(-kLargest, kLargest);
  if (graph.numbers == Numbers::exact) return (bounded * 8).round() / 8;
  return graph.numbers == Numbers::smooth ? bounded * (1 / (2 * kSteepest)) + 0.5 : bounded;
}

// The operands as the op can take them.
std::vector<Tensor> operands_of(const Instruction& step, const std::vector<Tensor>& values,
                                Numbers numbers) {
  std::vector<Tensor> inputs;
  for (int input : step.inputs) inputs.push_back(values[size_t(input)]);
  if (step.op == Op::gather || step.op == Op::scatter) {
    inputs[1] = inputs[1] % inputs[0].shape(step.attributes[0]);
  }
  for (size_t k = 0; k < inputs.size(); k++) {
    if (step.op == Op::random_bits) inputs[k] = inputs[k].cast(DType::u64);
    const auto domain = domain_of(step.op, int(k));
    if (!domain || numbers != Numbers::smooth || !is_floating(inputs[k].dtype())) continue;
    inputs[k] = inputs[k] * (domain->high - domain->low) + domain->low;
  }
  return inputs;
}

}  // namespace

std::optional<Domain> domain_of(Op op, int operand) {
  for (const auto& row : kDomains) {
    if (row.op == op && row.operand == operand) return row.domain;
  }
  return std::nullopt;
}

DType kept_dtype(DType dtype, bool wide) {
  const bool leaves = dtype == DType::i64 || dtype == DType::u32 || dtype == DType::u64;
  return leaves ? (wide ? DType::i64 : DType::i32) : dtype;
}

std::vector<Tensor> run(const RandomGraph& graph, Device device) {
  std::vector<Tensor> values, kept;
  for (size_t i = 0; i < graph.leaves.size(); i++) {
    const Tensor leaf = make({graph.leaves[i]}, 0, Form::contiguous, i, device);
    values.push_back(tamed(leaf, graph));
  }
  for (size_t i = 0; i < graph.instructions.size(); i++) {
    const Instruction& step = graph.instructions[i];
    if (step.flush) device.flush();
    std::vector<Tensor> inputs = operands_of(step, values, graph.numbers);
    const Tensor y = apply(step.op, inputs, step.attributes);
    values.push_back(is_view(step.op) ? y : tamed(y, graph));
    inputs.clear();
    for (int input : step.inputs) {
      if (graph.last_use[size_t(input)] == int(i)) values[size_t(input)] = Tensor();
    }
    if (step.keep) kept.push_back(values.back());
  }
  return kept;
}

}  // namespace fornax::conformance
