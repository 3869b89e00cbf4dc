// Functions made of logarithms: log, log2, log10, log1p, asinh, acosh, atanh.  Included as
// number.inl is.
//
// x = 2^n (1 + f) with 1 + f between the roots of 1/2 and 2, and ln(1 + f) = 2 artanh(f / (2 + f)),
// an odd function that short polynomials reach (J.-M. Muller, Elementary Functions, chapter 3).
// Taken from f, which has no error, what is left is small, and so are its errors.
#if defined(FORNAX_FLEX_MATH_LOG_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_LOG_INL
#undef FORNAX_FLEX_MATH_LOG_INL
#else
#define FORNAX_FLEX_MATH_LOG_INL
#endif

#include <bit>

#include "backends/flex/math_pair.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// 2 artanh(t / 2) = t + t^3 p(t^2).
inline constexpr float kLog32[] = {0.0023336478f, 0.012492996f, 0.08333347f};
inline constexpr double kLog64[] = {
    4.515211027453489e-06, 1.869397447186354e-05, 8.878692441515228e-05, 0.00043402731676447866,
    0.002232142870462145,  0.01249999999981781,   0.08333333333333418};

// The high part times an exponent is exact.
template <class T>
inline constexpr Parts<T> kShortLn2 = {T(0.6931471805598903), T(5.497923018708371e-14)};
template <>
inline constexpr Parts<float> kShortLn2<float> = {0.69314575f, 1.4286068e-06f};
template <class T>
inline constexpr Parts<T> kShortLog10of2 = {T(0.30102999566395283), T(2.8363394551044964e-14)};
template <>
inline constexpr Parts<float> kShortLog10of2<float> = {0.30103302f, -3.0243555e-06f};
template <class T>
inline constexpr Parts<T> kLog2ofE = {T(1.4426950408889634), T(2.0355273740931033e-17)};
template <>
inline constexpr Parts<float> kLog2ofE<float> = {1.442695f, 1.925963e-08f};
template <class T>
inline constexpr Parts<T> kLog10ofE = {T(0.4342944819032518), T(1.098319650216765e-17)};
template <>
inline constexpr Parts<float> kLog10ofE<float> = {0.4342945f, -1.010305e-08f};

// x = 2^n * m.
template <class T>
struct Split {
  Num<T> n, m;
};
template <class T>
HWY_INLINE Split<T> split_normal(Num<T> x) {
  using Bits = IntOf<T>;
  constexpr int kDigits = Limits<T>::digits - 1;
  constexpr Bits kOne = std::bit_cast<Bits>(T(1)), kMask = (Bits(1) << kDigits) - 1;
  constexpr Bits kRoot = std::bit_cast<Bits>(T(0.7071067811865476));
  const Num<Bits> moved = bits_as<Bits>(x) + splat(Bits(kOne - kRoot));
  // The exponent as the last digits of a large number.
  constexpr T kLarge = T(Bits(1) << kDigits);
  using Unsigned = std::make_unsigned_t<Bits>;
  const auto exponent = hn::ShiftRight<kDigits>(bits_as<Unsigned>(moved).v);
  const Num<T> sum =
      bits_as<T>(bitwise_or(Num<Unsigned>(exponent), splat(std::bit_cast<Unsigned>(kLarge))));
  const Num<Bits> m = bitwise_and(moved, splat(kMask)) + splat(kRoot);
  return {sum - splat(kLarge + T(Limits<T>::max_exponent - 1)), bits_as<T>(m)};
}
// x > 0.
template <class T>
HWY_INLINE Split<T> split(Num<T> x) {
  constexpr int kUp = Limits<T>::digits;
  const Ask<T> small = x < splat(Limits<T>::min());
  Split<T> parts = split_normal(select(small, x * splat(T(int64_t(1) << kUp)), x));
  parts.n = select(small, parts.n - splat(T(kUp)), parts.n);
  return parts;
}

// f - ln(1 + f) = t (f / 2 - t^2 p(t^2)) with t = 2 f / (2 + f).
template <class T>
HWY_INLINE Num<T> log_bend(Num<T> f) {
  const Num<T> half = f * splat(T(0.5)), t = f / (half + Num<T>(1)), square = t * t;
  return t * subtract_product(half, square, polynomial(square, choose<T>(kLog32, kLog64)));
}
// ln(1 + f) in two parts.
template <class T>
HWY_INLINE Pair<T> log_near(Num<T> f) {
  return sum_of_sorted(f, -log_bend(f));
}
// ln(2^n * (1 + f)), less: what is to be taken from f besides.
template <class T>
HWY_INLINE Num<T> log_from_parts(Num<T> n, Num<T> f, Num<T> less) {
  const Num<T> y = f - (less - n * splat(kShortLn2<T>.low));
  return multiply_add(n, splat(kShortLn2<T>.high), y);
}

// y, or what a logarithm that begins at `start` is where x is at that, below, infinite or NaN.
template <class T>
HWY_INLINE Num<T> log_repaired(Num<T> y, Num<T> x, T start) {
  const Num<T> infinity = splat(kInfinity<T>), least = splat(start);
  const Ask<T> good = (x > least) & (x < infinity);
  if (HWY_LIKELY(all(good))) return y;
  const Num<T> other = select(x < least, splat(Limits<T>::quiet_NaN()), x);
  return select(good, y, select(x == least, -infinity, other));
}

template <class T>
HWY_INLINE Slow<T> log(Num<T> x) {
  const Split<T> parts = split(x);
  const Num<T> f = parts.m - Num<T>(1);
  return Slow<T>(log_repaired(log_from_parts(parts.n, f, log_bend(f)), x, T(0)));
}
template <class T>
HWY_INLINE Slow<T> log2(Num<T> x) {
  const Split<T> parts = split(x);
  const Pair<T> y = log_near(parts.m - Num<T>(1));
  const Num<T> low = multiply_add(y.low, splat(kLog2ofE<T>.high), y.high * splat(kLog2ofE<T>.low));
  const Num<T> near = multiply_add(y.high, splat(kLog2ofE<T>.high), low);
  return Slow<T>(log_repaired(parts.n + near, x, T(0)));
}
template <class T>
HWY_INLINE Slow<T> log10(Num<T> x) {
  const Split<T> parts = split(x);
  const Pair<T> y = log_near(parts.m - Num<T>(1));
  const Num<T> rest = parts.n * splat(kShortLog10of2<T>.low);
  const Num<T> low = multiply_add(y.low, splat(kLog10ofE<T>.high),
                                  multiply_add(y.high, splat(kLog10ofE<T>.low), rest));
  const Num<T> near = multiply_add(y.high, splat(kLog10ofE<T>.high), low);
  return Slow<T>(log_repaired(multiply_add(parts.n, splat(kShortLog10of2<T>.high), near), x, T(0)));
}

// ln(2^more * (1 + f)).  From 1 on, taking 1 from the sum is exact, so its parts need not be
// sorted.
template <class T>
HWY_INLINE Num<T> log_of_one_and(Pair<T> f, Num<T> more) {
  const Pair<T> sum = sum_of_sorted(Num<T>(1), f.high);
  const Split<T> parts = split_normal(sum.high);
  // Where 1 + f is large, the low part is nothing beside it.
  const Num<T> n = select(parts.n > Num<T>(100), Num<T>(100), parts.n);
  const Num<T> low = (sum.low + f.low) * power_of_two(-n);
  const Pair<T> near = sum_of_sorted(parts.m - Num<T>(1), low);
  return log_from_parts(parts.n + more, near.high, log_bend(near.high) - near.low);
}

template <class T>
HWY_INLINE Slow<T> log1p(Num<T> x) {
  const Num<T> y = log_repaired(log_of_one_and<T>({x, Num<T>(0)}, Num<T>(0)), x, T(-1));
  return Slow<T>(select(x == Num<T>(0), x, y));
}

// ln(a + sqrt(a^2 + c)) with c = 1 or -1.
template <class T>
HWY_INLINE Num<T> log_of_hyperbola(Num<T> a, Num<T> c) {
  const Pair<T> square = product_of(a, a), sum = sum_of(square.high, c);
  const Num<T> root = sqrt(sum.high), rest = exact_difference(sum.high, root, root);
  const Num<T> twice = select(root == Num<T>(0), Num<T>(1), root + root);
  const Num<T> low = (rest + (sum.low + square.low)) / twice;
  const Pair<T> less = sum_of(root, Num<T>(-1)), f = sum_of(a, less.high);
  // Where c is nothing beside the square, ln 2a.
  const Ask<T> large = a > splat(choose<T>(0x1p30, 0x1p60));
  return log_of_one_and<T>(
      {select(large, a, f.high), select(large, Num<T>(0), f.low + (less.low + low))},
      select(large, Num<T>(1), Num<T>(0)));
}
template <class T>
HWY_INLINE Slow<T> asinh(Num<T> x) {
  const Num<T> a = abs(x), y = log_of_hyperbola(a, Num<T>(1));
  return Slow<T>(
      copy_sign(select(a < splat(choose<T>(1e-4, 1e-9)), a, log_repaired(y, a, T(-1))), x));
}
template <class T>
HWY_INLINE Slow<T> acosh(Num<T> x) {
  const Num<T> y = log_of_hyperbola(x, Num<T>(-1));
  const Ask<T> good = (x >= Num<T>(1)) & (x < splat(kInfinity<T>));
  const Num<T> other = select(x < Num<T>(1), splat(Limits<T>::quiet_NaN()), x);
  return Slow<T>(select(good, y, other));
}

// ln((1 + a) / (1 - a)) / 2.
template <class T>
HWY_INLINE Slow<T> atanh(Num<T> x) {
  const Num<T> a = abs(x), one(1);
  const Pair<T> f = divided<T>({a + a, Num<T>(0)}, sum_of_sorted(one, -a));
  const Num<T> y = log_of_one_and(f, Num<T>(0)) * splat(T(0.5));
  const Num<T> other = select(a == one, splat(kInfinity<T>), splat(Limits<T>::quiet_NaN()));
  return Slow<T>(copy_sign(select(a < one, y, other), x));
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
