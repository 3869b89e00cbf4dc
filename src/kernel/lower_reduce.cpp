// Lowering: reductions of tiles.
#include <algorithm>

#include "base/error.h"
#include "kernel/lowering.h"
#include "kernel/number.h"

namespace fornax::kernel {

// A copy of the region's instructions with its parameters replaced: scalars, so that the same
// lowering serves.
Lowering::Elements Lowering::combine(const Region& region, const Elements& left,
                                     const Elements& right) {
  const size_t count = left.size();
  for (size_t i = 0; i < count; i++) {
    held_[size_t(region.parameters[i])] = {left[i]};
    held_[size_t(region.parameters[count + i])] = {right[i]};
  }
  for (const InstructionId id : region.instructions) {
    for (const ValueId result : from_.at(id).results) held_[size_t(result)].clear();
  }
  lower(region);
  Elements result;
  for (const ValueId yielded : region.yields) result.push_back(scalar(yielded));
  return result;
}

Lowering::Elements Lowering::across_lanes(const Region& region, Elements own, int first, int last) {
  for (int bit = first; bit < last; bit *= 2) {
    Elements other;
    for (const Value& value : own) other.push_back(to_.shuffle_xor(value, bit));
    own = combine(region, own, other);
  }
  return own;
}

std::vector<Lowering::Elements> Lowering::across_warps(const Region& region,
                                                       std::vector<Elements> own, Value part,
                                                       int parts, const std::vector<Value>& slots,
                                                       int slot_count, Value writes) {
  std::vector<Value> memory;
  for (const Value& value : own[0]) memory.push_back(to_.shared(value.dtype(), parts * slot_count));
  for (size_t e = 0; e < own.size(); e++) {
    for (size_t i = 0; i < memory.size(); i++) {
      to_.store(memory[i], slots[e] * parts + part, own[e][i], writes);
    }
  }
  to_.barrier();
  for (size_t e = 0; e < own.size(); e++) {
    const auto read = [&](int from) {
      Elements elements;
      for (const Value& m : memory) elements.push_back(to_.load(m, slots[e] * parts + from));
      return elements;
    };
    own[e] = read(0);
    for (int p = 1; p < parts; p++) own[e] = combine(region, own[e], read(p));
  }
  // The memory may be written again, by the next turn of a loop for one.
  to_.barrier();
  return own;
}

void Lowering::reduce(const Instruction& x) {
  const Region& region = x.regions[0];
  const ValueType& type = from_.type(x.operands[0]);
  const Distribution& d = distribution(type);
  const Share whole = extent(type);
  const bool along_columns = x.attributes[0] == 1;
  const int kept = along_columns ? whole.rows : whole.columns;
  const int reduced = along_columns ? whole.columns : whole.rows;

  // The thread's own elements, pairwise: half of the log of the rounding errors of a running sum.
  std::vector<Elements> own;
  for (int e = 0; e < kept; e++) {
    std::vector<Elements> level;
    for (int r = 0; r < reduced; r++) {
      const int at = along_columns ? e * whole.columns + r : r * whole.columns + e;
      Elements elements;
      for (const ValueId operand : x.operands) {
        elements.push_back(held_[size_t(operand)][size_t(at)]);
      }
      level.push_back(std::move(elements));
    }
    while (level.size() > 1) {
      std::vector<Elements> next;
      for (size_t i = 0; i + 1 < level.size(); i += 2) {
        next.push_back(combine(region, level[i], level[i + 1]));
      }
      if (level.size() % 2 == 1) next.push_back(level.back());
      level = std::move(next);
    }
    own.push_back(std::move(level[0]));
  }

  const int threads = from_.threads;
  const Value thread = to_.thread(), zero = to_.as(DType::i32, 0);
  if (along_columns && type.columns > 1 && d.columns > 1) {
    for (Elements& elements : own) {
      elements = across_lanes(region, elements, 1, std::min(d.columns, warp_));
    }
    if (d.columns > warp_) {
      const int parts = d.columns / warp_;
      std::vector<Value> slots;
      for (int i = 0; i < kept; i++) slots.push_back(type.rows == 1 ? zero : row(d, i));
      Value writes = (thread & (warp_ - 1)) == 0;
      if (type.rows == 1 && d.rows > 1) writes = writes & (row_thread(d) == 0);
      own = across_warps(region, std::move(own), column_thread(d) / warp_, parts, slots, type.rows,
                         writes);
    }
  } else if (!along_columns && type.rows > 1 && d.rows > 1) {
    for (Elements& elements : own) {
      elements = across_lanes(region, elements, d.columns, std::min(threads, warp_));
    }
    if (threads > warp_) {
      // Warps that hold the same columns: all of them, or one per row thread.
      const int parts = d.columns >= warp_ ? d.rows : threads / warp_;
      const Value part = d.columns >= warp_ ? row_thread(d) : thread / warp_;
      std::vector<Value> slots;
      for (int j = 0; j < kept; j++) slots.push_back(type.columns == 1 ? zero : column(d, j));
      Value writes;
      if (d.columns < warp_) writes = (thread & (warp_ - 1)) < d.columns;
      if (type.columns == 1 && d.columns > 1) {
        const Value first = column_thread(d) == 0;
        writes = writes ? writes & first : first;
      }
      own = across_warps(region, std::move(own), part, parts, slots, type.columns, writes);
    }
  }
  for (const Elements& elements : own) {
    for (size_t i = 0; i < elements.size(); i++) keep(x, i, elements[i]);
  }
}

}  // namespace fornax::kernel
