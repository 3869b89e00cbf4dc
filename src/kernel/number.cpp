#include "kernel/number.h"

#include <algorithm>

#include "base/error.h"

namespace fornax::kernel {
namespace {

const Value& known(const Value& a, const Value& b) { return a.builder ? a : b; }
const Value& known(const Value& a, const Value& b, const Value& c) { return known(known(a, b), c); }

Value unary(Code code, Value x) { return x.builder->arithmetic(code, {x}); }
Value binary(Code code, Value a, Value b) { return known(a, b).builder->arithmetic(code, {a, b}); }

Kind kind_of(const Value& x) { return fornax::info(x.dtype()).kind; }
bool is_bool(const Value& x) { return x.dtype() == DType::bool_; }
bool is_float(const Value& x) { return kind_of(x) == Kind::floating; }
bool is_signed(const Value& x) { return kind_of(x) == Kind::signed_integer; }
int width(const Value& x) { return int(fornax::info(x.dtype()).size) * 8; }

// b in the dtype of a where it is a literal, so that its kind can be asked.
Value like(const Value& a, const Value& b) { return a.builder->as(a.dtype(), b); }

}  // namespace

Value operator+(Value a, Value b) {
  return binary(is_bool(known(a, b)) ? Code::bit_or : Code::add, a, b);
}
Value operator-(Value a, Value b) { return binary(Code::sub, a, b); }
Value operator*(Value a, Value b) {
  return binary(is_bool(known(a, b)) ? Code::bit_and : Code::mul, a, b);
}
Value operator/(Value a, Value b) { return binary(Code::div, a, b); }
Value operator%(Value a, Value b) { return binary(Code::rem, a, b); }
Value operator-(Value x) { return unary(Code::neg, x); }
Value operator==(Value a, Value b) { return binary(Code::equal, a, b); }
Value operator!=(Value a, Value b) { return binary(Code::not_equal, a, b); }
Value operator<(Value a, Value b) {
  // false comes before true
  if (is_bool(known(a, b))) return ~a & b;
  return binary(Code::less, a, b);
}
Value operator<=(Value a, Value b) {
  if (is_bool(known(a, b))) return ~a | b;
  return binary(Code::less_equal, a, b);
}
Value operator&(Value a, Value b) { return binary(Code::bit_and, a, b); }
Value operator|(Value a, Value b) { return binary(Code::bit_or, a, b); }
Value operator^(Value a, Value b) { return binary(Code::bit_xor, a, b); }
Value operator<<(Value a, Value b) { return binary(Code::shift_left, a, b); }
Value operator>>(Value a, Value b) { return binary(Code::shift_right, a, b); }
Value operator~(Value x) { return unary(Code::bit_not, x); }

#define FORNAX_UNARY(name) \
  Value name(Value x) { return unary(Code::name, x); }
#define FORNAX_BINARY(name) \
  Value name(Value a, Value b) { return binary(Code::name, a, b); }
FORNAX_UNARY(sqrt)
FORNAX_UNARY(rsqrt)
FORNAX_UNARY(exp)
FORNAX_UNARY(exp2)
FORNAX_UNARY(expm1)
FORNAX_UNARY(log)
FORNAX_UNARY(log2)
FORNAX_UNARY(log10)
FORNAX_UNARY(log1p)
FORNAX_UNARY(sin)
FORNAX_UNARY(cos)
FORNAX_UNARY(tan)
FORNAX_UNARY(asin)
FORNAX_UNARY(acos)
FORNAX_UNARY(atan)
FORNAX_UNARY(sinh)
FORNAX_UNARY(cosh)
FORNAX_UNARY(tanh)
FORNAX_UNARY(asinh)
FORNAX_UNARY(acosh)
FORNAX_UNARY(atanh)
FORNAX_UNARY(erf)
FORNAX_BINARY(atan2)
FORNAX_BINARY(min)
FORNAX_BINARY(max)
FORNAX_BINARY(mul_high)
FORNAX_BINARY(copy_sign)
FORNAX_BINARY(next_after)
#undef FORNAX_UNARY
#undef FORNAX_BINARY
Value fma(Value a, Value b, Value c) {
  return known(a, b, c).builder->arithmetic(Code::fma, {a, b, c});
}

Value select(Value condition, Value yes, Value no) {
  return known(condition, yes, no).builder->arithmetic(Code::select, {condition, yes, no});
}

Value is_nan(Value x) {
  if (is_float(x)) return x != x;
  return x.builder->constant(DType::bool_, false);
}
static constexpr double kInfinity = __builtin_huge_val();
Value is_inf(Value x) { return abs(x) == kInfinity; }
Value is_finite(Value x) { return abs(x) < kInfinity; }

Value abs(Value x) { return is_float(x) || is_signed(x) ? unary(Code::abs, x) : x; }
Value sign(Value x) {
  if (is_bool(x)) return x;
  if (is_float(x)) return select(is_nan(x), x, select(x > 0, 1, select(x < 0, -1, like(x, 0))));
  if (!is_signed(x)) return min(x, 1);
  return select(x > 0, 1, select(x < 0, -1, like(x, 0)));
}

// Below 0 by the other form, which keeps the digits that 1 / (1 + large) would lose.
Value sigmoid(Value x) {
  const Value e = exp(-abs(x));
  return select(x >= 0, like(x, 1), e) / (e + 1);
}

#define FORNAX_WHOLE(name) \
  Value name(Value x) { return is_float(x) ? unary(Code::name, x) : x; }
FORNAX_WHOLE(floor)
FORNAX_WHOLE(ceil)
FORNAX_WHOLE(round)
FORNAX_WHOLE(trunc)
#undef FORNAX_WHOLE

namespace {

// A divisor that div and rem can take: 1 in place of 0, and of -1, over which the smallest number
// has no quotient.
Value safe(Value b) {
  const Value zero = b == 0;
  return select(is_signed(b) ? zero | (b == -1) : zero, like(b, 1), b);
}

Value differ_in_sign(Value rest, Value b) { return (rest < 0) ^ (b < 0); }

}  // namespace

Value fmod(Value a, Value b) {
  if (is_float(known(a, b))) return binary(Code::fmod, a, b);
  const Value divisor = a.builder ? like(a, b) : b;
  return select(divisor == 0, like(divisor, 0), a % safe(divisor));
}
Value trunc_divide(Value a, Value b) {
  const Value some = known(a, b);
  a = like(some, a), b = like(some, b);
  if (!is_float(a)) {
    const Value quotient = select(b == 0, like(b, 0), a / safe(b));
    return is_signed(b) ? select(b == -1, -a, quotient) : quotient;
  }
  const Value plain = a / b;
  const Value whole = copy_sign(round((a - fmod(a, b)) / b), plain);
  return select((b == 0) | is_inf(a), plain, whole);
}
Value floor_divide(Value a, Value b) {
  const Value some = known(a, b);
  a = like(some, a), b = like(some, b);
  if (is_float(a)) {
    const Value rest = fmod(a, b), plain = a / b;
    const Value quotient = round((a - rest) / b);
    const Value down = (rest != 0) & differ_in_sign(rest, b);
    const Value whole = select(down, quotient - 1, copy_sign(quotient, plain));
    return select((b == 0) | is_inf(a), plain, whole);
  }
  if (!is_signed(a)) return trunc_divide(a, b);
  const Value rest = fmod(a, b);
  const Value down = (rest != 0) & differ_in_sign(rest, b);
  return trunc_divide(a, b) - some.builder->cast(down, a.dtype());
}
Value remainder(Value a, Value b) {
  const Value some = known(a, b);
  a = like(some, a), b = like(some, b);
  const Value rest = fmod(a, b);
  if (is_float(a)) {
    const Value sum = rest + b;
    // A tiny rest vanishes in the sum, but the result stays below b.
    const Value below = select((sum == b) & is_finite(b), next_after(b, 0), sum);
    const Value moved = select(differ_in_sign(rest, b) & ~is_nan(rest), below, rest);
    return select(rest == 0, copy_sign(like(b, 0), b), moved);
  }
  if (!is_signed(a)) return rest;
  return select((rest != 0) & differ_in_sign(rest, b), rest + b, rest);
}

namespace {

// By squaring; b is not negative.
Value whole_power(Value a, Value b) {
  Builder& k = *a.builder;
  const ValueType type = a.type().tile() ? a.type() : b.type();
  const auto lanes = std::max(a.type().lanes, b.type().lanes);
  const auto start = [&](Value x) {
    if (type.tile()) return k.spread(x, type.rows, type.columns);
    return x.type().lanes == lanes ? x : k.pack(std::vector<Value>(lanes, x));
  };
  // One turn per bit, so that no turn depends on the numbers: tiles have many.
  Variable result(start(like(a, 1))), base(start(a)), rest(start(b));
  k.loop(0, width(a), 1, [&](Value) {
    result = select((rest.get() & 1) != 0, result * base, result);
    base = base * base;
    rest = rest >> 1;
  });
  return result;
}

}  // namespace

Value pow(Value a, Value b) {
  const Value some = known(a, b);
  a = like(some, a), b = like(some, b);
  if (is_float(a)) return binary(Code::pow, a, b);
  Builder& k = *some.builder;
  const DType dtype = a.dtype(), computed = compute_dtype(dtype);
  a = k.cast(a, computed), b = k.cast(b, computed);
  if (!is_signed(a)) return k.cast(whole_power(a, b), dtype);
  const Value odd = (b & 1) != 0;
  const Value reciprocal =
      select(a == -1, select(odd, -1, like(a, 1)), select(a == 1, like(a, 1), like(a, 0)));
  return k.cast(select(b >= 0, whole_power(a, max(b, 0)), reciprocal), dtype);
}

Value maximum(Value a, Value b) {
  const Value some = known(a, b);
  if (is_bool(some)) return a | b;
  return is_float(some) ? binary(Code::maximum, a, b) : max(a, b);
}
Value minimum(Value a, Value b) {
  const Value some = known(a, b);
  if (is_bool(some)) return a & b;
  return is_float(some) ? binary(Code::minimum, a, b) : min(a, b);
}

Value bitwise_not(Value x) { return ~x; }
Value bitwise_and(Value a, Value b) { return a & b; }
Value bitwise_or(Value a, Value b) { return a | b; }
Value bitwise_xor(Value a, Value b) { return a ^ b; }

namespace {

// Whether the shift by b stays inside the width; a negative b does not.
Value inside(Value b, int bits) { return is_signed(b) ? (b >= 0) & (b < bits) : b < bits; }

}  // namespace

Value shift_left(Value a, Value b) {
  const Value some = known(a, b);
  a = like(some, a), b = like(some, b);
  if (is_bool(a)) return a & ~b;
  const Value fits = inside(b, width(a));
  return select(fits, a << select(fits, b, like(b, 0)), like(a, 0));
}
Value shift_right(Value a, Value b) {
  const Value some = known(a, b);
  a = like(some, a), b = like(some, b);
  if (is_bool(a)) return a & ~b;
  const Value fits = inside(b, width(a));
  if (is_signed(a)) return a >> select(fits, b, like(b, width(a) - 1));
  return select(fits, a >> select(fits, b, like(b, 0)), like(a, 0));
}

namespace {

using number = Value;
#define OP1(name, rule, value, ...)              \
  Value value_##name(std::span<const Value> v) { \
    const Value x = v[0];                        \
    return value;                                \
  }
#define OP2(name, rule, value, ...)              \
  Value value_##name(std::span<const Value> v) { \
    const Value a = v[0], b = v[1];              \
    return value;                                \
  }
#define OP3(name, rule, value, ...)              \
  Value value_##name(std::span<const Value> v) { \
    const Value a = v[0], b = v[1], c = v[2];    \
    return value;                                \
  }
#include <fornax/ops.def>

using Formula = Value (*)(std::span<const Value>);
constexpr Formula kFormulas[] = {
#define OP1(name, ...) value_##name,
#define OP2(name, ...) value_##name,
#define OP3(name, ...) value_##name,
#define OPX(...) nullptr,
#include <fornax/ops.def>
};

}  // namespace

Value evaluate(Builder& builder, Op op, std::span<const Value> operands) {
  const Formula formula = kFormulas[size_t(op)];
  FORNAX_CHECK(formula);
  // Small dtypes are computed in the larger one throughout and rounded once, as graph/evaluate.h
  // says: rounding between the instructions of one op would give other results.
  std::vector<Value> wide(operands.begin(), operands.end());
  const DType dtype = wide.back().dtype(), computed = compute_dtype(dtype);
  for (Value& operand : wide) {
    if (operand.dtype() == dtype) operand = builder.cast(operand, computed);
  }
  const Value result = formula(wide);
  return result.dtype() == computed ? builder.cast(result, dtype) : result;
}

}  // namespace fornax::kernel
