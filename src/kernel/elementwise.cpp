// The elementwise instructions of the interpreter: one function per code and dtype.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "graph/evaluate.h"
#include "kernel/machine.h"

namespace fornax::kernel {
namespace {

template <class T>
constexpr bool kFloat = std::is_floating_point_v<T>;

// The type in which whole numbers wrap.
template <class T>
auto wrapping(T value) {
  if constexpr (std::is_integral_v<T>) {
    return std::make_unsigned_t<T>(value);
  } else {
    return value;
  }
}

const uint64_t* row_of(const Context& c, const Place& place, uint32_t row) {
  return c.words.data() + place.at + size_t(row) * place.row;
}

// One loop over the elements for a function of one, two or three operands of type T.
template <class T, class F>
void run_each(Context& c, const Step& s) {
  constexpr F function{};
  for (uint32_t row = 0; row < s.rows; row++) {
    uint64_t* out = c.words.data() + s.result + size_t(row) * s.columns;
    const uint64_t* a = row_of(c, s.operands[0], row);
    const uint32_t a_step = s.operands[0].column;
    if constexpr (std::is_invocable_v<F, T>) {
      for (uint32_t i = 0; i < s.columns; i++) out[i] = put(function(get<T>(a[i * a_step])));
    } else {
      const uint64_t* b = row_of(c, s.operands[1], row);
      const uint32_t b_step = s.operands[1].column;
      if constexpr (std::is_invocable_v<F, T, T>) {
        for (uint32_t i = 0; i < s.columns; i++) {
          out[i] = put(function(get<T>(a[i * a_step]), get<T>(b[i * b_step])));
        }
      } else {
        const uint64_t* d = row_of(c, s.operands[2], row);
        const uint32_t d_step = s.operands[2].column;
        for (uint32_t i = 0; i < s.columns; i++) {
          out[i] =
              put(function(get<T>(a[i * a_step]), get<T>(b[i * b_step]), get<T>(d[i * d_step])));
        }
      }
    }
  }
}

template <class F>
Run of_floats(DType dtype, F) {
  if (dtype == DType::f32) return run_each<float, F>;
  return dtype == DType::f64 ? run_each<double, F> : nullptr;
}
template <class F>
Run of_integers(DType dtype, F) {
  switch (dtype) {
    case DType::i32:
      return run_each<int32_t, F>;
    case DType::u32:
      return run_each<uint32_t, F>;
    case DType::i64:
      return run_each<int64_t, F>;
    case DType::u64:
      return run_each<uint64_t, F>;
    default:
      return nullptr;
  }
}
template <class F>
Run of_numbers(DType dtype, F f) {
  const Run run = of_floats(dtype, f);
  return run ? run : of_integers(dtype, f);
}
template <class F>
Run of_bits(DType dtype, F f) {
  return dtype == DType::bool_ ? run_each<bool, F> : of_integers(dtype, f);
}
template <class F>
Run of_all(DType dtype, F f) {
  return dtype == DType::bool_ ? run_each<bool, F> : of_numbers(dtype, f);
}

template <class T>
T divided(T a, T b) {
  if constexpr (kFloat<T>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return T(-wrapping(a));
    return T(a / b);
  }
}
template <class T>
T rest(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == T(-1))) return 0;
  return T(a % b);
}
template <class T>
T upper_half(T a, T b) {
  if constexpr (sizeof(T) == 4) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return T((Wide(a) * Wide(b)) >> 32);
  } else {
    __extension__ using Signed128 = __int128;
    __extension__ using Unsigned128 = unsigned __int128;
    using Wide = std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>;
    return T((Wide(a) * Wide(b)) >> 64);
  }
}
template <class T>
T magnitude(T a) {
  if constexpr (kFloat<T>) {
    return std::fabs(a);
  } else {
    return a < 0 ? T(-wrapping(a)) : a;
  }
}
template <class T>
T smaller(T a, T b) {
  if constexpr (kFloat<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
}
template <class T>
T larger(T a, T b) {
  if constexpr (kFloat<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}
// Shifts count modulo the width, which is what no kernel relies on.
template <class T>
T shift_count(T b) {
  return T(b & T(sizeof(T) * 8 - 1));
}

Run arithmetic(Code code, DType d) {
  switch (code) {
    case Code::add:
      return of_numbers(d, [](auto a, auto b) { return decltype(a)(wrapping(a) + wrapping(b)); });
    case Code::sub:
      return of_numbers(d, [](auto a, auto b) { return decltype(a)(wrapping(a) - wrapping(b)); });
    case Code::mul:
      return of_numbers(d, [](auto a, auto b) { return decltype(a)(wrapping(a) * wrapping(b)); });
    case Code::fma:
      return of_floats(d, [](auto a, auto b, auto c) { return std::fma(a, b, c); });
    case Code::div:
      return of_numbers(d, [](auto a, auto b) { return divided(a, b); });
    case Code::rem:
      return of_integers(d, [](auto a, auto b) { return rest(a, b); });
    case Code::mul_high:
      return of_integers(d, [](auto a, auto b) { return upper_half(a, b); });
    case Code::neg:
      return of_numbers(d, [](auto a) { return decltype(a)(-wrapping(a)); });
    case Code::abs:
      return of_numbers(d, [](auto a) { return magnitude(a); });
    case Code::min:
      return of_numbers(d, [](auto a, auto b) { return smaller(a, b); });
    case Code::max:
      return of_numbers(d, [](auto a, auto b) { return larger(a, b); });
    case Code::minimum:
      return of_floats(d, [](auto a, auto b) { return a != a ? a : b != b ? b : smaller(a, b); });
    case Code::maximum:
      return of_floats(d, [](auto a, auto b) { return a != a ? a : b != b ? b : larger(a, b); });
    case Code::sqrt:
      return of_floats(d, [](auto a) { return std::sqrt(a); });
    case Code::floor:
      return of_floats(d, [](auto a) { return std::floor(a); });
    case Code::ceil:
      return of_floats(d, [](auto a) { return std::ceil(a); });
    case Code::round:
      return of_floats(d, [](auto a) { return std::nearbyint(a); });
    case Code::trunc:
      return of_floats(d, [](auto a) { return std::trunc(a); });
    case Code::fmod:
      return of_floats(d, [](auto a, auto b) { return std::fmod(a, b); });
    case Code::next_after:
      return of_floats(d, [](auto a, auto b) { return std::nextafter(a, b); });
    case Code::copy_sign:
      return of_floats(d, [](auto a, auto b) { return std::copysign(a, b); });
    default:
      return nullptr;
  }
}

// Functions of f32 go through double, so that they are rounded once.
Run transcendental(Code code, DType d) {
#define FORNAX_FUNCTION(name) \
  case Code::name:            \
    return of_floats(d, [](auto a) { return decltype(a)(std::name(double(a))); });
  switch (code) {
    FORNAX_FUNCTION(exp)
    FORNAX_FUNCTION(exp2)
    FORNAX_FUNCTION(expm1)
    FORNAX_FUNCTION(log)
    FORNAX_FUNCTION(log2)
    FORNAX_FUNCTION(log10)
    FORNAX_FUNCTION(log1p)
    FORNAX_FUNCTION(sin)
    FORNAX_FUNCTION(cos)
    FORNAX_FUNCTION(tan)
    FORNAX_FUNCTION(asin)
    FORNAX_FUNCTION(acos)
    FORNAX_FUNCTION(atan)
    FORNAX_FUNCTION(sinh)
    FORNAX_FUNCTION(cosh)
    FORNAX_FUNCTION(tanh)
    FORNAX_FUNCTION(asinh)
    FORNAX_FUNCTION(acosh)
    FORNAX_FUNCTION(atanh)
    FORNAX_FUNCTION(erf)
    case Code::rsqrt:
      return of_floats(d, [](auto a) { return decltype(a)(1 / std::sqrt(double(a))); });
    case Code::atan2:
      return of_floats(
          d, [](auto a, auto b) { return decltype(a)(std::atan2(double(a), double(b))); });
    case Code::pow:
      return of_floats(d,
                       [](auto a, auto b) { return decltype(a)(std::pow(double(a), double(b))); });
    default:
      return nullptr;
  }
#undef FORNAX_FUNCTION
}

Run logical(Code code, DType d) {
  switch (code) {
    case Code::bit_and:
      return of_bits(d, [](auto a, auto b) { return decltype(a)(a & b); });
    case Code::bit_or:
      return of_bits(d, [](auto a, auto b) { return decltype(a)(a | b); });
    case Code::bit_xor:
      return of_bits(d, [](auto a, auto b) { return decltype(a)(a ^ b); });
    case Code::bit_not:
      if (d == DType::bool_) {
        constexpr auto negated = [](bool a) { return !a; };
        return run_each<bool, decltype(negated)>;
      }
      return of_integers(d, [](auto a) { return decltype(a)(~a); });
    case Code::shift_left:
      return of_integers(d,
                         [](auto a, auto b) { return decltype(a)(wrapping(a) << shift_count(b)); });
    case Code::shift_right:
      return of_integers(d, [](auto a, auto b) { return decltype(a)(a >> shift_count(b)); });
    case Code::equal:
      return of_all(d, [](auto a, auto b) { return a == b; });
    case Code::not_equal:
      return of_all(d, [](auto a, auto b) { return a != b; });
    case Code::less:
      return of_numbers(d, [](auto a, auto b) { return a < b; });
    case Code::less_equal:
      return of_numbers(d, [](auto a, auto b) { return a <= b; });
    default:
      return nullptr;
  }
}

void run_select(Context& c, const Step& s) {
  const Place &condition = s.operands[0], &yes = s.operands[1], &no = s.operands[2];
  for (uint32_t row = 0; row < s.rows; row++) {
    uint64_t* out = c.words.data() + s.result + size_t(row) * s.columns;
    const uint64_t* chosen = row_of(c, condition, row);
    const uint64_t *a = row_of(c, yes, row), *b = row_of(c, no, row);
    for (uint32_t i = 0; i < s.columns; i++) {
      out[i] = get<bool>(chosen[i * condition.column]) ? a[i * yes.column] : b[i * no.column];
    }
  }
}

template <class T>
T saturated(double x) {
  using Limits = std::numeric_limits<T>;
  if (x >= double(Limits::max())) return Limits::max();
  if (x <= double(Limits::min())) return Limits::min();
  return std::isnan(x) ? T(0) : T(x);
}

template <class From, class To>
struct Converted {
  To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (kFloat<From> && std::is_integral_v<To>) {
      return saturated<To>(double(x));
    } else {
      return To(x);
    }
  }
};

// Any conversion, by way of the numbers of graph/evaluate.h.
void run_convert(Context& c, const Step& s) {
  const DType to = DType(s.target);
  for (uint32_t row = 0; row < s.rows; row++) {
    uint64_t* out = c.words.data() + s.result + size_t(row) * s.columns;
    const uint64_t* in = row_of(c, s.operands[0], row);
    for (uint32_t i = 0; i < s.columns; i++) {
      Word word = load(s.dtype, &in[i * s.operands[0].column], 0);
      convert(s.dtype, to, {&word, 1});
      uint64_t bits = 0;
      store(to, &bits, 0, word);
      out[i] = bits;
    }
  }
}

template <class From>
Run conversion_from(DType to) {
  switch (to) {
    case DType::bool_:
      return run_each<From, Converted<From, bool>>;
    case DType::i32:
      return run_each<From, Converted<From, int32_t>>;
    case DType::u32:
      return run_each<From, Converted<From, uint32_t>>;
    case DType::i64:
      return run_each<From, Converted<From, int64_t>>;
    case DType::u64:
      return run_each<From, Converted<From, uint64_t>>;
    case DType::f32:
      return run_each<From, Converted<From, float>>;
    case DType::f64:
      return run_each<From, Converted<From, double>>;
    default:
      return run_convert;
  }
}

}  // namespace

Run elementwise(Code code, DType dtype) {
  if (code == Code::select) return run_select;
  if (code == Code::spread || code == Code::bits) return copy_all;
  for (const auto& table : {arithmetic, transcendental, logical}) {
    if (const Run run = table(code, dtype)) return run;
  }
  return nullptr;
}

Run conversion(DType from, DType to) {
  switch (from) {
    case DType::bool_:
      return conversion_from<bool>(to);
    case DType::i32:
      return conversion_from<int32_t>(to);
    case DType::u32:
      return conversion_from<uint32_t>(to);
    case DType::i64:
      return conversion_from<int64_t>(to);
    case DType::u64:
      return conversion_from<uint64_t>(to);
    case DType::f32:
      return conversion_from<float>(to);
    case DType::f64:
      return conversion_from<double>(to);
    default:
      return run_convert;
  }
}

void copy_all(Context& c, const Step& s) {
  const Place& from = s.operands[0];
  for (uint32_t row = 0; row < s.rows; row++) {
    uint64_t* out = c.words.data() + s.result + size_t(row) * s.columns;
    const uint64_t* in = row_of(c, from, row);
    for (uint32_t i = 0; i < s.columns; i++) out[i] = in[i * from.column];
  }
}

void copy_masked(Context& c, const Step& s) {
  if (c.mask == ~0u) return copy_all(c, s);
  const Place& from = s.operands[0];
  for (uint32_t row = 0; row < s.rows; row++) {
    uint64_t* out = c.words.data() + s.result + size_t(row) * s.columns;
    const uint64_t* in = row_of(c, from, row);
    for (uint32_t i = 0; i < s.columns; i++) {
      if (c.mask >> i & 1) out[i] = in[i * from.column];
    }
  }
}

}  // namespace fornax::kernel
