// Running groups on flex's kernels without a device, and what they should give by graph/evaluate.h.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "backends/flex/kernels.h"
#include "backends/flex/memory.h"
#include "graph/evaluate.h"

namespace fornax::flex {

// The elements of a tensor in row-major order.
using Words = std::vector<Word>;

inline bool same_number(DType dtype, Word a, Word b) {
  if (is_floating(dtype) && as<double>(a) != as<double>(a)) return as<double>(b) != as<double>(b);
  return a == b;
}

// A tensor in memory, whose elements may lie anywhere in its buffer.
struct Tensor {
  Type type;
  Layout layout;
  Ref<Buffer> buffer;

  int64_t place(int64_t element) const {
    int64_t offset = layout.offset;
    for (int axis = type.shape.rank() - 1; axis >= 0; axis--) {
      offset += element % type.shape[axis] * layout.strides[axis];
      element /= type.shape[axis];
    }
    return offset;
  }
  Word at(int64_t element) const { return load(type.dtype, buffer->data, place(element)); }
  Words words() const {
    Words all;
    for (int64_t i = 0; i < type.shape.element_count(); i++) all.push_back(at(i));
    return all;
  }
};

inline Tensor empty(const Type& type) {
  const size_t bytes = size_t(type.shape.element_count()) * size_of(type.dtype);
  return {type, row_major(type.shape), allocate_buffer(0, bytes)};
}

// Numbers that matter to `dtype`: small ones, and its special ones.
inline Word random_word(DType dtype, std::mt19937& random) {
  static constexpr double kSpecial[] = {0.0,    -0.0,     1.0,       -1.0,  0.5, 1e30,
                                        -1e30,  1e-42,    1e300,     255.0, 2.5, 100.0,
                                        -128.0, INFINITY, -INFINITY, NAN,   1e5, -0.75};
  Word word = word_of(std::uniform_real_distribution<double>(-8, 8)(random));
  if (random() % 4 == 0) word = word_of(kSpecial[random() % std::size(kSpecial)]);
  if (!is_floating(dtype) && random() % 2 == 0) {
    word = Word{uint64_t(random()) << 32 | random()};
    convert(DType::u64, dtype, std::span(&word, 1));
    return word;
  }
  convert(DType::f64, dtype, std::span(&word, 1));
  return word;
}

inline Tensor random_tensor(const Type& type, std::mt19937& random) {
  Tensor tensor = empty(type);
  for (int64_t i = 0; i < type.shape.element_count(); i++) {
    store(type.dtype, tensor.buffer->data, i, random_word(type.dtype, random));
  }
  return tensor;
}

// A tensor whose axes are walked in another order, backwards, with gaps or not at all.
inline Tensor random_view(const Type& type, std::mt19937& random) {
  const int rank = type.shape.rank();
  std::vector<int> order;
  for (int axis = 0; axis < rank; axis++) order.push_back(axis);
  std::shuffle(order.begin(), order.end(), random);
  Layout layout;
  int64_t extent = 1;
  for (int axis : order) {
    const int64_t stride = extent * (1 + int64_t(random() % 2));
    const int kind = int(random() % 4);
    layout.strides[axis] = kind == 0 ? 0 : kind == 1 ? -stride : stride;
    if (kind == 1) layout.offset += stride * std::max<int64_t>(type.shape[axis] - 1, 0);
    if (kind != 0) extent = stride * std::max<int64_t>(type.shape[axis], 1);
  }
  Tensor memory = random_tensor({type.dtype, {extent + 1}}, random);
  return {type, layout, memory.buffer};
}

// A group over inputs, run.
struct Case {
  Group group;
  std::vector<Tensor> inputs;
  std::vector<Argument> arguments;

  int input(const Tensor& tensor) {
    Step leaf;
    leaf.type = tensor.type;
    group.graph.steps.push_back(leaf);
    Layout layout = tensor.layout;
    layout.offset = 0;
    group.layouts.push_back(layout);
    inputs.push_back(tensor);
    arguments.push_back({tensor.buffer.get(), tensor.layout.offset, {}});
    return group.inputs++;
  }
  int number(DType dtype, Scalar scalar) {
    Step full;
    full.op = Op::full;
    full.type = {dtype, {}};
    full.scalar = scalar;
    group.graph.steps.push_back(full);
    group.layouts.push_back({});
    inputs.push_back({});
    arguments.push_back({nullptr, 0, scalar});
    return group.inputs++;
  }
  int add(Op op, std::vector<int> operands, Attributes attributes = {}) {
    const int step = group.graph.add(op, std::move(operands), std::move(attributes));
    return step;
  }
  Tensor output(int step) const { return empty(group.graph.steps[size_t(step)].type); }

  // Outputs without a tensor are made.
  std::vector<Tensor> run(std::vector<Tensor> outputs = {}) {
    std::vector<Argument> to;
    for (size_t i = outputs.size(); i < group.graph.outputs.size(); i++) {
      outputs.push_back(output(group.graph.outputs[i]));
    }
    for (const Tensor& tensor : outputs) to.push_back({tensor.buffer.get(), 0, {}});
    const auto kernel = group.anchor < 0 ? prepare_pointwise(group) : prepare_reduce(group);
    kernel->run(arguments, to);
    return outputs;
  }
};

inline Tensor run_one(Op op, const std::vector<Tensor>& operands,
                      const Attributes& attributes = {}) {
  Case c;
  std::vector<int> numbers;
  for (const Tensor& tensor : operands) numbers.push_back(c.input(tensor));
  const int step = c.add(op, numbers, attributes);
  c.group.graph.outputs = {step};
  c.group.domain = c.group.graph.steps[size_t(step)].type.shape;
  if (is_reduce(op)) {
    c.group.anchor = step;
    c.group.domain = operands[0].type.shape;
  }
  return c.run()[0];
}

// Distance from `expected` in units of its last place in `dtype`.
inline double ulps(DType dtype, double expected, double got) {
  if (expected != expected || got != got) return (expected != expected) == (got != got) ? 0 : 1e9;
  if (expected == got) return 0;
  if (std::isinf(got) || std::isinf(expected)) {
    // One rounding may already overflow where the other does not.
    const double limit = dtype == DType::f64 ? 1.7e308 : dtype == DType::f16 ? 65000 : 3.3e38;
    return std::fabs(expected) > limit && std::fabs(got) > limit ? 1 : 1e9;
  }
  const int digits = dtype == DType::f64      ? 53
                     : dtype == DType::f32    ? 24
                     : dtype == DType::f16    ? 11
                     : dtype == DType::bf16   ? 8
                     : dtype == DType::f8e4m3 ? 4
                                              : 3;
  const int least = dtype == DType::f64      ? -1074
                    : dtype == DType::f32    ? -149
                    : dtype == DType::f16    ? -24
                    : dtype == DType::bf16   ? -133
                    : dtype == DType::f8e4m3 ? -9
                                             : -16;
  const int exponent = expected == 0 ? least : std::ilogb(expected) - digits + 1;
  return std::fabs(expected - got) / std::ldexp(1.0, std::max(exponent, least));
}

inline bool takes(Op op, DType dtype) {
  switch (info(op).rule) {
    case Rule::signed_same:
      return !is_boolean(dtype);
    case Rule::floating:
    case Rule::exponential:
    case Rule::floating_boolean:
      return is_floating(dtype);
    case Rule::bitwise:
      return !is_floating(dtype);
    default:
      return true;
  }
}

}  // namespace fornax::flex
