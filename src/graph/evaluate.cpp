// The value column of ops.def compiled for every number type, and the conversions between dtypes.
#include "graph/evaluate.h"

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"

namespace fornax {
namespace {

using Formula = Word (*)(const Word* operands);

// Which number types an op with this rule is defined for; infer() refuses the others' dtypes.
template <class N>
constexpr bool accepts(Rule rule) {
  switch (rule) {
    case Rule::signed_same:
      return !std::is_same_v<N, numbers::Boolean>;
    case Rule::floating:
    case Rule::exponential:
    case Rule::floating_boolean:
      return std::is_same_v<N, double>;
    case Rule::bitwise:
      return !std::is_same_v<N, double>;
    default:
      return true;
  }
}

template <class N, Rule kRule>
using FirstOperand = std::conditional_t<kRule == Rule::selected, numbers::Boolean, N>;
template <class N, Rule kRule>
using Result = std::conditional_t<gives_boolean(kRule), numbers::Boolean, N>;

}  // namespace

// In this namespace an unqualified name of the column finds the number functions and stops there.
namespace numbers {
namespace {

#define FORNAX_FORMULA(name, rule, value, ...)                 \
  template <class number>                                      \
  Word formula_##name([[maybe_unused]] const Word* operands) { \
    if constexpr (accepts<number>(Rule::rule)) {               \
      __VA_ARGS__                                              \
      return word_of(Result<number, Rule::rule>(value));       \
    } else {                                                   \
      return {};                                               \
    }                                                          \
  }
#define FORNAX_FIRST(rule) as<FirstOperand<number, Rule::rule>>(operands[0])
#define OP1(name, rule, value, ...) \
  FORNAX_FORMULA(name, rule, value, const auto x = FORNAX_FIRST(rule);)
#define OP2(name, rule, value, ...) \
  FORNAX_FORMULA(name, rule, value, const auto a = FORNAX_FIRST(rule), b = as<number>(operands[1]);)
#define OP3(name, rule, value, ...)                                    \
  FORNAX_FORMULA(name, rule, value, const auto a = FORNAX_FIRST(rule); \
                 const auto b = as<number>(operands[1]), c = as<number>(operands[2]);)
#include <fornax/ops.def>
#undef FORNAX_FIRST
#undef FORNAX_FORMULA

template <class N>
constexpr Formula kFormulas[] = {
#define FORNAX_ROW(name, rule) accepts<N>(Rule::rule) ? &formula_##name<N> : nullptr,
#define OP1(name, rule, ...) FORNAX_ROW(name, rule)
#define OP2(name, rule, ...) FORNAX_ROW(name, rule)
#define OP3(name, rule, ...) FORNAX_ROW(name, rule)
#define OPX(...) nullptr,
#include <fornax/ops.def>
#undef FORNAX_ROW
};

}  // namespace
}  // namespace numbers

namespace {

using numbers::Boolean;
using numbers::Signed;

// body(T()) with the storage type T of `dtype`.
template <class Body>
decltype(auto) with_type(DType dtype, Body&& body) {
  switch (dtype) {
#define FORNAX_DTYPE(name, type, ...) \
  case DType::name:                   \
    return body(type());
#include <fornax/dtypes.def>
  }
  fail(ErrorKind::internal, "dtype: number {} is none", int(dtype));
}

// The number type of a storage type.
template <class T>
using NumberOf = std::conditional_t<
    std::is_same_v<T, bool>, Boolean,
    std::conditional_t<!std::is_integral_v<T>, double,
                       std::conditional_t<std::is_signed_v<T>, Signed, uint64_t>>>;

int64_t plain(Boolean x) { return x.value; }
int64_t plain(Signed x) { return x.value; }
uint64_t plain(uint64_t x) { return x; }
double plain(double x) { return x; }

// Rounding to a small float by way of float would round twice.  Where float cannot hold a number,
// these give the neighbour whose last bit is 1: no later rounding takes it for a tie or for exact.
float sticky_float(double x) {
  const float nearest = float(x);
  if (double(nearest) == x || numbers::is_nan(x)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (numbers::abs(double(nearest)) > numbers::abs(x)) bits--;
  return std::bit_cast<float>(bits | 1);
}

float sticky_float(uint64_t x) {
  float scale = 1;
  while (x >> 24) {
    x = x >> 1 | (x & 1);
    scale *= 2;
  }
  return float(x) * scale;
}

float sticky_float(int64_t x) {
  return x < 0 ? -sticky_float(-uint64_t(x)) : sticky_float(uint64_t(x));
}

template <class T>
T saturate(double x) {
  using Limits = std::numeric_limits<T>;
  // The largest 64-bit integers become the power of two above them, which is too large already.
  if (x >= double(Limits::max())) return Limits::max();
  if (x <= double(Limits::min())) return Limits::min();
  return numbers::is_nan(x) ? T(0) : T(x);
}

template <class T, class N>
T converted(N x) {
  if constexpr (std::is_same_v<T, bool>) {
    return plain(x) != 0;
  } else if constexpr (std::is_integral_v<T> && std::is_same_v<N, double>) {
    return saturate<T>(x);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return T(plain(x));
  } else {
    return T(sticky_float(plain(x)));
  }
}

Word word_from(bool x) { return word_of(Boolean(x)); }
template <std::signed_integral T>
Word word_from(T x) {
  return word_of(Signed(x));
}
template <std::unsigned_integral T>
Word word_from(T x) {
  return word_of(uint64_t(x));
}
Word word_from(float x) { return word_of(double(x)); }
Word word_from(double x) { return word_of(x); }
template <class T>
Word word_from(T x) {
  return word_of(double(float(x)));
}

// What remainder promises, kept through rounding: a result below the divisor.  The divisor may be
// the number of the dtype that is nearest to a result just below it.
void keep_below(DType dtype, Word& rest, Word divisor) {
  const double r = as<double>(rest), b = as<double>(divisor);
  if (r != b || !numbers::is_finite(b)) return;
  // Of a float's bits taken as an integer, one less is the next magnitude down.
  alignas(uint64_t) unsigned char memory[sizeof(uint64_t)] = {};
  uint64_t bits = 0;
  store(dtype, memory, 0, divisor);
  std::memcpy(&bits, memory, sizeof bits);
  bits--;
  std::memcpy(memory, &bits, sizeof bits);
  rest = load(dtype, memory, 0);
}

DType dtype_of_scalar(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::boolean:
      return DType::bool_;
    case Scalar::Kind::integer:
      return DType::i64;
    case Scalar::Kind::unsigned_integer:
      return DType::u64;
    default:
      return DType::f64;
  }
}

}  // namespace

Word load(DType dtype, const void* memory, int64_t index) {
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>) {
      return word_of(Boolean(static_cast<const uint8_t*>(memory)[index] != 0));
    } else {
      return word_from(static_cast<const T*>(memory)[index]);
    }
  });
}

void store(DType dtype, void* memory, int64_t index, Word word) {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T*>(memory)[index] = converted<T>(as<NumberOf<T>>(word));
  });
}

void convert(DType from, DType to, std::span<Word> words) {
  with_number_type(from, [&](auto number) {
    with_type(to, [&](auto zero) {
      for (Word& word : words) {
        word = word_from(converted<decltype(zero)>(as<decltype(number)>(word)));
      }
    });
  });
}

Word word_of(DType dtype, const Scalar& scalar) {
  Word word;
  switch (scalar.kind()) {
    case Scalar::Kind::floating:
      word = word_of(scalar.as_double());
      break;
    default:
      word = word_of(scalar.as_uint64());
      break;
  }
  convert(dtype_of_scalar(scalar), dtype, {&word, 1});
  return word;
}

Scalar scalar_of(DType dtype, Word word) {
  return with_number_type(dtype, [&](auto number) -> Scalar {
    using N = decltype(number);
    if constexpr (std::is_same_v<N, Boolean>) {
      return as<N>(word).value;
    } else {
      return plain(as<N>(word));
    }
  });
}

void evaluate(Op op, DType dtype, std::span<const Word* const> operands, std::span<Word> result) {
  const Formula formula = with_number_type(
      dtype, [&](auto number) { return numbers::kFormulas<decltype(number)>[size_t(op)]; });
  FORNAX_CHECK(formula != nullptr && int(operands.size()) == info(op).inputs);
  std::array<Word, 3> row;
  const bool keeps_below = op == Op::remainder && is_floating(dtype);
  for (size_t i = 0; i < result.size(); i++) {
    for (size_t k = 0; k < operands.size(); k++) row[k] = operands[k][i];
    result[i] = formula(row.data());
    if (keeps_below) {
      round_to(dtype, result.subspan(i, 1));
      keep_below(dtype, result[i], row[1]);
    }
  }
  if (!keeps_below) round_to(result_dtype(op, dtype), result);
}

Scalar evaluate(Op op, DType dtype, std::span<const Scalar> operands) {
  std::array<Word, 3> words;
  std::array<const Word*, 3> pointers;
  FORNAX_CHECK(operands.size() <= words.size());
  for (size_t i = 0; i < operands.size(); i++) {
    const bool condition = i == 0 && info(op).rule == Rule::selected;
    words[i] = word_of(condition ? DType::bool_ : dtype, operands[i]);
    pointers[i] = &words[i];
  }
  Word result;
  evaluate(op, dtype, std::span(pointers).first(operands.size()), {&result, 1});
  return scalar_of(result_dtype(op, dtype), result);
}

DType result_dtype(Op op, DType dtype) {
  return gives_boolean(info(op).rule) ? DType::bool_ : dtype;
}

}  // namespace fornax
