// asin, acos, atan and atan2.  Included as number.inl is.
//
// Arguments are brought near 0 by the formulas of half angles and differences of angles (J.-M.
// Muller, Elementary Functions, chapter 11); polynomials are minimax in the relative error.
#if defined(FORNAX_FLEX_MATH_INVERSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_INVERSE_INL
#undef FORNAX_FLEX_MATH_INVERSE_INL
#else
#define FORNAX_FLEX_MATH_INVERSE_INL
#endif

#include "backends/flex/math_pair.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// For |z| <= tan(pi / 8), atan z = z + z^3 p(z^2).
inline constexpr float kAtan32[] = {-0.060908936f, 0.10599487f, -0.1424443f, 0.1999853f,
                                    -0.33333316f};
inline constexpr double kAtan64[] = {
    -0.017908783426176453, 0.03806583360922101, -0.05039348496787303, 0.05847897710337758,
    -0.06663105046707299,  0.07692060292843655, -0.09090897762034506, 0.11111110783640755,
    -0.14285714280202147,  0.1999999999995369,  -0.333333333333332};
// For |z| <= 1 / 2, asin z = z + z^3 p(z^2).
inline constexpr float kAsin32[] = {0.042157013f, 0.024185503f, 0.04546902f, 0.0749531f,
                                    0.16666752f};
inline constexpr double kAsin64[] = {
    0.03191252891780875,  -0.016224660166076297, 0.019528546896388492, 0.006527862707984047,
    0.012169240344520724, 0.013885230602039715,  0.01735970531637236,  0.022371758008737835,
    0.030381959138981125, 0.04464285682827013,   0.07500000000337102,  0.16666666666665408};

template <class T>
inline constexpr Parts<T> kHalfPi = {T(1.5707963267948966), T(6.123233995736766e-17)};
template <>
inline constexpr Parts<float> kHalfPi<float> = {1.5707964f, -4.371139e-08f};

// Where |x| is above 1 / 2 acos |x| = 2 asin z with z = sqrt((1 - |x|) / 2).
template <class T>
struct HalfAngle {
  Ask<T> far;
  Pair<T> asin;  // of z; elsewhere of |x|
};
template <class T>
HWY_INLINE HalfAngle<T> half_angle(Num<T> x) {
  const Num<T> a = abs(x), half = splat(T(0.5));
  const Ask<T> far = a > half;
  const Num<T> square = select(far, subtract_product(half, half, a), a * a);
  const Num<T> z = select(far, sqrt(square), a);
  const Num<T> p = polynomial(square, choose<T>(kAsin32, kAsin64));
  return {far, {z, square * z * p}};
}
template <class T>
HWY_INLINE Slow<T> asin(Num<T> x) {
  const HalfAngle<T> y = half_angle(x);
  const Num<T> less = y.asin.low + y.asin.low - splat(kHalfPi<T>.low);
  const Pair<T> far = sum_of_sorted(splat(kHalfPi<T>.high), -(y.asin.high + y.asin.high));
  const Num<T> high = select(y.far, far.high, y.asin.high);
  return Slow<T>(copy_sign(high + select(y.far, far.low - less, y.asin.low), x));
}
template <class T>
HWY_INLINE Slow<T> acos(Num<T> x) {
  const HalfAngle<T> y = half_angle(x);
  const Ask<T> below = x < Num<T>(0);
  // Near: pi / 2 - asin x.  Far: 2 asin z, or pi less that.
  const Num<T> zero(0), sign = copy_sign(Num<T>(1), x);
  const Num<T> times = select(y.far, select(below, Num<T>(-2), Num<T>(2)), -sign);
  const Num<T> turns = select(y.far, select(below, Num<T>(2), zero), Num<T>(1));
  const Pair<T> sum = sum_of_sorted(turns * splat(kHalfPi<T>.high), times * y.asin.high);
  const Num<T> low = multiply_add(times, y.asin.low, turns * splat(kHalfPi<T>.low));
  return Slow<T>(sum.high + (sum.low + low));
}

// atan(smaller / larger) of numbers that are at least 0, or where `steep` pi / 2 less that.
template <class T>
HWY_INLINE Pair<T> angle_of(Num<T> smaller, Num<T> larger, Ask<T> steep) {
  // Above pi / 8 the difference from pi / 4.
  const Ask<T> far = smaller > larger * splat(T(0.41421356237309503));
  const Pair<T> less = sum_of_sorted(-larger, smaller), more = sum_of_sorted(larger, smaller);
  const Num<T> zero(0), one(1), quarter = splat(T(0.5));
  const Pair<T> top = {select(far, less.high, smaller), select(far, less.low, zero)};
  const Pair<T> bottom = {select(far, more.high, larger), select(far, more.low, zero)};
  const Num<T> turns = select(far, quarter, select(steep, one, zero));
  const Num<T> sign = select(steep, -one, one);
  const Pair<T> z = divided(top, bottom);
  const Num<T> square = z.high * z.high, high = z.high * sign;
  const Num<T> p = polynomial(square, choose<T>(kAtan32, kAtan64));
  const Pair<T> sum = sum_of_sorted(turns * splat(kHalfPi<T>.high), high);
  const Num<T> low = multiply_add(square * high, p, z.low * sign);
  return {sum.high, sum.low + multiply_add(turns, splat(kHalfPi<T>.low), low)};
}
template <class T>
HWY_INLINE Slow<T> atan(Num<T> x) {
  const Num<T> one(1), most = splat(choose<T>(1e20, 1e40));
  Num<T> a = abs(x);
  a = select(a > most, most, a);
  const Ask<T> steep = a > one;
  const Pair<T> y = angle_of(select(steep, one, a), select(steep, a, one), steep);
  return Slow<T>(copy_sign(y.high + y.low, x));
}

// An infinite number is 1 beside 0, or beside 1 where both are; (0, 0) lies on an axis.  Other
// numbers are scaled, so that their sums and products are numbers.
template <class T>
HWY_INLINE Slow<T> atan2(Num<T> a, Num<T> b) {
  const Num<T> zero(0), one(1), infinity = splat(kInfinity<T>), up = abs(a), right = abs(b);
  const Ask<T> steep = up > right;
  Num<T> larger = select(steep, up, right), smaller = select(steep, right, up);
  const Ask<T> special = (larger == infinity) | (larger == zero);
  const Num<T> scale =
      select(larger < splat(choose<T>(0x1p64, 0x1p512)), splat(choose<T>(0x1p30, 0x1p300)),
             splat(choose<T>(0x1p-40, 0x1p-400)));
  smaller =
      select(special & !is_nan(smaller), select(smaller == infinity, one, zero), smaller * scale);
  larger = select(special, one, larger * scale);
  const Pair<T> y = angle_of(smaller, larger, steep);
  const Pair<T> back = sum_of_sorted(splat(2 * kHalfPi<T>.high), -y.high);
  const Num<T> back_low = back.low + (splat(2 * kHalfPi<T>.low) - y.low);
  const Num<T> turned = select(copy_sign(one, b) < zero, back.high + back_low, y.high + y.low);
  return Slow<T>(copy_sign(turned, a));
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
