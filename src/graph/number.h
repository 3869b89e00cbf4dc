// The number types in which the value column of ops.def is evaluated, and every function that it
// may call: double for all floats, Signed and uint64_t for integers of any width, Boolean for bool.
// A result is brought to its dtype afterwards (graph/evaluate.h), so these know 64 bits only.
//
// Nothing here is undefined: integers wrap around, and whole numbers over 0 give 0.  Functions for
// floats alone exist for double alone.  All are pure and safe from any thread.
#pragma once
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>

namespace fornax::numbers {

// A signed integer that wraps where int64_t would be undefined.
struct Signed {
  int64_t value = 0;
  Signed() = default;
  constexpr explicit Signed(int64_t v) : value(v) {}
  static constexpr Signed wrap(uint64_t bits) { return Signed(int64_t(bits)); }
  constexpr uint64_t bits() const { return uint64_t(value); }
  auto operator<=>(const Signed&) const = default;
};

// A truth value: + is or, * is and.
struct Boolean {
  bool value = false;
  Boolean() = default;
  constexpr explicit Boolean(bool v) : value(v) {}
  auto operator<=>(const Boolean&) const = default;
};

template <class N>
concept Whole = std::same_as<N, Signed> || std::same_as<N, uint64_t> || std::same_as<N, Boolean>;
template <class N>
concept Number = std::same_as<N, double> || Whole<N>;

inline Signed operator-(Signed x) { return Signed::wrap(-x.bits()); }
inline Signed operator+(Signed a, Signed b) { return Signed::wrap(a.bits() + b.bits()); }
inline Signed operator-(Signed a, Signed b) { return Signed::wrap(a.bits() - b.bits()); }
inline Signed operator*(Signed a, Signed b) { return Signed::wrap(a.bits() * b.bits()); }
inline Boolean operator+(Boolean a, Boolean b) { return Boolean(a.value || b.value); }
inline Boolean operator*(Boolean a, Boolean b) { return Boolean(a.value && b.value); }

// Questions.
inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_inf(double x) { return std::isinf(x); }
inline bool is_finite(double x) { return std::isfinite(x); }
bool is_nan(Whole auto) { return false; }

// Sign and magnitude.
inline double abs(double x) { return std::fabs(x); }
inline Signed abs(Signed x) { return x.value < 0 ? -x : x; }
inline uint64_t abs(uint64_t x) { return x; }
inline Boolean abs(Boolean x) { return x; }
inline double sign(double x) { return is_nan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0; }
inline Signed sign(Signed x) { return Signed((x.value > 0) - (x.value < 0)); }
inline uint64_t sign(uint64_t x) { return x > 0; }
inline Boolean sign(Boolean x) { return x; }

// Roots, exponentials, logarithms, angles and the like.
inline double sqrt(double x) { return std::sqrt(x); }
inline double exp(double x) { return std::exp(x); }
inline double exp2(double x) { return std::exp2(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log(double x) { return std::log(x); }
inline double log2(double x) { return std::log2(x); }
inline double log10(double x) { return std::log10(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tan(double x) { return std::tan(x); }
inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double sinh(double x) { return std::sinh(x); }
inline double cosh(double x) { return std::cosh(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double asinh(double x) { return std::asinh(x); }
inline double acosh(double x) { return std::acosh(x); }
inline double atanh(double x) { return std::atanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double atan2(double a, double b) { return std::atan2(a, b); }
// Below 0 by the other form, which keeps the digits that 1 / (1 + large) would lose.
inline double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}

inline double fma(double a, double b, double c) { return std::fma(a, b, c); }

// Whole numbers nearby.
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double round(double x) { return std::nearbyint(x); }
inline double trunc(double x) { return std::trunc(x); }
template <Whole N>
N floor(N x) {
  return x;
}
template <Whole N>
N ceil(N x) {
  return x;
}
template <Whole N>
N round(N x) {
  return x;
}
template <Whole N>
N trunc(N x) {
  return x;
}

// Division of floats.  The quotients come from the exact remainder: a / b itself may round up to a
// whole number that b does not fit into a so often.
inline double fmod(double a, double b) { return std::fmod(a, b); }
inline double remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  if ((rest < 0) == (b < 0) || is_nan(rest)) return rest;
  const double sum = rest + b;
  // A tiny rest vanishes in the sum, but the result stays below b.
  return sum == b && is_finite(b) ? std::nextafter(b, 0.0) : sum;
}
inline double trunc_divide(double a, double b) {
  if (b == 0 || is_inf(a)) return a / b;
  return std::copysign(std::nearbyint((a - std::fmod(a, b)) / b), a / b);
}
inline double floor_divide(double a, double b) {
  if (b == 0 || is_inf(a)) return a / b;
  const double rest = std::fmod(a, b);
  const double quotient = std::nearbyint((a - rest) / b);
  if (rest != 0 && (rest < 0) != (b < 0)) return quotient - 1;
  return std::copysign(quotient, a / b);
}

// Division of integers.
inline Signed trunc_divide(Signed a, Signed b) {
  if (b.value == 0) return Signed(0);
  return b.value == -1 ? -a : Signed(a.value / b.value);
}
inline Signed fmod(Signed a, Signed b) {
  if (b.value == 0 || b.value == -1) return Signed(0);
  return Signed(a.value % b.value);
}
inline Signed floor_divide(Signed a, Signed b) {
  const Signed rest = fmod(a, b);
  const bool down = rest.value != 0 && (rest.value < 0) != (b.value < 0);
  return trunc_divide(a, b) - Signed(down);
}
inline Signed remainder(Signed a, Signed b) {
  const Signed rest = fmod(a, b);
  return rest.value != 0 && (rest.value < 0) != (b.value < 0) ? rest + b : rest;
}
inline uint64_t trunc_divide(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
inline uint64_t floor_divide(uint64_t a, uint64_t b) { return trunc_divide(a, b); }
inline uint64_t fmod(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }
inline uint64_t remainder(uint64_t a, uint64_t b) { return fmod(a, b); }

inline double pow(double a, double b) { return std::pow(a, b); }
inline uint64_t pow(uint64_t a, uint64_t b) {
  uint64_t result = 1;
  for (; b > 0; b >>= 1) {
    if (b & 1) result *= a;
    a *= a;
  }
  return result;
}
inline Signed pow(Signed a, Signed b) {
  if (b.value >= 0) return Signed::wrap(pow(a.bits(), b.bits()));
  if (a.value == -1) return Signed(b.value % 2 != 0 ? -1 : 1);
  return Signed(a.value == 1);
}

// NaN wins; of two zeros, maximum takes +0 and minimum -0.
inline double maximum(double a, double b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline double minimum(double a, double b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <Whole N>
N maximum(N a, N b) {
  return a < b ? b : a;
}
template <Whole N>
N minimum(N a, N b) {
  return b < a ? b : a;
}

// Bits.  A shift by a negative number is one outside the width.
inline uint64_t bitwise_not(uint64_t x) { return ~x; }
inline uint64_t bitwise_and(uint64_t a, uint64_t b) { return a & b; }
inline uint64_t bitwise_or(uint64_t a, uint64_t b) { return a | b; }
inline uint64_t bitwise_xor(uint64_t a, uint64_t b) { return a ^ b; }
inline uint64_t shift_left(uint64_t a, uint64_t b) { return b < 64 ? a << b : 0; }
inline uint64_t shift_right(uint64_t a, uint64_t b) { return b < 64 ? a >> b : 0; }
inline Signed bitwise_not(Signed x) { return Signed(~x.value); }
inline Signed bitwise_and(Signed a, Signed b) { return Signed(a.value & b.value); }
inline Signed bitwise_or(Signed a, Signed b) { return Signed(a.value | b.value); }
inline Signed bitwise_xor(Signed a, Signed b) { return Signed(a.value ^ b.value); }
inline Signed shift_left(Signed a, Signed b) {
  return Signed::wrap(shift_left(a.bits(), b.bits()));
}
inline Signed shift_right(Signed a, Signed b) {
  return Signed(a.value >> (b.bits() < 64 ? b.value : 63));
}
inline Boolean bitwise_not(Boolean x) { return Boolean(!x.value); }
inline Boolean bitwise_and(Boolean a, Boolean b) { return a * b; }
inline Boolean bitwise_or(Boolean a, Boolean b) { return a + b; }
inline Boolean bitwise_xor(Boolean a, Boolean b) { return Boolean(a.value != b.value); }
inline Boolean shift_left(Boolean a, Boolean b) { return a * bitwise_not(b); }
inline Boolean shift_right(Boolean a, Boolean b) { return a * bitwise_not(b); }

template <Number N>
N select(Boolean condition, N yes, N no) {
  return condition.value ? yes : no;
}

}  // namespace fornax::numbers
