#include "kernel/analysis.h"

#include <algorithm>
#include <numeric>

namespace fornax::kernel {
namespace {

void add_terms(const Builder::State& state, ValueId value, int64_t factor, Affine& sum) {
  value = state.resolve(value);
  int64_t bits = 0;
  if (state.is_constant(value, &bits)) {
    sum.constant += factor * bits;
    return;
  }
  const Instruction* from = state.maker(value);
  const auto operand = [&](size_t i) { return from->operands[i]; };
  if (from && from->code == Code::add) {
    add_terms(state, operand(0), factor, sum);
    add_terms(state, operand(1), factor, sum);
  } else if (from && from->code == Code::sub) {
    add_terms(state, operand(0), factor, sum);
    add_terms(state, operand(1), -factor, sum);
  } else if (from && from->code == Code::mul && state.is_constant(operand(1), &bits)) {
    add_terms(state, operand(0), factor * bits, sum);
  } else if (from && from->code == Code::cast && state.type(value).dtype == DType::i64 &&
             state.type(operand(0)).dtype == DType::i32) {
    add_terms(state, operand(0), factor, sum);
  } else {
    int64_t& coefficient = sum.terms[value];
    coefficient += factor;
    if (coefficient == 0) sum.terms.erase(value);
  }
}

int64_t divisor_of_atom(const Builder::State& state, ValueId value) {
  const auto hint = state.divisors.find(value);
  if (hint != state.divisors.end()) return hint->second;
  const auto parameter = state.parameters.find(value);
  if (parameter != state.parameters.end()) {
    return state.kernel.parameters[size_t(parameter->second)].divisor;
  }
  const Instruction* from = state.maker(value);
  if (!from) return 1;
  const auto operand = [&](size_t i) { return divisor_of(state, from->operands[i]); };
  switch (from->code) {
    case Code::mul:
      return operand(0) * operand(1);
    case Code::shift_left: {
      constexpr int64_t kMostShift = 30;
      int64_t shift = 0;
      const bool known = state.is_constant(from->operands[1], &shift) && shift <= kMostShift;
      return known ? operand(0) << shift : 1;
    }
    case Code::min:
    case Code::max:
      return std::gcd(operand(0), operand(1));
    case Code::select:
      return std::gcd(operand(1), operand(2));
    default:
      return 1;
  }
}

}  // namespace

Affine affine_of(const Builder::State& state, ValueId value) {
  Affine sum;
  add_terms(state, value, 1, sum);
  return sum;
}

int64_t divisor_of(const Builder::State& state, ValueId value) {
  const Affine sum = affine_of(state, value);
  int64_t divisor = std::abs(sum.constant);
  for (const auto& [term, factor] : sum.terms) {
    divisor = std::gcd(divisor, factor * divisor_of_atom(state, term));
  }
  return divisor;
}

bool differs_by(const Builder::State& state, ValueId later, ValueId earlier, int64_t difference) {
  Affine sum;
  add_terms(state, later, 1, sum);
  add_terms(state, earlier, -1, sum);
  return sum.terms.empty() && sum.constant == difference;
}

bool all_equal(const Builder::State& state, std::span<const ValueId> masks) {
  const ValueId first = state.resolve(masks[0]);
  const bool same = std::all_of(masks.begin(), masks.end(),
                                [&](ValueId mask) { return state.resolve(mask) == first; });
  if (same) return true;
  const Instruction* leader = state.maker(first);
  if (!leader || leader->operands.size() != 2) return false;
  std::vector<ValueId> left, right;
  for (const ValueId mask : masks) {
    const Instruction* from = state.maker(mask);
    if (!from || from->code != leader->code) return false;
    left.push_back(from->operands[0]);
    right.push_back(from->operands[1]);
  }
  if (leader->code == Code::bit_and || leader->code == Code::bit_or) {
    return all_equal(state, left) && all_equal(state, right);
  }
  // first + i < bound for all i or none, where the count divides both first and bound.
  const auto count = int64_t(masks.size());
  if (leader->code != Code::less || divisor_of(state, left[0]) % count != 0 ||
      divisor_of(state, right[0]) % count != 0) {
    return false;
  }
  for (size_t i = 0; i < masks.size(); i++) {
    if (!differs_by(state, left[i], left[0], int64_t(i)) ||
        !differs_by(state, right[i], right[0], 0)) {
      return false;
    }
  }
  return true;
}

}  // namespace fornax::kernel
