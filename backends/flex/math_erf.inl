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
// Beyond, log2(1 - erf t) = t p(t), minimax in the error of erf; until erf is 1 in T.
inline constexpr float kErfTail32[] = {-5.452578e-06f, 5.3744545e-05f, 8.638271e-05f,
                                       -0.0041368627f, 0.03236183f, -0.15135927f, -0.9173433f,
                                       -1.6280737f};
inline constexpr double kErfTail64[] = {
    -2.8472803236131146e-13, 1.4145901554243012e-11, -3.309428075799043e-10, 4.847120766149503e-09,
    -4.980922230455768e-08, 3.8097409501192393e-07, -2.2406249898247807e-06, 1.0280618825968063e-05,
    -3.6636576880543856e-05, 9.763416695281664e-05, -0.00016868217756006943, 4.6780528107683346e-05,
    0.0007764157657360147, -0.0023942758559430733, 0.00027300538658865995, 0.027608220786190872,
    -0.1482728626289554, -0.9184475933321814, -1.6279070785324032};

template <class T>
HWY_INLINE Slow<T> erf(Num<T> x) {
  const Num<T> square = x * x, a = abs(x), most = splat(choose<T>(4, 5.95));
  const Num<T> t = select(a > most, most, a);
  const Num<T> p = polynomial(square, choose<T>(kErf32, kErf64));
  const ShortPower<T> rest = short_exp2(t, polynomial(t, choose<T>(kErfTail32, kErfTail64)));
  const Num<T> far = subtract_product(Num<T>(1), rest.part, rest.power);
  return Slow<T>(
      select(square < splat(choose<T>(0.9, 0.81)), multiply_add(p, x, x), copy_sign(far, x)));
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
