// Transcendental functions of Num<float> and Num<double>, at most 4 ulp from the true value
// everywhere.  Highway's polynomials serve the range they are good in; lanes outside it (large
// angles, overflow, NaN) are done by the reference's functions.  Included as number.inl is.
#if defined(FORNAX_FLEX_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_INL
#undef FORNAX_FLEX_MATH_INL
#else
#define FORNAX_FLEX_MATH_INL
#endif

#include <hwy/contrib/math/math-inl.h>

#include "backends/flex/number.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// y with the lanes of x that are not good computed by `slow` instead.
template <class T, class F>
HWY_INLINE Num<T> repaired(Num<T> y, Num<T> x, Ask<T> good, F slow) {
  if (HWY_LIKELY(all(good))) return y;
  return select(good, y, lane_by_lane(slow, select(good, Num<T>(0), x)));
}

// The bounds of Highway's functions: of f32, of f64.
template <class T>
HWY_INLINE Ask<T> within(Num<T> x, double low32, double high32, double low64, double high64) {
  const bool narrow = sizeof(T) == 4;
  return Ask<T>(hn::And(hn::Ge(x.v, hn::Set(Tag<T>(), T(narrow ? low32 : low64))),
                        hn::Le(x.v, hn::Set(Tag<T>(), T(narrow ? high32 : high64)))));
}

// sin(r) for |r| <= pi / 2: r + r^3 p(r^2), p by minimax of the relative error.
HWY_INLINE Num<float> sin_of_reduced(Num<float> r) {
  const auto s = hn::Mul(r.v, r.v);
  auto p = hn::Set(Tag<float>(), 2.6089178390975576e-06f);
  p = hn::MulAdd(p, s, hn::Set(Tag<float>(), -1.9811106903944165e-04f));
  p = hn::MulAdd(p, s, hn::Set(Tag<float>(), 8.333087898790836e-03f));
  p = hn::MulAdd(p, s, hn::Set(Tag<float>(), -1.6666661202907562e-01f));
  return Num<float>(hn::MulAdd(hn::Mul(p, s), r.v, r.v));
}

// (-1)^n sin(x - (n - shift) pi) with n nearest to x / pi + shift.  Pi comes in three parts: the
// first difference is exact in fused arithmetic, so nothing is lost where x is near a multiple of
// pi.
HWY_INLINE Num<float> sin_shifted(Num<float> x, float shift) {
  const Tag<float> d;
  const auto magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: adding it leaves a whole number
  const auto sum = hn::Add(hn::MulAdd(x.v, hn::Set(d, 0.318309886f), hn::Set(d, shift)), magic);
  const auto n = hn::Sub(hn::Sub(sum, magic), hn::Set(d, shift));
  auto r = hn::NegMulAdd(n, hn::Set(d, 3.1415927410125732f), x.v);
  r = hn::NegMulAdd(n, hn::Set(d, -8.742277657347586e-08f), r);
  r = hn::NegMulAdd(n, hn::Set(d, -3.4302490200117637e-15f), r);
  const auto odd = hn::ShiftLeft<31>(hn::BitCast(Tag<int32_t>(), sum));
  return bits_as<float>(
      bitwise_xor(bits_as<int32_t>(sin_of_reduced(Num<float>(r))), Num<int32_t>(odd)));
}

// Fused arithmetic and floats have the short form; the others Highway's.
template <class T>
inline constexpr bool kOwn = HWY_NATIVE_FMA&& std::is_same_v<T, float>;
template <class V, class T = hn::TFromV<V>>
HWY_INLINE V quick_sin(Tag<T> d, V x) {
  if constexpr (kOwn<T>) {
    return sin_shifted(Num<float>(x), 0).v;
  } else {
    return hn::Sin(d, x);
  }
}
template <class V, class T = hn::TFromV<V>>
HWY_INLINE V quick_cos(Tag<T> d, V x) {
  if constexpr (kOwn<T>) {
    return sin_shifted(Num<float>(x), 0.5f).v;
  } else {
    return hn::Cos(d, x);
  }
}

#define FORNAX_GUARDED(name, function, low32, high32, low64, high64)           \
  template <class T>                                                           \
  HWY_INLINE Slow<T> name(Num<T> x) {                                          \
    return Slow<T>(repaired(Num<T>(function(Tag<T>(), x.v)), x,                \
                            within(x, low32, high32, low64, high64),           \
                            [](T t) { return T(numbers::name(double(t))); })); \
  }
inline constexpr double kBelow = -std::numeric_limits<double>::infinity();
FORNAX_GUARDED(expm1, hn::Expm1, -1e30, 88.7, -1e300, 709.7)
FORNAX_GUARDED(log, hn::Log, 1e-45, 3e38, 5e-324, 1e308)
FORNAX_GUARDED(log2, hn::Log2, 1e-45, 3e38, 5e-324, 1e308)
FORNAX_GUARDED(log10, hn::Log10, 1e-45, 3e38, 5e-324, 1e308)
FORNAX_GUARDED(log1p, hn::Log1p, -0.999999, 3e38, -0.999999, 1e308)
FORNAX_GUARDED(sin, quick_sin, -39000, 39000, -39000, 39000)
FORNAX_GUARDED(cos, quick_cos, -39000, 39000, -39000, 39000)
FORNAX_GUARDED(asin, hn::Asin, -1, 1, -1, 1)
FORNAX_GUARDED(acos, hn::Acos, -1, 1, -1, 1)
FORNAX_GUARDED(atan, hn::Atan, -1e30, 1e30, -1e300, 1e300)
FORNAX_GUARDED(sinh, hn::Sinh, -88.7, 88.7, -709, 709)
FORNAX_GUARDED(tanh, hn::Tanh, -1e30, 1e30, -1e300, 1e300)
FORNAX_GUARDED(asinh, hn::Asinh, -1e18, 1e18, -1e150, 1e150)
FORNAX_GUARDED(acosh, hn::Acosh, 1, 1e18, 1, 1e150)
FORNAX_GUARDED(atanh, hn::Atanh, -0.999999, 0.999999, -0.999999, 0.999999)
#undef FORNAX_GUARDED
FORNAX_BY_LANE1(tan)
FORNAX_BY_LANE2(atan2)

// e^x = 2^n e^r with n nearest to x / ln 2; e^r = 1 + r + r^2 q(r), q by minimax of the relative
// error.  In fused arithmetic x - n ln 2 is exact before its last rounding.
HWY_INLINE Num<float> quick_exp(Num<float> x) {
  const Tag<float> d;
  const Tag<int32_t> whole;
  const auto magic = hn::Set(d, 12582912.0f);  // as in sin_shifted: n is in the low bits of the sum
  const auto sum = hn::MulAdd(x.v, hn::Set(d, 1.44269504f), magic);
  const auto n = hn::Sub(sum, magic);
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693147182f), x.v);
  r = hn::NegMulAdd(n, hn::Set(d, -1.90465430e-9f), r);
  const auto s = hn::Mul(r, r);
  const auto low = hn::MulAdd(r, hn::Set(d, 1.666652113e-01f), hn::Set(d, 4.999999404e-01f));
  const auto high = hn::MulAdd(r, hn::Set(d, 8.368745446e-03f), hn::Set(d, 4.166838899e-02f));
  auto q = hn::MulAdd(s, hn::Set(d, 1.381454058e-03f), high);
  q = hn::MulAdd(s, q, low);
  const auto y = hn::Add(hn::MulAdd(s, q, r), hn::Set(d, 1.0f));
  const auto bits = hn::BitCast(whole, sum);
  // Where 2^n y is normal, n is added to the exponent of y.
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x.v), hn::Set(d, 87.3f))))) {
    return bits_as<float>(
        Num<int32_t>(hn::Add(hn::BitCast(whole, y), hn::ShiftLeft<23>(bits))));
  }
  // Elsewhere in two steps, of which the second may round to a subnormal number or 0.
  const auto power = [&](auto e) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(e, hn::Set(whole, 127))));
  };
  const auto exponent = hn::Sub(bits, hn::BitCast(whole, magic));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto scaled = hn::Mul(hn::Mul(y, power(half)), power(hn::Sub(exponent, half)));
  const Num<float> result(hn::IfThenElseZero(hn::Ge(x.v, hn::Set(d, -104.0f)), scaled));
  return repaired(result, x, Ask<float>(hn::Le(x.v, hn::Set(d, 88.7f))),
                  [](float t) { return float(numbers::exp(double(t))); });
}
template <class T>
HWY_INLINE Slow<T> exp(Num<T> x) {
  if constexpr (kOwn<T>) {
    return Slow<T>(quick_exp(x));
  } else {
    return Slow<T>(repaired(Num<T>(hn::Exp(Tag<T>(), x.v)), x,
                            within(x, kBelow, 88.7, kBelow, 709.7),
                            [](T t) { return T(numbers::exp(double(t))); }));
  }
}

template <class T>
HWY_INLINE Slow<T> cosh(Num<T> x) {
  const Num<T> e(hn::Exp(Tag<T>(), abs(x).v));
  return Slow<T>(repaired((e + Num<T>(1) / e) * splat(T(0.5)), x, within(x, -88, 88, -709, 709),
                          [](T t) { return T(numbers::cosh(double(t))); }));
}

// 2^x = 2^n * e^(r ln 2) with the whole number n nearest to x; 2^n is put together from its bits.
template <class T>
HWY_INLINE Slow<T> exp2(Num<T> x) {
  constexpr int kBias = std::numeric_limits<T>::max_exponent - 1;
  const Num<T> n = round(x);
  const Num<T> fraction(hn::Exp(Tag<T>(), ((x - n) * splat(T(0.6931471805599453))).v));
  const auto whole = hn::ConvertTo(Tag<IntOf<T>>(), n.v);
  const auto exponent = hn::Add(whole, hn::Set(Tag<IntOf<T>>(), kBias));
  const auto power = hn::ShiftLeft<std::numeric_limits<T>::digits - 1>(exponent);
  return Slow<T>(repaired(fraction * Num<T>(hn::BitCast(Tag<T>(), power)), x,
                          within(x, -125, 127, -1020, 1023),
                          [](T t) { return T(numbers::exp2(double(t))); }));
}

// Near 0, x + x q(x^2).  Beyond, 1 - e^(t p(t)) with t = |x|, until that is 1 in float.
HWY_INLINE Num<float> quick_erf(Num<float> x) {
  const Tag<float> d;
  const auto s = hn::Mul(x.v, x.v);
  auto q = hn::Set(d, -5.868130829185247e-04f);
  for (float c : {4.968747962266207e-03f, -2.67497468739748e-02f, 1.1281345784664154e-01f,
                  -3.7612447142601013e-01f, 1.2837913632392883e-01f}) {
    q = hn::MulAdd(q, s, hn::Set(d, c));
  }
  const auto near = hn::MulAdd(q, x.v, x.v);
  const auto t = hn::Min(hn::Abs(x.v), hn::Set(d, 4.0f));
  auto p = hn::Set(d, -5.296878498484148e-06f);
  for (float c : {4.9939084419747815e-05f, 2.7441737984190695e-05f, -2.8691377956420183e-03f,
                  2.257564105093479e-02f, -1.0516951978206635e-01f, -6.356731653213501e-01f,
                  -1.1285414695739746f}) {
    p = hn::MulAdd(p, t, hn::Set(d, c));
  }
  const auto far = hn::Sub(hn::Set(d, 1.0f), hn::Exp(d, hn::Mul(p, t)));
  return select(Num<float>(s) < splat(0.9f), Num<float>(near), copy_sign(Num<float>(far), x));
}
template <class T>
HWY_INLINE Slow<T> erf(Num<T> x) {
  const auto by_lane = [](T t) { return T(numbers::erf(double(t))); };
  if constexpr (std::is_same_v<T, float>) {
    return Slow<T>(repaired(quick_erf(x), x, x == x, by_lane));
  } else {
    return Slow<T>(lane_by_lane(by_lane, x));
  }
}

// For large -x by the other form, which keeps the digits that 1 / (1 + large) would lose.
template <class T>
HWY_INLINE Slow<T> sigmoid(Num<T> x) {
  const Num<T> e = exp(-abs(x)), sum = e + Num<T>(1);
  return Slow<T>(select(x < Num<T>(0), e, Num<T>(1)) / sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
