// erf.  Included as number.inl is.
#if defined(FORNAX_FLEX_MATH_ERF_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_ERF_INL
#undef FORNAX_FLEX_MATH_ERF_INL
#else
#define FORNAX_FLEX_MATH_ERF_INL
#endif

#include "backends/flex/math_exp.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// Near 0, erf x = x + x p(x^2).
inline constexpr float kErf32[] = {-0.0005868131f, 0.004968748f, -0.026749747f,
                                   0.11281346f,    -0.37612447f, 0.12837914f};
inline constexpr double kErf64[] = {
    -8.7333176447259e-10,   1.4162895218066745e-08,  -1.6299077143724867e-07,
    1.6457930375098709e-06, -1.4925495994042293e-05, 0.00012055330283054631,
    -0.000854832704001442,  0.005223977627249278,    -0.026866170645489486,
    0.11283791670958292,    -0.3761263890318387,     0.1283791670955126};
// Beyond, ln(1 - erf t) = t p(t), minimax in the error of erf; until erf is 1 in T.
inline constexpr float kErfTail32[] = {-5.2968785e-06f, 4.9939084e-05f, 2.7441738e-05f,
                                       -0.0028691378f,  0.022575641f,   -0.10516952f,
                                       -0.63567317f,    -1.1285415f};
inline constexpr double kErfTail64[] = {
    -1.973584328576239e-13,  9.805191778802092e-12,   -2.2939207400060316e-10,
    3.35976809289009e-09,    -3.4525122006287697e-08, 2.640711198238918e-07,
    -1.5530828943892027e-06, 7.125981953631258e-06,   -2.5394539970116652e-05,
    6.767484754966384e-05,   -0.0001169215757864742,  3.2425791162945984e-05,
    0.0005381703989622095,   -0.0016595855590296911,  0.00018923291399160753,
    0.01913656039822468,     -0.10277491668481252,    -0.6366193598102687,
    -1.1283792016983127};

template <class T>
HWY_INLINE Slow<T> erf(Num<T> x) {
  const Num<T> square = x * x, t = clamped(abs(x), T(0), choose<T>(4, 5.95));
  const Num<T> p = polynomial(square, choose<T>(kErf32, kErf64));
  const Num<T> q = polynomial(t, choose<T>(kErfTail32, kErfTail64));
  const Num<T> far = Num<T>(1) - number_of(power_of(t * q));
  return Slow<T>(
      select(square < splat(choose<T>(0.9, 0.81)), multiply_add(p, x, x), copy_sign(far, x)));
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
