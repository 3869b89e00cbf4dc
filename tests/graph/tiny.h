// An evaluator of small graphs: leaves, numbers, pointwise ops, casts and views.  For tests alone.
#pragma once
#include <vector>

#include "base/error.h"
#include "graph/evaluate.h"
#include "graph/graph.h"

namespace fornax::testing {

// The element of `layout` at position `flat` of `shape` in row-major order.
inline int64_t place_of(const Shape& shape, const Layout& layout, int64_t flat) {
  int64_t place = layout.offset;
  for (int axis = shape.rank() - 1; axis >= 0; axis--) {
    place += flat % shape[axis] * layout.strides[axis];
    flat /= shape[axis];
  }
  return place;
}

// Strides that repeat a row-major value of shape `from` over `to`.
inline Layout broadcast_layout(const Shape& from, const Shape& to) {
  Layout layout;
  const Layout own = row_major(from);
  const int shift = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); axis++) {
    layout.strides[axis + shift] = from[axis] == 1 ? 0 : own.strides[axis];
  }
  return layout;
}

using Words = std::vector<Word>;

inline Words read(const Words& words, const Shape& shape, const Layout& layout) {
  Words result(size_t(shape.element_count()));
  for (size_t i = 0; i < result.size(); i++) {
    result[i] = words.at(size_t(place_of(shape, layout, int64_t(i))));
  }
  return result;
}

inline Words value_of(const Graph& graph, const Step& step, const std::vector<Words>& values) {
  const Shape& shape = step.type.shape;
  if (is_pointwise(step.op)) {
    std::vector<Words> operands;
    for (int i : step.inputs) {
      const Shape& from = graph.steps[size_t(i)].type.shape;
      operands.push_back(read(values[size_t(i)], shape, broadcast_layout(from, shape)));
    }
    std::vector<const Word*> pointers;
    for (const Words& words : operands) pointers.push_back(words.data());
    Words result(size_t(shape.element_count()));
    evaluate(step.op, graph.steps[size_t(step.inputs.back())].type.dtype, pointers, result);
    return result;
  }
  if (step.op == Op::full) {
    return Words(size_t(shape.element_count()), word_of(step.type.dtype, step.scalar));
  }
  const Type& from = graph.steps[size_t(step.inputs.at(0))].type;
  Words words = values[size_t(step.inputs[0])];
  if (step.op == Op::cast) {
    convert(from.dtype, step.type.dtype, words);
    return words;
  }
  Layout layout;
  FORNAX_CHECK(is_view(step.op) && view_layout(step.op, step.attributes, from,
                                               row_major(from.shape), step.type, layout));
  return read(words, shape, layout);
}

// The outputs' words, given those of the leaves in order.
inline std::vector<Words> run(const Graph& graph, const std::vector<Words>& leaves) {
  std::vector<Words> values, outputs;
  size_t leaf = 0;
  for (const Step& step : graph.steps) {
    values.push_back(step.op == Op::leaf ? leaves.at(leaf++) : value_of(graph, step, values));
  }
  for (int output : graph.outputs) outputs.push_back(values[size_t(output)]);
  return outputs;
}

}  // namespace fornax::testing
