// sin, cos and tan.  Included as number.inl is.
//
// x = n pi / 2 + r with whole n and |r| <= pi / 4.  Pi comes in three parts (W. J. Cody, W. Waite,
// Software Manual for the Elementary Functions, 1980); the first difference is exact, so nothing is
// lost where x is near a multiple.  Angles too large for that are reduced lane by lane.
#if defined(FORNAX_FLEX_MATH_TRIG_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_TRIG_INL
#undef FORNAX_FLEX_MATH_TRIG_INL
#else
#define FORNAX_FLEX_MATH_TRIG_INL
#endif

#include "backends/flex/angle.h"
#include "backends/flex/math_pair.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// For |r| <= pi / 4, sin r = r + r^3 p(r^2) and cos r = 1 - r^2 / 2 + r^4 q(r^2).
inline constexpr float kSinNear32[] = {-0.00019518455f, 0.00833219f, -0.16666655f};
inline constexpr double kSinNear64[] = {1.5895974919455618e-10, -2.5050742812777324e-08,
                                        2.755731358502397e-06,  -0.0001984126982946496,
                                        0.008333333333321924,   -0.1666666666666663};
inline constexpr float kCosNear32[] = {2.4432567e-05f, -0.0013887311f, 0.041666646f};
inline constexpr double kCosNear64[] = {-1.1358764799839056e-11, 2.087570568855178e-09,
                                        -2.755731421905481e-07,  2.480158728900809e-05,
                                        -0.0013888888888873348,  0.041666666666666595};

// pi, cut and not rounded: products with 0 then keep the sign of -0.
template <class T>
struct Thirds {
  T first, second, third;
};
template <class T>
inline constexpr Thirds<T> kPi = {T(3.141592653589793), T(1.224646799147353e-16),
                                  T(2.1657133478438278e-32)};
template <>
inline constexpr Thirds<float> kPi<float> = {3.1415925f, 1.5099579e-07f, 1.0780605e-14f};
template <class T>
inline constexpr T kLargeAngle = choose<T>(39000, 1e9);

// r, and a number whose last two bits are n's.
template <class T>
struct Turned {
  Pair<T> r;
  Num<IntOf<T>> n;
};
template <class T>
HWY_INLINE Turned<T> turned_by_lane(Turned<T> y, Num<T> x, Ask<T> good) {
  alignas(kMaxVector) T angles[kMaxVector / sizeof(T)], high[kMaxVector / sizeof(T)];
  alignas(kMaxVector) T low[kMaxVector / sizeof(T)], whole[kMaxVector / sizeof(T)];
  hn::Store(select(good, Num<T>(1), x).v, Tag<T>(), angles);
  for (size_t k = 0; k < hn::Lanes(Tag<T>()); k++) {
    const bool finite = angles[k] - angles[k] == 0;
    const Angle angle = reduce_angle(finite ? double(angles[k]) : 1);
    high[k] = finite ? T(angle.high) : Limits<T>::quiet_NaN();
    low[k] = T(angle.high - double(high[k]) + angle.low);
    whole[k] = kRounder<T> + T(angle.quarters);
  }
  y.r.high = select(good, y.r.high, Num<T>(hn::Load(Tag<T>(), high)));
  y.r.low = select(good, y.r.low, Num<T>(hn::Load(Tag<T>(), low)));
  const Num<T> n = select(good, bits_as<T>(y.n), Num<T>(hn::Load(Tag<T>(), whole)));
  return {y.r, bits_as<IntOf<T>>(n)};
}
template <class T>
HWY_INLINE Turned<T> turned(Num<T> x) {
  const Num<T> rounder = splat(kRounder<T>);
  const Num<T> sum = multiply_add(x, splat(T(0.6366197723675814)), rounder), n = sum - rounder;
  const Num<T> difference = exact_difference(x, n, splat(kPi<T>.first / 2));
  const Pair<T> product = product_of(n, splat(kPi<T>.second / 2));
  const Pair<T> r = sum_of(difference, -product.high);
  const Num<T> low = subtract_product(r.low - product.low, n, splat(kPi<T>.third / 2));
  const Turned<T> y = {{r.high, low}, bits_as<IntOf<T>>(sum)};
  const Ask<T> good = abs(x) < splat(kLargeAngle<T>);
  if (HWY_LIKELY(all(good))) return y;
  return turned_by_lane(y, x, good);
}
template <class T>
HWY_INLINE Ask<T> is_odd(Num<IntOf<T>> n) {
  const Num<IntOf<T>> one(1);
  return Ask<T>(hn::RebindMask(Tag<T>(), (bitwise_and(n, one) == one).m));
}

// sin r and cos r - 1, their larger parts first.
template <class T>
HWY_INLINE Pair<T> sine_of_turned(Pair<T> r) {
  const Num<T> square = r.high * r.high;
  const Num<T> p = polynomial(square, choose<T>(kSinNear32, kSinNear64));
  return {r.high, multiply_add(square * r.high, p, r.low)};
}
template <class T>
HWY_INLINE Num<T> cosine_of_turned_less_one(Pair<T> r) {
  const Num<T> square = r.high * r.high;
  const Num<T> q = polynomial(square, choose<T>(kCosNear32, kCosNear64));
  const Num<T> bend = subtract_product(square * splat(T(-0.5)), r.high, r.low);
  return multiply_add(square * square, q, bend);
}

// The sine of x and `more` quarter turns.
template <class T>
HWY_INLINE Num<T> sine(Num<T> x, int more) {
  const Turned<T> turn = turned(x);
  const Num<IntOf<T>> n = turn.n + Num<IntOf<T>>(more);
  const Pair<T> s = sine_of_turned(turn.r);
  const Ask<T> odd = is_odd<T>(n);
  const Num<T> y =
      select(odd, Num<T>(1), s.high) + select(odd, cosine_of_turned_less_one(turn.r), s.low);
  const Num<IntOf<T>> sign(hn::ShiftLeft<sizeof(T) * 8 - 2>(bitwise_and(n, Num<IntOf<T>>(2)).v));
  return bits_as<T>(bitwise_xor(bits_as<IntOf<T>>(y), sign));
}

// Where multiplying and adding is one step, floats lose so little of r that half turns and one
// polynomial do: |r| <= pi / 2, sin r = r + r^3 (c + r^2 p(r^2)).  Adding the larger term last
// keeps results from above 1.
inline constexpr float kSin32[] = {2.6061095e-06f, -0.0001980978f, 0.008333069f};
template <bool kShifted>
HWY_INLINE Num<float> quick_sine(Num<float> x) {
  const Num<float> rounder = splat(kRounder<float>), shift = splat(kShifted ? 0.5f : 0.0f);
  const Num<float> sum = multiply_add(x, splat(0.318309886f), shift) + rounder;
  const Num<float> n = (sum - rounder) - shift;
  Num<float> r = subtract_product(x, n, splat(kPi<float>.first));
  r = subtract_product(r, n, splat(kPi<float>.second));
  r = subtract_product(r, n, splat(kPi<float>.third));
  const Num<float> square = r * r, p = polynomial(square, kSin32);
  const Num<float> bend = multiply_add(square, splat(-0.1666666f), p * (square * square));
  const Num<float> y = multiply_add(bend, r, r);
  const Num<int32_t> odd(hn::ShiftLeft<31>(bits_as<int32_t>(sum).v));
  return bits_as<float>(bitwise_xor(bits_as<int32_t>(y), odd));
}
template <class T>
HWY_INLINE Slow<T> sin(Num<T> x) {
  if constexpr (HWY_NATIVE_FMA && std::is_same_v<T, float>) {
    const Ask<T> good = abs(x) < splat(kLargeAngle<T>);
    if (HWY_LIKELY(all(good))) return Slow<T>(quick_sine<false>(x));
    return Slow<T>(select(good, quick_sine<false>(x), sine(x, 0)));
  } else {
    return Slow<T>(select(x == Num<T>(0), x, sine(x, 0)));
  }
}
template <class T>
HWY_INLINE Slow<T> cos(Num<T> x) {
  if constexpr (HWY_NATIVE_FMA && std::is_same_v<T, float>) {
    const Ask<T> good = abs(x) < splat(kLargeAngle<T>);
    if (HWY_LIKELY(all(good))) return Slow<T>(quick_sine<true>(x));
    return Slow<T>(select(good, quick_sine<true>(x), sine(x, 1)));
  } else {
    return Slow<T>(sine(x, 1));
  }
}

// sin r / cos r, and -cos r / sin r where n is odd.
template <class T>
HWY_INLINE Slow<T> tan(Num<T> x) {
  const Turned<T> turn = turned(x);
  const Pair<T> s = sine_of_turned(turn.r), sine = sum_of_sorted(s.high, s.low);
  const Pair<T> cosine = sum_of_sorted(Num<T>(1), cosine_of_turned_less_one(turn.r));
  const Ask<T> odd = is_odd<T>(turn.n);
  const Pair<T> top = {select(odd, -cosine.high, sine.high), select(odd, -cosine.low, sine.low)};
  const Pair<T> bottom = {select(odd, sine.high, cosine.high), select(odd, sine.low, cosine.low)};
  const Pair<T> y = divided(top, bottom);
  return Slow<T>(select(x == Num<T>(0), x, y.high + y.low));
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
