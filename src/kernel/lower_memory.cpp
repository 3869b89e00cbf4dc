// Lowering: loads and stores of tiles, as vectors where that is proven right.
#include <algorithm>

#include "base/error.h"
#include "kernel/analysis.h"
#include "kernel/lowering.h"
#include "kernel/number.h"

namespace fornax::kernel {
namespace {

constexpr int kMostBytes = 16;

std::vector<ValueId> ids(std::span<const Value> values) {
  std::vector<ValueId> result;
  for (const Value& value : values) result.push_back(value.id);
  return result;
}

}  // namespace

Value Lowering::acts(const ValueType& type) {
  const Distribution& d = distribution(type);
  Value first;
  if (d.rows > 1 && type.rows <= 1) first = row_thread(d) == 0;
  if (d.columns > 1 && type.columns <= 1) {
    const Value mine = column_thread(d) == 0;
    first = first ? first & mine : mine;
  }
  return first;
}

int Lowering::vector_width(ValueId memory, std::span<const Value> indices,
                           std::span<const Value> masks) {
  const Builder::State& state = to_.state();
  const ValueType& type = from_.type(memory);
  const int size = int(fornax::info(type.dtype).size);
  int64_t aligned = kMostBytes;
  if (type.memory == Memory::global) {
    aligned = from_.parameters[size_t(memory)].divisor;
  }
  const int64_t divisor = divisor_of(state, indices[0].id);
  for (int width = std::min(int(indices.size()), kMostBytes / size); width > 1; width /= 2) {
    if (aligned % (width * size) != 0 || divisor % width != 0) continue;
    bool consecutive = true;
    for (int i = 1; i < width && consecutive; i++) {
      consecutive = differs_by(state, indices[size_t(i)].id, indices[0].id, i);
    }
    if (!consecutive) continue;
    if (masks.empty() || all_equal(state, ids(masks.first(size_t(width))))) return width;
  }
  return 1;
}

void Lowering::load(const Instruction& x) {
  const ValueType type = from_.type(x.results[0]);
  const Share whole = extent(type);
  const int vector = type.columns > 1 ? distribution(type).vector : 1;
  const Value memory = scalar(x.operands[0]);
  for (int e = 0; e < whole.count(); e += vector) {
    std::vector<Value> indices, masks, others;
    for (int i = 0; i < vector; i++) {
      indices.push_back(element(x.operands[1], whole, e + i));
      if (x.operands.size() <= 2) continue;
      masks.push_back(element(x.operands[2], whole, e + i));
      others.push_back(element(x.operands[3], whole, e + i));
    }
    for (int i = 0; i < vector;) {
      const auto rest = std::span(masks).subspan(masks.empty() ? 0 : size_t(i));
      const int width = vector_width(x.operands[0], std::span(indices).subspan(size_t(i)), rest);
      Instruction made;
      made.code = Code::load;
      made.site = x.site;
      made.operands = {memory.id, indices[size_t(i)].id};
      if (!masks.empty()) {
        made.operands.push_back(rest[0].id);
        made.operands.push_back(to_.pack(std::span(others).subspan(size_t(i), size_t(width))).id);
      }
      ValueType lanes{type.dtype};
      lanes.lanes = uint8_t(width);
      const Value loaded = to_.emit(std::move(made), {lanes})[0];
      for (int lane = 0; lane < width; lane++) keep(x, 0, to_.extract(loaded, lane));
      i += width;
    }
  }
}

void Lowering::store(const Instruction& x) {
  ValueType type = from_.type(x.operands[1]);
  for (const ValueId operand : x.operands) {
    type.rows = std::max(type.rows, from_.type(operand).rows);
    type.columns = std::max(type.columns, from_.type(operand).columns);
    type.layout = std::max(type.layout, from_.type(operand).layout);
  }
  const Share whole = extent(type);
  const int vector = type.columns > 1 ? distribution(type).vector : 1;
  const Value memory = scalar(x.operands[0]), mine = acts(type);
  for (int e = 0; e < whole.count(); e += vector) {
    std::vector<Value> indices, values, masks;
    for (int i = 0; i < vector; i++) {
      indices.push_back(element(x.operands[1], whole, e + i));
      values.push_back(element(x.operands[2], whole, e + i));
      if (x.operands.size() > 3) {
        const Value mask = element(x.operands[3], whole, e + i);
        masks.push_back(mine ? mask & mine : mask);
      } else if (mine) {
        masks.push_back(mine);
      }
    }
    for (int i = 0; i < vector;) {
      const auto rest = std::span(masks).subspan(masks.empty() ? 0 : size_t(i));
      const int width = vector_width(x.operands[0], std::span(indices).subspan(size_t(i)), rest);
      const Value packed = to_.pack(std::span(values).subspan(size_t(i), size_t(width)));
      Instruction made;
      made.code = Code::store;
      made.site = x.site;
      made.operands = {memory.id, indices[size_t(i)].id, packed.id};
      if (!masks.empty()) made.operands.push_back(rest[0].id);
      to_.emit(std::move(made), {});
      i += width;
    }
  }
}

void Lowering::atomic(const Instruction& x) {
  const ValueType type = from_.type(x.results[0]);
  const Share whole = extent(type);
  const Value memory = scalar(x.operands[0]), mine = acts(type);
  for (int e = 0; e < whole.count(); e++) {
    Value mask = mine;
    if (x.operands.size() > 3) {
      const Value own = element(x.operands[3], whole, e);
      mask = mine ? own & mine : own;
    }
    keep(x, 0,
         to_.atomic(Atomic(x.attributes[0]), memory, element(x.operands[1], whole, e),
                    element(x.operands[2], whole, e), mask, x.site));
  }
}

}  // namespace fornax::kernel
