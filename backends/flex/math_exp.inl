// Functions made of e^x: exp, exp2, expm1, sinh, cosh, tanh, sigmoid.  Included as number.inl is.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 and e^r from a polynomial (W. J. Cody, W. Waite, Software
// Manual for the Elementary Functions, 1980).  Coefficients are minimax in the relative error.
#if defined(FORNAX_FLEX_MATH_EXP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_EXP_INL
#undef FORNAX_FLEX_MATH_EXP_INL
#else
#define FORNAX_FLEX_MATH_EXP_INL
#endif

#include "backends/flex/math_pair.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// e^r = 1 + r + r^2 p(r).
inline constexpr float kExp32[] = {0.0013782504f, 0.008368675f, 0.041668963f, 0.16666521f,
                                   0.4999999f};
inline constexpr double kExp64[] = {
    2.5004611748585467e-08, 2.7630473179657775e-07, 2.7557572053766853e-06, 2.4801492415614105e-05,
    0.00019841269522593552, 0.0013888888944362959,  0.008333333333487038,   0.041666666666526936,
    0.16666666666666424,    0.5000000000000011};

template <class T>
inline constexpr Parts<T> kLn2 = {T(0.6931471805599453), T(2.3190468138462996e-17)};
template <>
inline constexpr Parts<float> kLn2<float> = {0.6931472f, -1.9046542e-09f};
template <class T>
inline constexpr T kLog2e = T(1.4426950408889634);

// 2^n (1 + m).
template <class T>
struct Power {
  Num<T> n;
  Pair<T> m;
};
template <class T>
HWY_INLINE Power<T> power_of_reduced(Num<T> n, Num<T> high, Num<T> low) {
  const Pair<T> r = sum_of_sorted(high, low);
  const Num<T> p = polynomial(r.high, choose<T>(kExp32, kExp64));
  return {n, {r.high, multiply_add(r.high * r.high, p, r.low)}};
}
// e^x for |x| < 2^11.
template <class T>
HWY_INLINE Power<T> power_of(Num<T> x) {
  const Num<T> n = nearest_whole(x * splat(kLog2e<T>));
  return power_of_reduced(n, exact_difference(x, n, splat(kLn2<T>.high)),
                          -(n * splat(kLn2<T>.low)));
}
template <class T>
HWY_INLINE Power<T> power_of(Pair<T> x) {
  const Num<T> n = nearest_whole(x.high * splat(kLog2e<T>));
  return power_of_reduced(n, exact_difference(x.high, n, splat(kLn2<T>.high)),
                          subtract_product(x.low, n, splat(kLn2<T>.low)));
}
template <class T>
HWY_INLINE Num<T> number_of(const Power<T>& power) {
  return scaled(Num<T>(1) + (power.m.high + power.m.low), power.n);
}

// Beyond, e^x is 0 or infinite.
template <class T>
inline constexpr T kExpLow = choose<T>(-105, -750);
template <class T>
inline constexpr T kExpHigh = choose<T>(90, 720);

template <class T>
HWY_INLINE Slow<T> exp(Num<T> x) {
  return Slow<T>(number_of(power_of(clamped(x, kExpLow<T>, kExpHigh<T>))));
}

#if HWY_NATIVE_FMA  // else products are rounded, and the short way is not short enough
// e^r = 1 + r + r^2 q(r), for the function that softmax spends its time in: without r's low part it
// is 1.02 units off at most, every fifth float tried.
inline constexpr float kShortExp32[] = {1.381454058e-03f, 8.368745446e-03f, 4.166838899e-02f,
                                        1.666652113e-01f, 4.999999404e-01f};

// 2^n y
struct ShortExp {
  Num<float> y, n, sum;  // the last bits of the sum are n
};
HWY_INLINE ShortExp short_exp(Num<float> x) {
  using T = float;
  const auto& q = kShortExp32;
  const Num<T> sum = multiply_add(x, splat(kLog2e<T>), splat(kRounder<T>));
  const Num<T> n = sum - splat(kRounder<T>);
  const Num<T> r =
      subtract_product(subtract_product(x, n, splat(kLn2<T>.high)), n, splat(kLn2<T>.low));
  const Num<T> s = r * r;
  const Num<T> low = multiply_add(r, splat(q[3]), splat(q[4]));
  const Num<T> high = multiply_add(s, splat(q[0]), multiply_add(r, splat(q[1]), splat(q[2])));
  return {Num<T>(1) + multiply_add(s, multiply_add(s, high, low), r), n, sum};
}

HWY_INLINE Slow<float> exp(Num<float> x) {
  using T = float;
  const auto all = [](Ask<T> which) HWY_ATTR { return hn::AllTrue(Tag<T>(), which.m); };
  // Where 2^n y is normal, as in a whole vector nearly always, n is added to the exponent of y.
  if (HWY_LIKELY(all(abs(x) <= splat(87.3f)))) {
    const ShortExp e = short_exp(x);
    const Tag<int32_t> whole;
    const auto shifted = hn::ShiftLeft<23>(hn::BitCast(whole, e.sum.v));
    return Slow<T>(Num<T>(hn::BitCast(Tag<T>(), hn::Add(hn::BitCast(whole, e.y.v), shifted))));
  }
  // What a softmax is not to see.
  if (all(x < splat(kExpLow<T>))) return Slow<T>(Num<T>(0));
  const ShortExp e = short_exp(clamped(x, kExpLow<T>, kExpHigh<T>));
  return Slow<T>(scaled(e.y, e.n));
}
#endif

template <class T>
HWY_INLINE Slow<T> exp2(Num<T> x) {
  const Num<T> bounded = clamped(x, choose<T>(-152, -1080), choose<T>(130, 1030));
  const Num<T> n = nearest_whole(bounded), fraction = bounded - n;
  const Pair<T> r = product_of(fraction, splat(kLn2<T>.high));
  return Slow<T>(
      number_of(power_of_reduced(n, r.high, multiply_add(fraction, splat(kLn2<T>.low), r.low))));
}

// e^x - 1 = 2^n * the pair, for |x| < 2^11.
template <class T>
struct ScaledPair {
  Num<T> n;
  Pair<T> pair;
};
template <class T>
HWY_INLINE ScaledPair<T> power_minus_one(Num<T> x) {
  const Power<T> power = power_of(x);
  // 1 - 2^-n, which is 1 for large n.
  const Num<T> n = select(power.n > Num<T>(100), Num<T>(100), power.n);
  const Pair<T> sum = sum_of_sorted(Num<T>(1) - power_of_two(-n), power.m.high);
  return {power.n, {sum.high, sum.low + power.m.low}};
}

template <class T>
HWY_INLINE Slow<T> expm1(Num<T> x) {
  const ScaledPair<T> y = power_minus_one(clamped(x, choose<T>(-30, -50), kExpHigh<T>));
  return Slow<T>(copy_sign(scaled(y.pair.high + y.pair.low, y.n), x));
}

// H + H / (2 H + 1) with H = (e^|x| - 1) / 2.
template <class T>
HWY_INLINE Slow<T> sinh(Num<T> x) {
  const Num<T> a = abs(x);
  const ScaledPair<T> e = power_minus_one(clamped(a, T(0), kExpHigh<T>));
  const Pair<T> sum = sum_of_sorted(e.pair.high, e.pair.low);
  const Num<T> n = e.n - Num<T>(1), high = scaled(sum.high, n), low = scaled(sum.low, n);
  const Num<T> most = splat(T(1e30)), bounded = select(high > most, most, high);
  const Pair<T> bottom = sum_of_sorted(Num<T>(1), bounded + bounded);
  const Num<T> quotient = Num<T>(1) / bottom.high;
  const Num<T> inverse = subtract_product(quotient, quotient * quotient, bottom.low);
  const Num<T> y = high + multiply_add(bounded, inverse, multiply_add(low, inverse, low));
  return Slow<T>(copy_sign(select(a < splat(choose<T>(1e-4, 1e-9)), a, y), x));
}

template <class T>
HWY_INLINE Slow<T> cosh(Num<T> x) {
  Power<T> power = power_of(clamped(abs(x), T(0), kExpHigh<T>));
  power.n = power.n - Num<T>(1);
  const Num<T> half = number_of(power);
  return Slow<T>(half + splat(T(0.25)) / half);
}

// 2^(a b) = part * power where that is a normal number, for what loses digits afterwards: the
// polynomial is rounded once.
inline constexpr float kPower32[] = {0.00015241285f, 0.0013391302f, 0.009618834f, 0.055503588f,
                                     0.24022645f, 0.6931472f, 1.0f};
inline constexpr double kPower64[] = {
    4.4502865912513303e-10, 7.073827469114926e-09, 1.0178084635189474e-07, 1.3215434993444435e-06,
    1.5252733810369278e-05, 0.00015403530457778098, 0.001333355814637615, 0.009618129107593491,
    0.05550410866482228, 0.24022650695910133, 0.6931471805599453, 1.0};

template <class T>
struct ShortPower {
  Num<T> part, power;
};
template <class T>
HWY_INLINE ShortPower<T> short_exp2(Num<T> a, Num<T> b) {
  // The last bits of the sum are the exponent of the power.
  constexpr T kShift = kRounder<T> + T(Limits<T>::max_exponent - 1);
  const Num<T> sum = multiply_add(a, b, splat(kShift)), n = sum - splat(kShift);
  const auto exponent = hn::ShiftLeft<Limits<T>::digits - 1>(bits_as<IntOf<T>>(sum).v);
  return {polynomial(exact_rest(a, b, n), choose<T>(kPower32, kPower64)),
          bits_as<T>(Num<IntOf<T>>(exponent))};
}

// Near 0, tanh x = x + x^3 p(x^2).
inline constexpr float kTanh32[] = {-0.0059492853f, 0.020895973f, -0.053830124f, 0.13332646f,
                                    -0.33333328f};
inline constexpr double kTanh64[] = {
    6.047013057879385e-06, -3.0261438931108257e-05, 9.170135791188442e-05, -0.00023713576342655014,
    0.0005895129063948946, -0.0014557445496814296, 0.0035921175998030077, -0.008863234753027112,
    0.0218694885015466, -0.05396825396743664, 0.13333333333332525, -0.3333333333333333};

// Beyond, 1 - 2 / (e^(2 |x|) + 1).
template <class T>
HWY_INLINE Slow<T> tanh(Num<T> x) {
  const Num<T> one(1), a = abs(x), square = a * a, most = splat(choose<T>(10, 20));
  const Num<T> p = polynomial(square, choose<T>(kTanh32, kTanh64));
  const Num<T> near = multiply_add(p * square, a, a);
  const ShortPower<T> e = short_exp2(select(a > most, most, a), splat(2 * kLog2e<T>));
  const Num<T> far = one - Num<T>(2) / multiply_add(e.part, e.power, one);
  return Slow<T>(copy_sign(select(a < splat(T(0.65)), near, far), x));
}

// 1 / (1 + e) for x >= 0 and e / (1 + e) below, with e = e^-|x|.
template <class T>
HWY_INLINE Slow<T> sigmoid(Num<T> x) {
  const Num<T> zero(0), one(1), e = exp(-abs(x));
  const Pair<T> y = divided<T>({select(x < zero, e, one), zero}, sum_of_sorted(one, e));
  return Slow<T>(y.high + y.low);
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
