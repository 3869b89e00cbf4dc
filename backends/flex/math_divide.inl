// Division with remainder of floats: fmod, remainder, trunc_divide, floor_divide.  Included as
// number.inl is.
//
// The results are those of graph/number.h bit for bit; floats become doubles, as they do there.
#if defined(FORNAX_FLEX_MATH_DIVIDE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_MATH_DIVIDE_INL
#undef FORNAX_FLEX_MATH_DIVIDE_INL
#else
#define FORNAX_FLEX_MATH_DIVIDE_INL
#endif

#include "backends/flex/math_pair.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

using Double = Num<double>;

HWY_INLINE double fmod_of_lane(double a, double b) { return numbers::fmod(a, b); }

// The quotient is off by at most one, upwards, where it is a number of 52 digits; then what it
// leaves is exact.
HWY_INLINE Double wide_fmod(Double a, Double b) {
  const Double size = abs(a), divisor = abs(b), zero(0);
  const Ask<double> good = (size < divisor * splat(0x1p52)) & (size < splat(0x1p900)) &
                           (divisor < splat(0x1p900)) & (divisor > splat(0x1p-900));
  const Double rest = exact_difference(size, trunc(size / divisor), divisor);
  const Double y = copy_sign(select(rest < zero, rest + divisor, rest), a);
  if (HWY_LIKELY(all(good))) return y;
  const Double others =
      lane_by_lane(fmod_of_lane, select(good, zero, a), select(good, Double(1), b));
  return select(good, y, others);
}

struct Fmod {
  static HWY_INLINE Double of(Double a, Double b) { return wide_fmod(a, b); }
};
// A tiny rest vanishes in its sum with b, but the result stays below b.
struct Remainder {
  static HWY_INLINE Double of(Double a, Double b) {
    const Double rest = wide_fmod(a, b), sum = rest + b, zero(0);
    const Double below = bits_as<double>(bits_as<int64_t>(b) - Num<int64_t>(1));
    const Double other = select((sum == b) & is_finite(b), below, sum);
    const Ask<double> differ = ((rest < zero) & (b > zero)) | ((rest > zero) & (b < zero));
    return select(rest == zero, copy_sign(zero, b), select(differ, other, rest));
  }
};
struct TruncDivide {
  static HWY_INLINE Double of(Double a, Double b) {
    const Double quotient = a / b;
    const Double whole = copy_sign(round((a - wide_fmod(a, b)) / b), quotient);
    return select((b == Double(0)) | is_inf(a), quotient, whole);
  }
};
struct FloorDivide {
  static HWY_INLINE Double of(Double a, Double b) {
    const Double rest = wide_fmod(a, b), quotient = a / b, zero(0);
    const Double whole = round((a - rest) / b);
    const Ask<double> differ = ((rest < zero) & (b > zero)) | ((rest > zero) & (b < zero));
    const Double y = select(differ, whole - Double(1), copy_sign(whole, quotient));
    return select((b == zero) | is_inf(a), quotient, y);
  }
};

// F of floats as doubles, rounded.
HWY_INLINE Double load_as_doubles(const float* p) {
  const hn::Rebind<float, Tag<double>> narrow;
  return Double(hn::PromoteTo(Tag<double>(), hn::Load(narrow, p)));
}
HWY_INLINE void store_as_floats(Double x, float* p) {
  if constexpr (kPortable) {  // DemoteTo would saturate
    alignas(kMaxVector) double lanes[kMaxVector / sizeof(double)];
    hn::Store(x.v, Tag<double>(), lanes);
    for (size_t k = 0; k < hn::Lanes(Tag<double>()); k++) p[k] = float(lanes[k]);
  } else {
    const hn::Rebind<float, Tag<double>> narrow;
    hn::Store(hn::DemoteTo(narrow, x.v), narrow, p);
  }
}
template <class F>
HWY_INLINE Num<float> in_doubles(Num<float> a, Num<float> b) {
  alignas(kMaxVector) float lanes[kMaxVector / sizeof(float)], others[kMaxVector / sizeof(float)];
  hn::Store(a.v, Tag<float>(), lanes);
  hn::Store(b.v, Tag<float>(), others);
  for (size_t k = 0; k < hn::Lanes(Tag<float>()); k += hn::Lanes(Tag<double>())) {
    store_as_floats(F::of(load_as_doubles(lanes + k), load_as_doubles(others + k)), lanes + k);
  }
  return Num<float>(hn::Load(Tag<float>(), lanes));
}
template <class F, class T>
HWY_INLINE Num<T> divide_floats(Num<T> a, Num<T> b) {
  if constexpr (sizeof(T) == 4) {
    return in_doubles<F>(a, b);
  } else {
    return F::of(a, b);
  }
}

template <class T>
requires kFloat<T> HWY_INLINE Slow<T> fmod(Num<T> a, Num<T> b) {
  return Slow<T>(divide_floats<Fmod>(a, b));
}
template <class T>
requires kFloat<T> HWY_INLINE Slow<T> trunc_divide(Num<T> a, Num<T> b) {
  return Slow<T>(divide_floats<TruncDivide>(a, b));
}
template <class T>
requires kFloat<T> HWY_INLINE Slow<T> floor_divide(Num<T> a, Num<T> b) {
  return Slow<T>(divide_floats<FloorDivide>(a, b));
}
// Rounding to T must not reach b: a remainder is below it (graph/evaluate.cpp does the same).
template <class T>
requires kFloat<T> HWY_INLINE Slow<T> remainder(Num<T> a, Num<T> b) {
  const Num<T> rest = divide_floats<Remainder>(a, b);
  const Num<T> below = bits_as<T>(bits_as<IntOf<T>>(b) - Num<IntOf<T>>(1));
  return Slow<T>(select((rest == b) & is_finite(b), below, rest));
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
