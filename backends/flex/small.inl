// Loops over whole small arrays, one per op and lane: what stages compute, without a pipeline.
// Operands are contiguous or single elements.  Included as number.inl is.
#if defined(FORNAX_FLEX_SMALL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_SMALL_INL
#undef FORNAX_FLEX_SMALL_INL
#else
#define FORNAX_FLEX_SMALL_INL
#endif

#include <type_traits>

#include "backends/flex/number.inl"
#include "backends/flex/stages.h"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

template <class T>
struct SmallOperand {
  const T* data;
  bool single;
  Num<T> everywhere;

  HWY_INLINE SmallOperand(const void* p, bool is_single)
      : data(static_cast<const T*>(p)), single(is_single), everywhere(splat(*data)) {}
  HWY_INLINE Num<T> at(int64_t i) const {
    return single ? everywhere : Num<T>(hn::LoadU(Tag<T>(), data + i));
  }
  HWY_INLINE Num<T> first(int64_t i, int64_t n) const {
    if (single) return everywhere;
    return Num<T>(hn::MaskedLoad(hn::FirstN(Tag<T>(), size_t(n)), Tag<T>(), data + i));
  }
};

// The condition of where: bytes.
template <class T>
struct SmallCondition {
  const uint8_t* data;
  bool single;

  HWY_INLINE SmallCondition(const void* p, bool is_single)
      : data(static_cast<const uint8_t*>(p)), single(is_single) {}
  HWY_INLINE Ask<T> at(int64_t i) const { return first(i, int64_t(hn::Lanes(Tag<T>()))); }
  HWY_INLINE Ask<T> first(int64_t i, int64_t n) const {
    alignas(kMaxVector) T lanes[kMaxVector / sizeof(T)] = {};
    for (int64_t k = 0; k < n; k++) lanes[k] = T(data[single ? 0 : i + k]);
    return Num<T>(hn::Load(Tag<T>(), lanes)) != Num<T>(0);
  }
};

template <class T>
HWY_INLINE void put_small(void* result, int64_t i, int64_t n, Num<T> x) {
  T* to = static_cast<T*>(result) + i;
  if (n == int64_t(hn::Lanes(Tag<T>()))) {
    hn::StoreU(x.v, Tag<T>(), to);
  } else {
    hn::BlendedStore(x.v, hn::FirstN(Tag<T>(), size_t(n)), Tag<T>(), to);
  }
}
template <class T>
HWY_INLINE void put_small(void* result, int64_t i, int64_t n, Ask<T> x) {
  alignas(kMaxVector) T lanes[kMaxVector / sizeof(T)];
  hn::Store(select(x, Num<T>(1), Num<T>(0)).v, Tag<T>(), lanes);
  for (int64_t k = 0; k < n; k++) static_cast<uint8_t*>(result)[i + k] = lanes[k] != T(0);
}

template <class F, class T>
void small1(int64_t count, void* result, const void* const* operands, const bool* single) {
  const SmallOperand<T> x(operands[0], single[0]);
  const int64_t lanes = int64_t(hn::Lanes(Tag<T>()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) put_small(result, i, lanes, F::apply(x.at(i)));
  if (i < count) put_small(result, i, count - i, F::apply(x.first(i, count - i)));
}

template <class F, class T>
void small2(int64_t count, void* result, const void* const* operands, const bool* single) {
  const SmallOperand<T> a(operands[0], single[0]), b(operands[1], single[1]);
  const int64_t lanes = int64_t(hn::Lanes(Tag<T>()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) put_small(result, i, lanes, F::apply(a.at(i), b.at(i)));
  if (i < count) {
    const int64_t n = count - i;
    put_small(result, i, n, F::apply(a.first(i, n), b.first(i, n)));
  }
}

template <class F, class T>
void small3(int64_t count, void* result, const void* const* operands, const bool* single) {
  using First = std::conditional_t<F::kSelects, SmallCondition<T>, SmallOperand<T>>;
  const First a(operands[0], single[0]);
  const SmallOperand<T> b(operands[1], single[1]), c(operands[2], single[2]);
  const int64_t lanes = int64_t(hn::Lanes(Tag<T>()));
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t n = count - i < lanes ? count - i : lanes;
    put_small(result, i, n, F::apply(a.first(i, n), b.first(i, n), c.first(i, n)));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
