// What the reference interpreter computes with: whole values in memory, row-major, each element as
// a Word, and the function that computes each op that moves data.  No value changes once computed.
#pragma once
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "graph/graph.h"

namespace fornax::reference {

struct Value {
  Type type;
  std::vector<Word> words;
};

// A step about to be computed.
struct Work {
  const Step& step;
  std::span<const Value* const> inputs;
  const Value& input(int i) const { return *inputs[size_t(i)]; }
  const Attributes& attributes() const { return step.attributes; }
};

// One per row of ops.def that moves data.  `result` comes with its type and that many zero words;
// the words left there are rounded to its dtype afterwards, once.
#define OPX(name, ...) void value_##name(const Work& work, Value& result);
#include <fornax/ops.def>

// `value` repeated to `shape`, which it broadcasts to.
Value broadcast_to(const Value& value, const Shape& shape);

using Position = std::array<int64_t, kMaxRank>;

// body(position, flat) for each position of `shape` in row-major order; flat counts from 0.
template <class Body>
void each(const Shape& shape, Body&& body) {
  const int64_t count = shape.element_count();
  Position at{};
  for (int64_t flat = 0; flat < count; flat++) {
    body(std::as_const(at), size_t(flat));
    for (int axis = shape.rank() - 1; axis >= 0 && ++at[size_t(axis)] == shape[axis]; axis--) {
      at[size_t(axis)] = 0;
    }
  }
}

// Where `position` lies among the words of a value of `shape`.
inline size_t flat_of(const Shape& shape, const Position& position) {
  int64_t flat = 0;
  for (int axis = 0; axis < shape.rank(); axis++) {
    flat = flat * shape[axis] + position[size_t(axis)];
  }
  return size_t(flat);
}

// The sum by halves, whose error grows with the logarithm of the count; 0 of nothing.
template <class N>
N sum_of(std::span<const N> terms) {
  if (terms.size() > 8) {
    const size_t half = terms.size() / 2;
    return sum_of(terms.first(half)) + sum_of(terms.subspan(half));
  }
  if (terms.empty()) return N(0);
  N sum = terms[0];
  for (N term : terms.subspan(1)) sum = sum + term;
  return sum;
}

}  // namespace fornax::reference
