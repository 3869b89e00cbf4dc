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

#include "backends/flex/math_exp.inl"
#include "backends/flex/math_inverse.inl"
#include "backends/flex/math_log.inl"
#include "backends/flex/math_trig.inl"
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

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
