// The SIMD number types in which flex evaluates the value column of ops.def: Num<T>, a vector of
// lanes T, and Ask<T>, one yes or no per lane.  Included once per instruction set; see stages.inl.
//
// Every lane depends on its own operands alone, whatever its neighbours are: results must not
// change with an element's place in a vector.  What has no vector form is done lane by lane with
// the number types of graph/number.h, which also fix the meaning of integers.
#if defined(FORNAX_FLEX_NUMBER_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_NUMBER_INL
#undef FORNAX_FLEX_NUMBER_INL
#else
#define FORNAX_FLEX_NUMBER_INL
#endif

#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "graph/number.h"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using VecOf = hn::Vec<Tag<T>>;
template <class T>
using IntOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <class T>
using NumberOf =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<std::is_signed_v<T>, numbers::Signed, uint64_t>>;
template <class T>
inline constexpr bool kFloat = std::is_floating_point_v<T>;
inline constexpr size_t kMaxVector = 64;  // bytes
// Highway's targets of plain C++: they round products before they add, and saturate.
inline constexpr bool kPortable = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128;

template <class T>
struct Num {
  VecOf<T> v;
  Num() = default;
  HWY_INLINE explicit Num(VecOf<T> vector) : v(vector) {}
  HWY_INLINE explicit Num(int value) : v(hn::Set(Tag<T>(), T(value))) {}
};
// The result of a function that takes many instructions: its stage is a loop instead of eight
// copies.
template <class T>
struct Slow : Num<T> {
  HWY_INLINE explicit Slow(Num<T> x) : Num<T>(x) {}
};
template <class T>
struct Ask {
  hn::Mask<Tag<T>> m;
  HWY_INLINE explicit Ask(hn::Mask<Tag<T>> mask) : m(mask) {}
};

template <class T>
HWY_INLINE Num<T> splat(T value) {
  return Num<T>(hn::Set(Tag<T>(), value));
}
template <class To, class From>
HWY_INLINE Num<To> bits_as(Num<From> x) {
  return Num<To>(hn::BitCast(Tag<To>(), x.v));
}

// A lane as the number type of the reference, and back.
template <class T>
HWY_INLINE NumberOf<T> to_number(T x) {
  return NumberOf<T>(x);
}
template <class T>
HWY_INLINE T from_number(NumberOf<T> x) {
  if constexpr (std::is_same_v<NumberOf<T>, numbers::Signed>) {
    return T(x.value);
  } else {
    return T(x);
  }
}

template <class T, class F>
HWY_INLINE Num<T> lane_by_lane(F f, Num<T> x) {
  alignas(kMaxVector) T lanes[kMaxVector / sizeof(T)];
  hn::Store(x.v, Tag<T>(), lanes);
  for (size_t k = 0; k < hn::Lanes(Tag<T>()); k++) lanes[k] = f(lanes[k]);
  return Num<T>(hn::Load(Tag<T>(), lanes));
}
template <class T, class F>
HWY_INLINE Num<T> lane_by_lane(F f, Num<T> a, Num<T> b) {
  alignas(kMaxVector) T lanes[kMaxVector / sizeof(T)], others[kMaxVector / sizeof(T)];
  hn::Store(a.v, Tag<T>(), lanes);
  hn::Store(b.v, Tag<T>(), others);
  for (size_t k = 0; k < hn::Lanes(Tag<T>()); k++) lanes[k] = f(lanes[k], others[k]);
  return Num<T>(hn::Load(Tag<T>(), lanes));
}

// Arithmetic.
#if HWY_TARGET == HWY_SCALAR
template <class T>
HWY_INLINE Num<T> multiply64(Num<T> a, Num<T> b) {
  return splat(T(uint64_t(hn::GetLane(a.v)) * uint64_t(hn::GetLane(b.v))));
}
#else
// Three products of 32-bit halves; the fourth lies above the width.
template <class T>
HWY_INLINE Num<T> multiply64(Num<T> a, Num<T> b) {
  const Tag<uint64_t> d;
  const auto x = hn::BitCast(d, a.v), y = hn::BitCast(d, b.v);
  const auto times = [](auto s, auto t) HWY_ATTR {
    const Tag<uint32_t> half;
    return hn::MulEven(hn::BitCast(half, s), hn::BitCast(half, t));
  };
  const auto cross = hn::Add(times(hn::ShiftRight<32>(x), y), times(x, hn::ShiftRight<32>(y)));
  return Num<T>(hn::BitCast(Tag<T>(), hn::Add(times(x, y), hn::ShiftLeft<32>(cross))));
}
#endif
template <class T>
HWY_INLINE Num<T> operator+(Num<T> a, Num<T> b) {
  return Num<T>(hn::Add(a.v, b.v));
}
template <class T>
HWY_INLINE Num<T> operator-(Num<T> a, Num<T> b) {
  return Num<T>(hn::Sub(a.v, b.v));
}
template <class T>
HWY_INLINE Num<T> operator*(Num<T> a, Num<T> b) {
  if constexpr (kFloat<T> || sizeof(T) == 4) {
    return Num<T>(hn::Mul(a.v, b.v));
  } else {
    return multiply64(a, b);
  }
}
template <class T>
HWY_INLINE Num<T> operator/(Num<T> a, Num<T> b) {
  return Num<T>(hn::Div(a.v, b.v));
}
template <class T>
HWY_INLINE Num<T> operator-(Num<T> x) {
  if constexpr (kFloat<T>) {
    return Num<T>(hn::Xor(x.v, hn::SignBit(Tag<T>())));
  } else {
    return Num<T>(hn::Sub(hn::Zero(Tag<T>()), x.v));
  }
}

// Questions.
template <class T>
HWY_INLINE Ask<T> operator==(Num<T> a, Num<T> b) {
  return Ask<T>(hn::Eq(a.v, b.v));
}
template <class T>
HWY_INLINE Ask<T> operator!=(Num<T> a, Num<T> b) {
  return Ask<T>(hn::Not(hn::Eq(a.v, b.v)));
}
template <class T>
HWY_INLINE Ask<T> operator<(Num<T> a, Num<T> b) {
  return Ask<T>(hn::Lt(a.v, b.v));
}
template <class T>
HWY_INLINE Ask<T> operator>(Num<T> a, Num<T> b) {
  return b < a;
}
template <class T>
HWY_INLINE Ask<T> operator<=(Num<T> a, Num<T> b) {
  if constexpr (kFloat<T>) {
    return Ask<T>(hn::Le(a.v, b.v));
  } else {
    return Ask<T>(hn::Not(hn::Lt(b.v, a.v)));
  }
}
template <class T>
HWY_INLINE Ask<T> operator>=(Num<T> a, Num<T> b) {
  return b <= a;
}
template <class T>
HWY_INLINE Num<T> select(Ask<T> condition, Num<T> yes, Num<T> no) {
  return Num<T>(hn::IfThenElse(condition.m, yes.v, no.v));
}
template <class T>
HWY_INLINE Ask<T> operator&(Ask<T> a, Ask<T> b) {
  return Ask<T>(hn::And(a.m, b.m));
}
template <class T>
HWY_INLINE Ask<T> operator|(Ask<T> a, Ask<T> b) {
  return Ask<T>(hn::Or(a.m, b.m));
}
template <class T>
HWY_INLINE Ask<T> operator!(Ask<T> a) {
  return Ask<T>(hn::Not(a.m));
}
template <class T>
HWY_INLINE bool all(Ask<T> a) {
  return hn::AllTrue(Tag<T>(), a.m);
}
template <class T>
HWY_INLINE Ask<T> is_nan(Num<T> x) {
  return x != x;
}

// Sign and magnitude.
template <class T>
HWY_INLINE Num<T> abs(Num<T> x) {
  if constexpr (kFloat<T>) {
    return Num<T>(hn::Abs(x.v));
  } else if constexpr (std::is_signed_v<T>) {
    return select(x < Num<T>(0), -x, x);
  } else {
    return x;
  }
}
template <class T>
HWY_INLINE Ask<T> is_inf(Num<T> x) {
  return abs(x) == splat(std::numeric_limits<T>::infinity());
}
template <class T>
HWY_INLINE Ask<T> is_finite(Num<T> x) {
  return abs(x) < splat(std::numeric_limits<T>::infinity());
}
template <class T>
HWY_INLINE Num<T> sign(Num<T> x) {
  const Num<T> zero(0), one(1);
  const Num<T> positive = select(x > zero, one, zero);
  if constexpr (kFloat<T>) {
    return select(is_nan(x), x, select(x < zero, -one, positive));
  } else if constexpr (std::is_signed_v<T>) {
    return select(x < zero, -one, positive);
  } else {
    return select(x == zero, zero, one);
  }
}
template <class T>
HWY_INLINE Num<T> copy_sign(Num<T> magnitude, Num<T> x) {
  return Num<T>(hn::CopySign(magnitude.v, x.v));
}

// Whole numbers nearby.
template <class T>
HWY_INLINE Num<T> floor(Num<T> x) {
  if constexpr (kFloat<T>) return Num<T>(hn::Floor(x.v));
  return x;
}
template <class T>
HWY_INLINE Num<T> ceil(Num<T> x) {
  if constexpr (kFloat<T>) return Num<T>(hn::Ceil(x.v));
  return x;
}
template <class T>
HWY_INLINE Num<T> round(Num<T> x) {
  if constexpr (kFloat<T>) return Num<T>(hn::Round(x.v));
  return x;
}
template <class T>
HWY_INLINE Num<T> trunc(Num<T> x) {
  if constexpr (kFloat<T>) return Num<T>(hn::Trunc(x.v));
  return x;
}
template <class T>
HWY_INLINE Num<T> sqrt(Num<T> x) {
  return Num<T>(hn::Sqrt(x.v));
}
// Rounded once also where Highway's MulAdd rounds the product.
template <class T>
HWY_INLINE Num<T> fma(Num<T> a, Num<T> b, Num<T> c) {
  if constexpr (kPortable) {
    alignas(kMaxVector) T lanes[3][kMaxVector / sizeof(T)];
    hn::Store(a.v, Tag<T>(), lanes[0]);
    hn::Store(b.v, Tag<T>(), lanes[1]);
    hn::Store(c.v, Tag<T>(), lanes[2]);
    for (size_t k = 0; k < hn::Lanes(Tag<T>()); k++) {
      lanes[0][k] = std::fma(lanes[0][k], lanes[1][k], lanes[2][k]);
    }
    return Num<T>(hn::Load(Tag<T>(), lanes[0]));
  } else {
    return Num<T>(hn::MulAdd(a.v, b.v, c.v));
  }
}

// The larger and the smaller: NaN wins; of two zeros, maximum takes +0 and minimum -0.  The
// instructions of x86 give their second operand where one is NaN or both are zeros.
#undef FORNAX_MAX_GIVES_SECOND
#define FORNAX_MAX_GIVES_SECOND \
  (HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
template <class T>
HWY_INLINE Num<T> maximum(Num<T> a, Num<T> b) {
  if constexpr (kFloat<T>) {
#if FORNAX_MAX_GIVES_SECOND
    // Where they differ one is NaN, or both are zeros; then -0 - -0 is +0.
    const auto ab = hn::Max(a.v, b.v), differing = hn::Xor(ab, hn::Max(b.v, a.v));
    return Num<T>(hn::Sub(hn::Or(ab, differing), differing));
#else
    const Num<T> larger = select(a == b, Num<T>(hn::And(a.v, b.v)), select(a > b, a, b));
    return select(is_nan(a), a, larger);
#endif
  } else {
    return select(a < b, b, a);
  }
}
template <class T>
HWY_INLINE Num<T> minimum(Num<T> a, Num<T> b) {
  if constexpr (kFloat<T>) {
#if FORNAX_MAX_GIVES_SECOND
    return Num<T>(hn::Or(hn::Min(a.v, b.v), hn::Min(b.v, a.v)));
#else
    const Num<T> smaller = select(a == b, Num<T>(hn::Or(a.v, b.v)), select(a < b, a, b));
    return select(is_nan(a), a, smaller);
#endif
  } else {
    return select(b < a, b, a);
  }
}

// Bits.
template <class T>
HWY_INLINE Num<T> bitwise_not(Num<T> x) {
  return Num<T>(hn::Not(x.v));
}
template <class T>
HWY_INLINE Num<T> bitwise_and(Num<T> a, Num<T> b) {
  return Num<T>(hn::And(a.v, b.v));
}
template <class T>
HWY_INLINE Num<T> bitwise_or(Num<T> a, Num<T> b) {
  return Num<T>(hn::Or(a.v, b.v));
}
template <class T>
HWY_INLINE Num<T> bitwise_xor(Num<T> a, Num<T> b) {
  return Num<T>(hn::Xor(a.v, b.v));
}

// Integers have no vector form of these: lane by lane as the reference's number types.  Floats have
// theirs in math.inl.
#define FORNAX_BY_LANE(name)                                                                   \
  template <class T>                                                                           \
  requires(!kFloat<T>) HWY_INLINE Slow<T> name(Num<T> a, Num<T> b) {                           \
    return Slow<T>(lane_by_lane(                                                               \
        [](T s, T t) { return from_number<T>(numbers::name(to_number(s), to_number(t))); }, a, \
        b));                                                                                   \
  }
FORNAX_BY_LANE(trunc_divide)
FORNAX_BY_LANE(floor_divide)
FORNAX_BY_LANE(fmod)
FORNAX_BY_LANE(remainder)
FORNAX_BY_LANE(pow)
FORNAX_BY_LANE(shift_left)
FORNAX_BY_LANE(shift_right)
#undef FORNAX_BY_LANE

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
