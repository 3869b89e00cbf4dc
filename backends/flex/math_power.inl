// pow of floats.  Included as number.inl is.
//
// a^b = e^(b ln a), with ln a and the product in two parts: the exponent may be as large as 745,
// and what it is off by counts that often in the result.
#if defined(FORNAX_FLEX_MATH_POWER_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_POWER_INL
#undef FORNAX_FLEX_MATH_POWER_INL
#else
#define FORNAX_FLEX_MATH_POWER_INL
#endif

#include "backends/flex/math_exp.inl"
#include "backends/flex/math_log.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// 2 artanh(t / 2) = t + t^3 / 12 + t^5 p(t^2).
inline constexpr float kLogTail32[] = {0.00045740785f, 0.0022302421f, 0.012500048f};
inline constexpr double kLogTail64[] = {
    2.285198904037914e-07, 8.907982305152617e-07, 4.069903567174569e-06, 1.8779978692171336e-05,
    8.877841231622718e-05, 0.0004340277776914344, 0.0022321428571440475, 0.012499999999999994};
template <class T>
inline constexpr Parts<T> kTwelfth = {T(0.08333333333333333), T(4.625929269271485e-18)};
template <>
inline constexpr Parts<float> kTwelfth<float> = {0.083333336f, -2.483527e-09f};

// 2 f / (2 + f).
template <class T>
HWY_INLINE Pair<T> odd_argument(Num<T> f) {
  const Num<T> half = f * splat(T(0.5)), bottom = half + Num<T>(1);
  return divided<T>({f, Num<T>(0)}, {bottom, half - (bottom - Num<T>(1))});
}
// ln a to about 2^-12 of a last place, a > 0.
template <class T>
HWY_INLINE Pair<T> fine_log(Num<T> a) {
  const Split<T> parts = split(a);
  const Pair<T> t = odd_argument(parts.m - Num<T>(1)), square = times(t, t);
  const Pair<T> cubic = times(t, times(square, kTwelfth<T>));
  const Num<T> p = polynomial(square.high, choose<T>(kLogTail32, kLogTail64));
  const Num<T> tail = multiply_add(square.high * square.high * t.high, p, cubic.low + t.low);
  const Pair<T> near = sum_of_sorted(t.high, cubic.high);
  const Pair<T> sum = sum_of_sorted(parts.n * splat(kShortLn2<T>.high), near.high);
  const Num<T> low = near.low + multiply_add(parts.n, splat(kShortLn2<T>.low), tail);
  return sum_of_sorted(sum.high, sum.low + low);
}

// a^b of a > 0 from ln a.  As much as `most` takes the power of any number but 1 out of bounds.
template <class T>
HWY_INLINE Num<T> power_from_log(Pair<T> log, Num<T> b) {
  const T most = choose<T>(0x1p100, 0x1p900);
  b = clamped(b, -most, most);
  const Num<T> high = b * log.high, bounded = clamped(high, kExpLow<T>, kExpHigh<T>);
  // Beyond the bounds the low part means nothing.
  const Num<T> low = multiply_add(b, log.low, product_of(b, log.high).low);
  return number_of(power_of(Pair<T>{bounded, select(high == bounded, low, Num<T>(0))}));
}

// What C's pow gives for all numbers, from the power of |a|; powers of 0 and infinity come out of
// their logarithms.
template <class T>
HWY_INLINE Num<T> power_of_any(Num<T> a, Num<T> b, Pair<T> log) {
  const Num<T> zero(0), one(1), infinity = splat(kInfinity<T>), nan = splat(Limits<T>::quiet_NaN());
  const Num<T> size = abs(a);
  log.high = select(size == zero, -infinity, select(size < infinity, log.high, size));
  log.low = select((size == zero) | (size == infinity), zero, log.low);
  Num<T> y = power_from_log(log, b);
  const Num<T> half = b * splat(T(0.5));
  const Ask<T> whole = floor(b) == b, odd = whole & (floor(half) != half);
  const Ask<T> below = copy_sign(one, a) < zero;
  y = select(below & odd, -y, y);
  y = select((a < zero) & (size < infinity) & !whole, nan, y);
  y = select(is_nan(a) | is_nan(b), nan, y);
  return select((a == one) | (b == zero), one, y);
}

template <class T>
requires kFloat<T> HWY_INLINE Slow<T> pow(Num<T> a, Num<T> b) {
  const Pair<T> log = fine_log(abs(a));
  const Num<T> infinity = splat(kInfinity<T>);
  if (HWY_LIKELY(all((a > Num<T>(0)) & (a < infinity) & (abs(b) < infinity)))) {
    return Slow<T>(power_from_log(log, b));
  }
  return Slow<T>(power_of_any(a, b, log));
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
