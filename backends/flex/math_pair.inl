// Building blocks of the functions in math_*.inl: polynomials, numbers of two parts, scaling by
// powers of two.  Included as number.inl is.
//
// Two parts hold what one rounding would lose: high + low is the value, and low is small beside
// high.  The sums and products here are exact (T. J. Dekker, A floating-point technique for
// extending the available precision, 1971), unless they overflow.
#if defined(FORNAX_FLEX_MATH_PAIR_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_PAIR_INL
#undef FORNAX_FLEX_MATH_PAIR_INL
#else
#define FORNAX_FLEX_MATH_PAIR_INL
#endif

#include "backends/flex/number.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

template <class T>
using Limits = std::numeric_limits<T>;
template <class T>
inline constexpr T kInfinity = Limits<T>::infinity();

// a * b + c and c - a * b, rounded once where the machine can.
template <class T>
HWY_INLINE Num<T> multiply_add(Num<T> a, Num<T> b, Num<T> c) {
  return Num<T>(hn::MulAdd(a.v, b.v, c.v));
}
template <class T>
HWY_INLINE Num<T> subtract_product(Num<T> c, Num<T> a, Num<T> b) {
  return Num<T>(hn::NegMulAdd(a.v, b.v, c.v));
}

// The polynomial with these coefficients, the highest power first.  A long one is the sum of its
// even and its odd powers, which machines compute side by side.
template <class T, size_t kCount>
HWY_INLINE Num<T> polynomial(Num<T> x, const T (&coefficients)[kCount]) {
  constexpr size_t kStep = kCount < 6 ? 1 : 2;
  const Num<T> power = kStep == 1 ? x : x * x;
  Num<T> sums[kStep];
#pragma GCC unroll 2
  for (size_t k = 0; k < kStep; k++) {
    sums[k] = splat(coefficients[k]);
#pragma GCC unroll 32
    for (size_t i = k + kStep; i < kCount; i += kStep) {
      sums[k] = multiply_add(sums[k], power, splat(coefficients[i]));
    }
  }
  if constexpr (kStep == 1) {
    return sums[0];
  } else {
    constexpr size_t kOdd = kCount % 2;
    return multiply_add(sums[kOdd], x, sums[1 - kOdd]);
  }
}
// Of the coefficients for f32 and those for f64, T's.
template <class T, size_t kNarrow, size_t kWide>
constexpr const auto& choose(const float (&narrow)[kNarrow], const double (&wide)[kWide]) {
  if constexpr (sizeof(T) == 4) {
    return narrow;
  } else {
    return wide;
  }
}
template <class T>
constexpr T choose(double narrow, double wide) {
  return T(sizeof(T) == 4 ? narrow : wide);
}

template <class T>
struct Pair {
  Num<T> high, low;
};
// A constant in two parts.
template <class T>
struct Parts {
  T high, low;
};

// a + b where |a| >= |b|, or a is 0.
template <class T>
HWY_INLINE Pair<T> sum_of_sorted(Num<T> a, Num<T> b) {
  const Num<T> high = a + b;
  return {high, b - (high - a)};
}
template <class T>
HWY_INLINE Pair<T> sum_of(Num<T> a, Num<T> b) {
  const Num<T> high = a + b, from_b = high - a;
  return {high, (a - (high - from_b)) + (b - from_b)};
}

#if !HWY_NATIVE_FMA
// The upper half of the digits of x.
template <class T>
HWY_INLINE Num<T> upper_half(Num<T> x) {
  const Num<T> shifted = x * splat(T((int64_t(1) << (Limits<T>::digits + 1) / 2) + 1));
  return shifted - (shifted - x);
}
#endif
template <class T>
HWY_INLINE Pair<T> product_of(Num<T> a, Num<T> b) {
  const Num<T> high = a * b;
#if HWY_NATIVE_FMA
  return {high, Num<T>(hn::MulSub(a.v, b.v, high.v))};
#else
  const Num<T> a1 = upper_half(a), b1 = upper_half(b), a2 = a - a1, b2 = b - b1;
  return {high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2};
#endif
}
// c - a * b where that is a number of T.
template <class T>
HWY_INLINE Num<T> exact_difference(Num<T> c, Num<T> a, Num<T> b) {
#if HWY_NATIVE_FMA
  return subtract_product(c, a, b);
#else
  const Pair<T> product = product_of(a, b);
  return (c - product.high) - product.low;
#endif
}
// a * b - c, likewise.
template <class T>
HWY_INLINE Num<T> exact_rest(Num<T> a, Num<T> b, Num<T> c) {
#if HWY_NATIVE_FMA
  return Num<T>(hn::MulSub(a.v, b.v, c.v));
#else
  const Pair<T> product = product_of(a, b);
  return (product.high - c) + product.low;
#endif
}

// a * b, a constant: to about twice the digits of T.
template <class T>
HWY_INLINE Pair<T> times(Pair<T> a, const Parts<T>& b) {
  const Pair<T> product = product_of(a.high, splat(b.high));
  const Num<T> low = multiply_add(a.high, splat(b.low), product.low);
  return {product.high, multiply_add(a.low, splat(b.high), low)};
}
template <class T>
HWY_INLINE Pair<T> times(Pair<T> a, Pair<T> b) {
  const Pair<T> product = product_of(a.high, b.high);
  const Num<T> low = multiply_add(a.high, b.low, product.low);
  return {product.high, multiply_add(a.low, b.high, low)};
}
// a / b, likewise, and 1 / b in passing.
template <class T>
HWY_INLINE Pair<T> divided(Pair<T> a, Pair<T> b) {
  const Num<T> inverse = Num<T>(1) / b.high, high = a.high * inverse;
  const Num<T> rest = exact_difference(a.high, high, b.high) + a.low;
  return {high, subtract_product(rest, high, b.low) * inverse};
}

// x within [low, high]; NaN stays.
template <class T>
HWY_INLINE Num<T> clamped(Num<T> x, T low, T high) {
  const Num<T> least = splat(low), most = splat(high);
  return select(x < least, least, select(x > most, most, x));
}

// Adding it and taking it away again leaves the whole number nearest to |x| < 2^(digits - 2), whose
// bits are the last ones of the sum.
template <class T>
inline constexpr T kRounder = T(1.5) * T(int64_t(1) << (Limits<T>::digits - 1));
template <class T>
HWY_INLINE Num<T> nearest_whole(Num<T> x) {
  return (x + splat(kRounder<T>)) - splat(kRounder<T>);
}

// 2^n for whole n of a normal number's exponent.
template <class T>
HWY_INLINE Num<T> power_of_two(Num<T> n) {
  constexpr T kBias = Limits<T>::max_exponent - 1;
  const auto sum = bits_as<IntOf<T>>(n + splat(kRounder<T> + kBias));
  return bits_as<T>(Num<IntOf<T>>(hn::ShiftLeft<Limits<T>::digits - 1>(sum.v)));
}
// y * 2^n, which may overflow or end below the normal numbers.
template <class T>
HWY_INLINE Num<T> scaled(Num<T> y, Num<T> n) {
  const Num<T> half = nearest_whole(n * splat(T(0.5)));
  return y * power_of_two(half) * power_of_two(n - half);
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
