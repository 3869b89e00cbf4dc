#include "backends/cube/operand.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/error.h"

namespace fornax::cube {
namespace {

constexpr kernel::Facts kAny{.most = INT64_MAX};

// Of what is not negative and fits an index.
kernel::Facts size_facts(DType index, int64_t divisor = 1) {
  return {.divisor = divisor, .most = index == DType::i32 ? INT32_MAX : INT64_MAX};
}

bool passed(StrideClass stride) {
  return stride == StrideClass::forward || stride == StrideClass::backward;
}

}  // namespace

Value View::index(Builder& k, const Position& position) const {
  FORNAX_CHECK(position.size() == strides.size());
  Value index = first;
  const auto add = [&](Value term, bool down) {
    if (index) {
      index = down ? index - term : index + term;
    } else {
      index = down ? -term : term;
    }
  };
  for (size_t axis = 0; axis < strides.size(); axis++) {
    const StrideClass stride = known.strides[axis];
    if (stride == StrideClass::zero) continue;
    const Value step = stride == StrideClass::one ? position[axis] : position[axis] * strides[axis];
    add(step, stride == StrideClass::backward);
  }
  return index ? index : k.constant(DType::i32, 0);
}

Value View::load(Builder& k, const Position& position) const {
  if (number) return number;
  return k.load(memory, index(k, position));
}

Value View::load(Builder& k, const Position& position, Value mask, Value otherwise) const {
  if (number) return select(mask, number, otherwise);
  return k.load(memory, index(k, position), mask, otherwise);
}

Value View::load_vector(Builder& k, const Position& position, int lanes) const {
  return number ? number : k.load_vector(memory, index(k, position), lanes);
}

void View::store(Builder& k, const Position& position, Value value) const {
  k.store(memory, index(k, position), value);
}

View declare_view(Builder& k, const std::string& name, const ViewClass& known, bool written,
                  DType index) {
  View view;
  view.known = known;
  if (known.number) {
    view.number = declare_scalar(k, name, known.dtype);
    return view;
  }
  const kernel::Facts facts{.divisor = known.alignment * int64_t(size_of(known.dtype)),
                            .aliased = known.aliased};
  view.memory = written ? k.output(name, known.dtype, facts) : k.buffer(name, known.dtype, facts);
  if (known.backward()) view.first = k.number(name + "_first", index, size_facts(index));
  for (size_t axis = 0; axis < known.strides.size(); axis++) {
    const bool given = passed(known.strides[axis]);
    const kernel::Facts facts = size_facts(index, known.divisor);
    view.strides.push_back(given ? k.number(fmt::format("{}_stride{}", name, axis), index, facts)
                                 : Value());
  }
  return view;
}

void pass_view(Arguments& arguments, Place place, const ViewClass& known,
               const std::vector<int64_t>& extents, const Strides& strides, DType index,
               int64_t first) {
  if (known.number) return arguments.scalar(place.number, known.dtype);
  const Span span = span_of(extents, strides);
  arguments.buffer(place, known.dtype, first + span.lowest, span.count);
  if (known.backward()) arguments.number(index, -span.lowest);
  for (size_t axis = 0; axis < strides.size(); axis++) {
    if (passed(known.strides[axis])) arguments.number(index, std::abs(strides[axis]));
  }
}

// With s the number of bits of d - 1 and m = floor(2^32 * (2^s - d) / d) + 1, the quotient of n by
// d is (n + upper half of n * m) >> s, for n below 2^31.
Extent declare_extent(Builder& k, const std::string& name, DType index) {
  Extent extent;
  extent.size = k.number(name, index, size_facts(index));
  if (index == DType::i64) return extent;
  extent.multiplier = k.number(name + "_multiplier", DType::u32, {.most = UINT32_MAX});
  extent.shift = k.number(name + "_shift", DType::u32, {.most = 31});
  return extent;
}

void pass_extent(Arguments& arguments, int64_t extent, DType index) {
  arguments.number(index, extent);
  if (index == DType::i64) return;
  const auto divisor = uint64_t(std::max<int64_t>(extent, 1));  // nothing is divided by 0
  const int shift = int(std::bit_width(divisor - 1));
  const uint64_t rest = (uint64_t(1) << shift) - divisor;
  arguments.number(DType::u32, int64_t((rest << 32) / divisor + 1));
  arguments.number(DType::u32, shift);
}

Value divide(Builder& k, const Extent& extent, Value number) {
  if (number.dtype() == DType::i64) return number / extent.size;
  const Value bits = k.bits(number, DType::u32);
  return k.bits((mul_high(bits, extent.multiplier) + bits) >> extent.shift, DType::i32);
}

std::vector<Extent> declare_extents(Builder& k, int rank, DType index) {
  std::vector<Extent> extents;
  for (int axis = 0; axis < rank; axis++) {
    extents.push_back(declare_extent(k, fmt::format("extent{}", axis), index));
  }
  return extents;
}
void pass_extents(Arguments& arguments, const std::vector<int64_t>& extents, DType index) {
  for (const int64_t extent : extents) pass_extent(arguments, extent, index);
}

Position position_of(Builder& k, const std::vector<Extent>& extents, Value element) {
  Position position(extents.size());
  for (size_t axis = extents.size(); axis-- > 1;) {
    const Value quotient = divide(k, extents[axis], element);
    position[axis] = element - quotient * extents[axis].size;
    element = quotient;
  }
  if (!extents.empty()) position[0] = element;
  return position;
}

Value declare_scalar(Builder& k, const std::string& name, DType dtype) {
  return k.number(name, dtype, kAny);
}

Value thread_number(Builder& k, DType index) {
  return k.cast(k.block(), index) * k.threads() + k.cast(k.thread(), index);
}

std::string key_of(const Vectors& vectors) {
  std::string key = fmt::format("{} v{}", name_of(vectors.index), vectors.lanes);
  if (vectors.turns > 1) key += fmt::format("x{}", vectors.turns);
  return key + (vectors.whole ? "" : " tail");
}

void for_vectors(Builder& k, const Vectors& vectors,
                 FunctionRef<void(std::span<const Value>, int)> body) {
  const int lanes = vectors.lanes, turns = vectors.turns;
  const Value count = k.number("count", vectors.index, size_facts(vectors.index));
  const Value whole = count >> std::countr_zero(unsigned(lanes));
  const Value block = k.cast(k.block(), vectors.index) * (k.threads() * turns);
  std::vector<Value> own, elements;
  for (int turn = 0; turn < turns; turn++) {
    own.push_back(block + k.cast(k.thread(), vectors.index) + turn * k.threads());
    elements.push_back(own.back() * lanes);
  }
  const auto one = [&](int turn) {
    const auto vector = [&] { body({&elements[size_t(turn)], 1}, lanes); };
    if (vectors.whole) return k.when(own[size_t(turn)] < whole, vector);
    k.when(own[size_t(turn)] < whole, vector, [&] {
      const Value rest = whole * lanes + (own[size_t(turn)] - whole);
      k.when(rest < count, [&] { body({&rest, 1}, 1); });
    });
  };
  if (turns == 1) return one(0);
  k.when(
      own.back() < whole, [&] { body(elements, lanes); },
      [&] {
        for (int turn = 0; turn < turns; turn++) one(turn);
      });
}

void pass_vectors(Arguments& arguments, const Vectors& vectors, int64_t count) {
  arguments.number(vectors.index, count);
}
runtime::Grid grid_of(const Vectors& vectors, int64_t count, int threads) {
  return blocks_for(count / vectors.lanes + count % vectors.lanes, threads * vectors.turns);
}

Value run_step(Builder& k, const Step& step, std::span<const Value> operands) {
  if (step.op == Op::cast) return k.cast(operands[0], step.type.dtype);
  return kernel::evaluate(k, step.op, operands);
}

Value widen(Builder& k, Value value, int lanes) {
  if (value.type().lanes == lanes) return value;
  const std::vector<Value> copies(size_t(lanes), value);
  return k.pack(copies);
}

}  // namespace fornax::cube
