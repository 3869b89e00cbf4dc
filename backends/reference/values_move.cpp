// Reference values of ops that make, view and index data.  Elements are only carried about, except
// where fold and scatter combine them.
#include <algorithm>

#include "backends/reference/value.h"
#include "base/error.h"
#include "base/philox.h"
#include "graph/attributes.h"

namespace fornax::reference {
namespace {

// Fills `result` with the element of input 0 at from(position in the result).
template <class From>
void pick(const Work& work, Value& result, From&& from) {
  const Value& x = work.input(0);
  each(result.type.shape, [&](const Position& at, size_t i) {
    result.words[i] = x.words[flat_of(x.type.shape, from(at))];
  });
}

// The index at `i` of an index value, checked against `size` elements along `axis` of `indexed`.
int64_t checked_index(const Work& work, size_t i, const Type& indexed, int axis) {
  const Value& index = work.input(1);
  const int64_t size = indexed.shape[axis];
  // As unsigned, a negative index is too large like the others.
  const uint64_t number = index.words[i].bits;
  if (number >= uint64_t(size)) {
    const bool negative = is_signed(index.type.dtype) && int64_t(number) < 0;
    fail(ErrorKind::index, "{}: index {}{} is outside axis {} of {}, which has {} elements",
         info(work.step.op).name, negative ? "-" : "", negative ? -number : number, axis,
         text_of(indexed), size);
  }
  return int64_t(number);
}

template <class N>
N combined(ScatterMode mode, N old, N value) {
  switch (mode) {
    case ScatterMode::assign:
      return value;
    case ScatterMode::add:
      return old + value;
    case ScatterMode::multiply:
      return old * value;
    case ScatterMode::minimum:
      return numbers::minimum(old, value);
    case ScatterMode::maximum:
      return numbers::maximum(old, value);
  }
  fail(ErrorKind::internal, "scatter: mode {} is none", int(mode));
}

// Where element `at` of an unfolded value lies in the value with the windows folded.
Position folded(const Attributes& attributes, const Position& at, int rank) {
  Position to = at;
  for (int i = 0; i < window_count(attributes); i++) {
    const WindowAxis w = window_of(attributes, i);
    to[size_t(w.axis)] = at[size_t(w.axis)] * w.step + at[size_t(rank + i)] * w.dilation;
  }
  return to;
}

}  // namespace

Value broadcast_to(const Value& value, const Shape& shape) {
  Value result{{value.type.dtype, shape}, std::vector<Word>(size_t(shape.element_count()))};
  const Step step{Op::expand, result.type, {}, {}, {}};
  const Value* input = &value;
  value_expand({step, {&input, 1}}, result);
  return result;
}

void value_leaf(const Work& work, Value&) {
  fail(ErrorKind::internal, "leaf: {} has no value of its own; pass it as an input",
       text_of(work.step.type));
}

void value_full(const Work& work, Value& result) {
  std::fill(result.words.begin(), result.words.end(), word_of(result.type.dtype, work.step.scalar));
}

void value_arange(const Work& work, Value& result) {
  // Bools count as the integers 0 and 1.
  const DType dtype = is_boolean(result.type.dtype) ? DType::i64 : result.type.dtype;
  with_number_type(dtype, [&](auto number) {
    using N = decltype(number);
    const N start = as<N>(work.input(0).words[0]), step = as<N>(work.input(1).words[0]);
    for (size_t i = 0; i < result.words.size(); i++) {
      // Not rounded to the dtype, which may be too narrow for i.
      const N count = as<N>(std::is_same_v<N, double> ? word_of(double(i)) : word_of(uint64_t(i)));
      result.words[i] = word_of(start + count * step);
    }
  });
  convert(dtype, result.type.dtype, result.words);
}

void value_random_bits(const Work& work, Value& result) {
  const uint64_t key = work.input(0).words[0].bits, counter = work.input(1).words[0].bits;
  for (size_t i = 0; i < result.words.size(); i++) {
    result.words[i] = word_of(uint64_t(random_word(key, counter, i)));
  }
}

void value_cast(const Work& work, Value& result) {
  result.words = work.input(0).words;
  convert(work.input(0).type.dtype, result.type.dtype, result.words);
}

void value_detach(const Work& work, Value& result) { result.words = work.input(0).words; }
void value_reshape(const Work& work, Value& result) { result.words = work.input(0).words; }

void value_permute(const Work& work, Value& result) {
  pick(work, result, [&](const Position& at) {
    Position from{};
    for (int axis = 0; axis < result.type.shape.rank(); axis++) {
      from[size_t(work.attributes()[size_t(axis)])] = at[size_t(axis)];
    }
    return from;
  });
}

void value_expand(const Work& work, Value& result) {
  const Shape& shape = work.input(0).type.shape;
  const int shift = result.type.shape.rank() - shape.rank();
  pick(work, result, [&](const Position& at) {
    Position from{};
    for (int axis = 0; axis < shape.rank(); axis++) {
      from[size_t(axis)] = shape[axis] == 1 ? 0 : at[size_t(axis + shift)];
    }
    return from;
  });
}

void value_slice(const Work& work, Value& result) {
  const PerAxis per_axis{work.attributes()};
  pick(work, result, [&](const Position& at) {
    Position from{};
    for (int axis = 0; axis < result.type.shape.rank(); axis++) {
      from[size_t(axis)] = per_axis.first(axis) + at[size_t(axis)] * per_axis.third(axis);
    }
    return from;
  });
}

void value_unfold(const Work& work, Value& result) {
  const int rank = work.input(0).type.shape.rank();
  pick(work, result, [&](const Position& at) { return folded(work.attributes(), at, rank); });
}

void value_fold(const Work& work, Value& result) {
  const Value& x = work.input(0);
  const Shape& shape = result.type.shape;
  with_number_type(x.type.dtype, [&](auto number) {
    using N = decltype(number);
    each(x.type.shape, [&](const Position& at, size_t i) {
      Word& sum = result.words[flat_of(shape, folded(work.attributes(), at, shape.rank()))];
      sum = word_of(as<N>(sum) + as<N>(x.words[i]));
    });
  });
}

void value_pad(const Work& work, Value& result) {
  const PerAxis per_axis{work.attributes()};
  const Value& x = work.input(0);
  const Shape& shape = result.type.shape;
  std::fill(result.words.begin(), result.words.end(), work.input(1).words[0]);
  each(x.type.shape, [&](const Position& at, size_t i) {
    Position to{};
    bool inside = true;
    for (int axis = 0; axis < shape.rank(); axis++) {
      const int64_t place = per_axis.first(axis) + at[size_t(axis)] * (per_axis.third(axis) + 1);
      inside = inside && place >= 0 && place < shape[axis];
      to[size_t(axis)] = place;
    }
    if (inside) result.words[flat_of(shape, to)] = x.words[i];
  });
}

void value_cat(const Work& work, Value& result) {
  const size_t axis = size_t(axis_of(work.attributes()));
  int64_t begin = 0;
  for (const Value* part : work.inputs) {
    each(part->type.shape, [&](const Position& at, size_t i) {
      Position to = at;
      to[axis] += begin;
      result.words[flat_of(result.type.shape, to)] = part->words[i];
    });
    begin += part->type.shape[int(axis)];
  }
}

void value_gather(const Work& work, Value& result) {
  const int axis = axis_of(work.attributes());
  const Value& x = work.input(0);
  each(result.type.shape, [&](const Position& at, size_t i) {
    Position from = at;
    from[size_t(axis)] = checked_index(work, i, x.type, axis);
    result.words[i] = x.words[flat_of(x.type.shape, from)];
  });
}

void value_scatter(const Work& work, Value& result) {
  const ScatterSettings settings(work.attributes());
  const Value& values = work.input(2);
  result.words = work.input(0).words;
  with_number_type(result.type.dtype, [&](auto number) {
    using N = decltype(number);
    each(values.type.shape, [&](const Position& at, size_t i) {
      Position to = at;
      to[size_t(settings.axis)] = checked_index(work, i, result.type, settings.axis);
      Word& word = result.words[flat_of(result.type.shape, to)];
      word = word_of(combined(settings.mode, as<N>(word), as<N>(values.words[i])));
    });
  });
}

}  // namespace fornax::reference
