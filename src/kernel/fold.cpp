// Simplification while a kernel is built: constants are computed, and what changes nothing goes.
// Exact: no rule changes a result, a NaN or the sign of a zero.
#include <bit>

#include "graph/evaluate.h"
#include "kernel/state.h"

namespace fornax::kernel {
namespace {

using Operands = std::vector<ValueId>;

bool is_float(DType dtype) { return fornax::info(dtype).kind == Kind::floating; }
bool has_sign(DType dtype) { return fornax::info(dtype).kind == Kind::signed_integer; }

// `bits` of an integer brought to the width of `dtype`.
int64_t wrapped(DType dtype, uint64_t bits) {
  Word word{bits};
  const DType wide = has_sign(dtype) ? DType::i64 : DType::u64;
  if (dtype != DType::bool_) convert(wide, dtype, {&word, 1});
  return int64_t(word.bits);
}

// Whole numbers and bools; false where the result is not known here.
bool fold_whole(Code code, DType dtype, const int64_t* v, int64_t& result) {
  const auto a = uint64_t(v[0]), b = uint64_t(v[1]);
  const bool below = has_sign(dtype) ? v[0] < v[1] : a < b;
  switch (code) {
    case Code::add:
      result = wrapped(dtype, a + b);
      return true;
    case Code::sub:
      result = wrapped(dtype, a - b);
      return true;
    case Code::mul:
      result = wrapped(dtype, a * b);
      return true;
    case Code::div:
    case Code::rem:
      if (b == 0 || (has_sign(dtype) && v[1] == -1)) return false;
      if (has_sign(dtype)) {
        result = code == Code::div ? v[0] / v[1] : v[0] % v[1];
      } else {
        result = int64_t(code == Code::div ? a / b : a % b);
      }
      return true;
    case Code::min:
      result = below ? v[0] : v[1];
      return true;
    case Code::max:
      result = below ? v[1] : v[0];
      return true;
    case Code::neg:
      result = wrapped(dtype, -a);
      return true;
    case Code::bit_and:
      result = int64_t(a & b);
      return true;
    case Code::bit_or:
      result = int64_t(a | b);
      return true;
    case Code::bit_xor:
      result = int64_t(a ^ b);
      return true;
    case Code::bit_not:
      result = dtype == DType::bool_ ? !v[0] : wrapped(dtype, ~a);
      return true;
    case Code::shift_left:
      if (b > 63) return false;
      result = wrapped(dtype, a << b);
      return true;
    case Code::equal:
      result = a == b;
      return true;
    case Code::not_equal:
      result = a != b;
      return true;
    case Code::less:
      result = below;
      return true;
    case Code::less_equal:
      result = below || a == b;
      return true;
    default:
      return false;
  }
}

template <class Float>
bool fold_float(Code code, Float a, Float b, Float& result, bool& answer) {
  switch (code) {
    case Code::add:
      result = a + b;
      return true;
    case Code::sub:
      result = a - b;
      return true;
    case Code::mul:
      result = a * b;
      return true;
    case Code::div:
      result = a / b;
      return true;
    case Code::neg:
      result = -a;
      return true;
    case Code::equal:
      answer = a == b;
      return true;
    case Code::not_equal:
      answer = a != b;
      return true;
    case Code::less:
      answer = a < b;
      return true;
    case Code::less_equal:
      answer = a <= b;
      return true;
    default:
      return false;
  }
}

bool fold(Code code, DType dtype, DType result_dtype, const int64_t* v, int64_t& result) {
  if (!is_float(dtype)) return fold_whole(code, dtype, v, result);
  const auto a = std::bit_cast<double>(v[0]), b = std::bit_cast<double>(v[1]);
  double number = 0;
  bool answer = false;
  if (dtype == DType::f32) {
    float narrow = 0;
    if (!fold_float(code, float(a), float(b), narrow, answer)) return false;
    number = narrow;
  } else if (!fold_float(code, a, b, number, answer)) {
    return false;
  }
  result = result_dtype == DType::bool_ ? answer : std::bit_cast<int64_t>(number);
  return true;
}

bool commutes(Code code) {
  return code == Code::add || code == Code::mul || code == Code::min || code == Code::max ||
         code == Code::minimum || code == Code::maximum || code == Code::bit_and ||
         code == Code::bit_or || code == Code::bit_xor || code == Code::equal ||
         code == Code::not_equal;
}

// The constant 0 or 1 as bits.
int64_t zero_or_one(DType dtype, int number) {
  return is_float(dtype) ? std::bit_cast<int64_t>(double(number)) : number;
}

// x op constant; -1 where nothing is simpler.  `zero` is usable only where it has the result's
// shape.
ValueId with_constant(Builder::State& state, Code code, const ValueType& type, ValueId x,
                      int64_t bits) {
  const DType dtype = state.type(x).dtype;
  const bool whole = !is_float(dtype), scalar = !type.tile() && type.lanes == 1;
  const bool zero = bits == zero_or_one(dtype, 0), one = bits == zero_or_one(dtype, 1);
  switch (code) {
    case Code::add:
      return whole && zero ? x : -1;
    case Code::sub:
      return zero ? x : -1;  // of floats too: -0 - 0 is -0
    case Code::mul:
      if (one) return x;
      return whole && zero && scalar ? state.constant(dtype, 0) : -1;
    case Code::div:
      return one ? x : -1;
    case Code::rem:
      return one && scalar ? state.constant(dtype, 0) : -1;
    case Code::shift_left:
    case Code::shift_right:
      return zero ? x : -1;
    case Code::bit_or:
      if (zero) return x;
      return dtype == DType::bool_ && scalar ? state.constant(dtype, 1) : -1;
    case Code::bit_and:
      if (zero && scalar) return state.constant(dtype, 0);
      return dtype == DType::bool_ && one ? x : -1;
    case Code::bit_xor:
      return zero ? x : -1;
    default:
      return -1;
  }
}

// (x op c) op d is x op (c op d), of whole numbers.
ValueId regroup(Builder::State& state, Code code, const ValueType& type, Operands& operands,
                int64_t bits) {
  if (code != Code::add && code != Code::mul) return -1;
  const Instruction* inner = state.maker(operands[0]);
  int64_t inner_bits = 0;
  if (is_float(type.dtype) || !inner || inner->code != code ||
      !state.is_constant(inner->operands[1], &inner_bits)) {
    return -1;
  }
  const int64_t pair[] = {inner_bits, bits};
  int64_t joined = 0;
  fold_whole(code, type.dtype, pair, joined);
  operands = {state.resolve(inner->operands[0]), state.constant(type.dtype, joined)};
  if (const ValueId simple = with_constant(state, code, type, operands[0], joined); simple >= 0) {
    return simple;
  }
  Instruction made;
  made.code = code;
  made.operands = operands;
  return state.append(std::move(made), {type})[0];
}

}  // namespace

ValueId simplify(Builder::State& state, Code code, const ValueType& type, Operands& operands) {
  int64_t bits[3] = {};
  bool known[3] = {};
  bool all = true;
  for (size_t i = 0; i < operands.size(); i++) {
    known[i] = state.is_constant(operands[i], &bits[i]);
    all &= known[i];
  }
  if (commutes(code) && (known[0] || (!known[1] && operands[1] < operands[0]))) {
    std::swap(operands[0], operands[1]);
    std::swap(bits[0], bits[1]);
    std::swap(known[0], known[1]);
  }
  const auto fits = [&](ValueId value) {
    const ValueType& own = state.type(value);
    return own == type;
  };
  if (code == Code::select) {
    const ValueId chosen = known[0] ? operands[bits[0] ? 1 : 2] : operands[1];
    return (known[0] || operands[1] == operands[2]) && fits(chosen) ? chosen : -1;
  }
  const DType dtype = state.type(operands[0]).dtype;
  int64_t result = 0;
  if (all && fold(code, dtype, type.dtype, bits, result)) {
    return state.constant(type.dtype, result);
  }
  if (code == Code::bit_not) {
    const Instruction* inner = state.maker(operands[0]);
    return inner && inner->code == Code::bit_not ? state.resolve(inner->operands[0]) : -1;
  }
  if (operands.size() != 2) return -1;
  if (known[1]) {
    const ValueId simple = with_constant(state, code, type, operands[0], bits[1]);
    if (simple >= 0) return fits(simple) ? simple : -1;
    return regroup(state, code, type, operands, bits[1]);
  }
  const bool same = operands[0] == operands[1];
  if (same && (code == Code::bit_and || code == Code::bit_or)) return operands[0];
  return -1;
}

}  // namespace fornax::kernel
