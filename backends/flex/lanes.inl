// Vectors of lanes from memory of any dtype, and back.  Included once per instruction set.
#if defined(FORNAX_FLEX_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_LANES_INL
#undef FORNAX_FLEX_LANES_INL
#else
#define FORNAX_FLEX_LANES_INL
#endif

#include "backends/flex/stages.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

template <class T>
inline int64_t lanes_of() {
  return int64_t(hn::Lanes(Tag<T>()));
}

// One element of T as a lane L, and back.
template <class T, class L>
HWY_INLINE L widened_element(T x) {
  if constexpr (std::is_class_v<T>) {
    return L(float(x));
  } else {
    return L(x);
  }
}
template <class T, class L>
HWY_INLINE T narrowed_element(L x) {
  if constexpr (std::is_class_v<T>) {
    return T(float(x));
  } else {
    return T(x);
  }
}

// Which way a vector goes between T and L; false everywhere: element by element.
template <class T, class L>
inline constexpr bool kWidensInteger = std::is_integral_v<T>&& std::is_integral_v<L> &&
                                       sizeof(T) < sizeof(L);
template <class T, class L>
inline constexpr bool kWidensFloat = std::is_same_v<T, float>&& std::is_same_v<L, double>;
// Highway's fallback targets saturate where this must give infinity.
template <class T, class L>
inline constexpr bool kNarrowsFloat = !kPortable && kWidensFloat<T, L>;
// A half in hardware: not in the fallback target.
template <class T, class L>
inline constexpr bool kHalf =
    HWY_TARGET != HWY_SCALAR&& std::is_same_v<T, Float16>&& std::is_same_v<L, float>;
template <class T, class L>
inline constexpr bool kBrain = std::is_same_v<T, BFloat16>&& std::is_same_v<L, float>;

// Integers of T as lanes L, by steps that every instruction set has.
template <class T, class L>
HWY_INLINE Reg load_integers(const T* p) {
  constexpr bool kSigned = std::is_signed_v<T>;
  using Middle = std::conditional_t<kSigned, int32_t, uint32_t>;
  using Wide =
      std::conditional_t<sizeof(L) == 4, Middle, std::conditional_t<kSigned, int64_t, uint64_t>>;
  const auto x = hn::LoadU(hn::Rebind<T, Tag<Wide>>(), p);
  if constexpr (sizeof(T) <= 2 && sizeof(Wide) == 8) {
    const hn::Rebind<Middle, Tag<Wide>> middle;
    return to_register(Num<Wide>(hn::PromoteTo(Tag<Wide>(), hn::PromoteTo(middle, x))));
  } else {
    return to_register(Num<Wide>(hn::PromoteTo(Tag<Wide>(), x)));
  }
}

template <class T, class L>
HWY_INLINE Reg load_vector(const T* p) {
  const Tag<L> d;
  if constexpr (std::is_same_v<T, L>) {
    return to_register(Num<L>(hn::LoadU(d, p)));
  } else if constexpr (kWidensInteger<T, L>) {
    return load_integers<T, L>(p);
  } else if constexpr (kWidensFloat<T, L>) {
    return to_register(Num<L>(hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, Tag<L>>(), p))));
  } else if constexpr (kHalf<T, L>) {
    const auto* half = reinterpret_cast<const hwy::float16_t*>(p);
    return to_register(
        Num<L>(hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, Tag<L>>(), half))));
  } else if constexpr (kBrain<T, L>) {
    const hn::Rebind<uint16_t, Tag<L>> half;
    const auto bits = hn::LoadU(half, reinterpret_cast<const uint16_t*>(p));
    return to_register(Num<int32_t>(hn::ShiftLeft<16>(hn::PromoteTo(Tag<int32_t>(), bits))));
  } else {
    alignas(kMaxVector) L lanes[kMaxVector / sizeof(L)];
    for (int64_t k = 0; k < lanes_of<L>(); k++) lanes[k] = widened_element<T, L>(p[k]);
    return to_register(Num<L>(hn::Load(d, lanes)));
  }
}

// Rounds to nearest even; the lanes stay floats.
HWY_INLINE Num<float> round_to_brain(Num<float> x) {
  const Num<int32_t> bits = bits_as<int32_t>(x);
  const Num<int32_t> odd = bitwise_and(Num<int32_t>(hn::ShiftRight<16>(bits.v)), Num<int32_t>(1));
  const Num<int32_t> sum = bits + Num<int32_t>(0x7fff) + odd;
  const Num<int32_t> high = splat(int32_t(0xffff0000u));
  const Num<int32_t> nan = bitwise_or(bitwise_and(bits, high), splat(int32_t(0x7fc00000)));
  return select(is_nan(x), bits_as<float>(nan), bits_as<float>(bitwise_and(sum, high)));
}

// Lanes that hold numbers of T.
template <class T, class L>
HWY_INLINE void store_integers(Num<L> x, T* p) {
  if constexpr (sizeof(L) == 4) {
    const hn::Rebind<T, Tag<int32_t>> d;
    hn::StoreU(hn::DemoteTo(d, hn::BitCast(Tag<int32_t>(), x.v)), d, p);
  } else {
    using Bits = std::make_unsigned_t<T>;
    const hn::Rebind<Bits, Tag<uint64_t>> d;
    hn::StoreU(hn::TruncateTo(d, hn::BitCast(Tag<uint64_t>(), x.v)), d, reinterpret_cast<Bits*>(p));
  }
}

template <class T, class L>
HWY_INLINE void store_vector(Reg r, T* p) {
  const Num<L> x = from_register<L>(r);
  if constexpr (std::is_same_v<T, L>) {
    hn::StoreU(x.v, Tag<L>(), p);
  } else if constexpr (kWidensInteger<T, L>) {
    store_integers<T, L>(x, p);
  } else if constexpr (kNarrowsFloat<T, L>) {
    const hn::Rebind<T, Tag<L>> d;
    hn::StoreU(hn::DemoteTo(d, x.v), d, p);
  } else if constexpr (kHalf<T, L>) {
    const hn::Rebind<hwy::float16_t, Tag<L>> d;
    hn::StoreU(hn::DemoteTo(d, x.v), d, reinterpret_cast<hwy::float16_t*>(p));
  } else if constexpr (kBrain<T, L>) {
    const hn::Rebind<uint16_t, Tag<L>> d;
    const auto bits = hn::ShiftRight<16>(hn::BitCast(Tag<uint32_t>(), round_to_brain(x).v));
    hn::StoreU(hn::DemoteTo(d, hn::BitCast(Tag<int32_t>(), bits)), d,
               reinterpret_cast<uint16_t*>(p));
  } else {
    alignas(kMaxVector) L lanes[kMaxVector / sizeof(L)];
    hn::Store(x.v, Tag<L>(), lanes);
    for (int64_t k = 0; k < lanes_of<L>(); k++) p[k] = narrowed_element<T, L>(lanes[k]);
  }
}

// Conversions without a vector form, which stages do in a loop.
template <class T, class L>
inline constexpr bool kByElement = !(std::is_same_v<T, L> || kWidensInteger<T, L> ||
                                     kWidensFloat<T, L> || kHalf<T, L> || kBrain<T, L>);

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
