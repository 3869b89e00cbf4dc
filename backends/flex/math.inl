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

#define FORNAX_GUARDED(name, function, low32, high32, low64, high64)                      \
  template <class T>                                                                      \
  HWY_INLINE Slow<T> name(Num<T> x) {                                                     \
    return Slow<T>(repaired(Num<T>(hn::function(Tag<T>(), x.v)), x,                       \
                            within(x, low32, high32, low64, high64),                      \
                            [](T t) { return T(numbers::name(double(t))); }));            \
  }
inline constexpr double kBelow = -std::numeric_limits<double>::infinity();
FORNAX_GUARDED(exp, Exp, kBelow, 88.7, kBelow, 709.7)
FORNAX_GUARDED(expm1, Expm1, -1e30, 88.7, -1e300, 709.7)
FORNAX_GUARDED(log, Log, 1e-45, 3e38, 5e-324, 1e308)
FORNAX_GUARDED(log2, Log2, 1e-45, 3e38, 5e-324, 1e308)
FORNAX_GUARDED(log10, Log10, 1e-45, 3e38, 5e-324, 1e308)
FORNAX_GUARDED(log1p, Log1p, -0.999999, 3e38, -0.999999, 1e308)
FORNAX_GUARDED(sin, Sin, -39000, 39000, -39000, 39000)
FORNAX_GUARDED(cos, Cos, -39000, 39000, -39000, 39000)
FORNAX_GUARDED(asin, Asin, -1, 1, -1, 1)
FORNAX_GUARDED(acos, Acos, -1, 1, -1, 1)
FORNAX_GUARDED(atan, Atan, -1e30, 1e30, -1e300, 1e300)
FORNAX_GUARDED(sinh, Sinh, -88.7, 88.7, -709, 709)
FORNAX_GUARDED(tanh, Tanh, -1e30, 1e30, -1e300, 1e300)
FORNAX_GUARDED(asinh, Asinh, -1e18, 1e18, -1e150, 1e150)
FORNAX_GUARDED(acosh, Acosh, 1, 1e18, 1, 1e150)
FORNAX_GUARDED(atanh, Atanh, -0.999999, 0.999999, -0.999999, 0.999999)
#undef FORNAX_GUARDED
FORNAX_BY_LANE1(tan)
FORNAX_BY_LANE1(erf)
FORNAX_BY_LANE2(atan2)

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
