// Folds of contiguous elements, of rows and of registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/fold.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#include <algorithm>

#include "backends/flex/fold.h"
#include "backends/flex/stages.inl"
#include "base/error.h"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

struct Sum {
  template <class T>
  static constexpr T kIdentity = T(0);
  template <class T>
  static constexpr T kNeutral = kFloat<T> ? -T(0) : T(0);
  template <class N>
  static HWY_INLINE N apply(N a, N b) {
    return a + b;
  }
  template <class T>
  static T scalar(T a, T b) {
    if constexpr (kFloat<T>) return a + b;
    return T(uint64_t(a) + uint64_t(b));
  }
};
struct Product {
  template <class T>
  static constexpr T kIdentity = T(1);
  template <class T>
  static constexpr T kNeutral = kIdentity<T>;
  template <class N>
  static HWY_INLINE N apply(N a, N b) {
    return a * b;
  }
  template <class T>
  static T scalar(T a, T b) {
    if constexpr (kFloat<T>) return a * b;
    return T(uint64_t(a) * uint64_t(b));
  }
};
struct Largest {
  template <class T>
  static constexpr T kIdentity = std::numeric_limits<T>::has_infinity
                                     ? -std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::lowest();
  template <class T>
  static constexpr T kNeutral = kIdentity<T>;
  template <class N>
  static HWY_INLINE N apply(N a, N b) {
    return maximum(a, b);
  }
  template <class T>
  static T scalar(T a, T b) {
    if constexpr (kFloat<T>) return T(numbers::maximum(double(a), double(b)));
    return a < b ? b : a;
  }
};
struct Smallest {
  template <class T>
  static constexpr T kIdentity = std::numeric_limits<T>::has_infinity
                                     ? std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::max();
  template <class T>
  static constexpr T kNeutral = kIdentity<T>;
  template <class N>
  static HWY_INLINE N apply(N a, N b) {
    return minimum(a, b);
  }
  template <class T>
  static T scalar(T a, T b) {
    if constexpr (kFloat<T>) return T(numbers::minimum(double(a), double(b)));
    return b < a ? b : a;
  }
};

// Halves a vector until one lane is left.
template <class F, class T>
HWY_INLINE T fold_lanes(Num<T> x) {
#if HWY_TARGET != HWY_SCALAR
  const Tag<T> d;
  constexpr size_t kBytes = hn::MaxLanes(Tag<T>()) * sizeof(T);
  if constexpr (kBytes >= 64) x = F::apply(x, Num<T>(hn::ConcatUpperUpper(d, x.v, x.v)));
  if constexpr (kBytes >= 32) x = F::apply(x, Num<T>(hn::SwapAdjacentBlocks(x.v)));
  if constexpr (sizeof(T) == 8) {
    x = F::apply(x, Num<T>(hn::Shuffle01(x.v)));
  } else {
    x = F::apply(x, Num<T>(hn::Shuffle1032(x.v)));
    x = F::apply(x, Num<T>(hn::Shuffle2301(x.v)));
  }
#endif
  return hn::GetLane(x.v);
}

// The order in which eight vectors meet, wherever they come from.
template <class F, class N>
HWY_INLINE N fold_eight(N a, N b, N c, N d, N e, N f, N g, N h) {
  return F::apply(F::apply(F::apply(a, b), F::apply(c, d)),
                  F::apply(F::apply(e, f), F::apply(g, h)));
}

// `all` and x[0, count), eight vectors at a time.
template <class F, class T>
HWY_INLINE Num<T> fold_onto(Num<T> all, const T* x, int64_t count) {
  const Tag<T> d;
  const auto lanes = int64_t(hn::Lanes(d));
  // One stream is read faster where it is asked for ahead; the processor stops at pages.
  constexpr int64_t kAhead = 2048 / sizeof(T), kLine = 64 / sizeof(T);
  int64_t i = 0;
  const auto vector = [&](int64_t k) HWY_ATTR { return Num<T>(hn::LoadU(d, x + i + k * lanes)); };
  for (; i + 8 * lanes <= count; i += 8 * lanes) {
    for (int64_t k = 0; k < 8 * lanes; k += kLine) __builtin_prefetch(x + i + kAhead + k);
    all = F::apply(all, fold_eight<F>(vector(0), vector(1), vector(2), vector(3), vector(4),
                                      vector(5), vector(6), vector(7)));
  }
  if (i == count) return all;
  const Num<T> identity = splat(F::template kIdentity<T>);
  Num<T> rest[8] = {identity, identity, identity, identity, identity, identity, identity, identity};
  for (int k = 0; i < count; k++, i += lanes) {
    const auto mask = hn::FirstN(d, size_t(std::min(count - i, lanes)));
    rest[k] = Num<T>(hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + i), identity.v));
  }
  return F::apply(
      all, fold_eight<F>(rest[0], rest[1], rest[2], rest[3], rest[4], rest[5], rest[6], rest[7]));
}

template <class F, class T>
T fold_block(const T* x, int64_t count) {
  return fold_lanes<F>(fold_onto<F>(splat(F::template kIdentity<T>), x, count));
}

template <class F, class T>
void fold_to_vector(const T* x, int64_t count, T* into) {
  const Num<T> all(hn::LoadU(Tag<T>(), into));
  hn::StoreU(fold_onto<F>(all, x, count).v, Tag<T>(), into);
}

template <class F, class T>
T fold_vector(const T* x) {
  return fold_lanes<F>(Num<T>(hn::LoadU(Tag<T>(), x)));
}

// Each element into its own place.
template <class F, class T>
void stage_fold(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Tag<T> tag;
  const Operand& operand = context->operands[pc->x];
  T* p = reinterpret_cast<T*>(operand.base + i * operand.advance);
  const auto lanes = int64_t(hn::Lanes(tag));
  const auto fold = [&](Reg r, int64_t k) HWY_ATTR {
    const Num<T> earlier(hn::LoadU(tag, p + k * lanes));
    hn::StoreU(F::apply(earlier, from_register<T>(r)).v, tag, p + k * lanes);
  };
#define FORNAX_DO(r, k) fold(r, k);
  FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  FORNAX_NEXT;
}

// All of them into one vector, as fold_onto() does.
template <class F, class T>
void stage_fold_to_vector(const Instruction* pc, const Context* context, int64_t i,
                          FORNAX_REGISTERS) {
  const Tag<T> tag;
  T* p = reinterpret_cast<T*>(context->operands[pc->x].base);
  const Num<T> all = fold_eight<F>(from_register<T>(a), from_register<T>(b), from_register<T>(c),
                                   from_register<T>(d), from_register<T>(e), from_register<T>(f),
                                   from_register<T>(g), from_register<T>(h));
  hn::StoreU(F::apply(Num<T>(hn::LoadU(tag, p)), all).v, tag, p);
  FORNAX_NEXT;
}

// Too short for vectors: the rows overlap in the processor.
template <class F, class T>
void fold_short_rows(const T* x, int64_t rows, int64_t length, T* result) {
  for (int64_t r = 0; r < rows; r++, x += length) {
    T all = x[0];
    for (int64_t i = 1; i < length; i++) all = F::scalar(all, x[i]);
    result[r] = all;
  }
}

// The whole vectors of eight rows, whose addresses stay in registers; gives where they end.
template <class F, class T>
HWY_INLINE int64_t fold_eight_rows(const T* const* rows, int64_t width, T* result) {
  const Tag<T> d;
  const auto lanes = int64_t(hn::Lanes(d));
  const T *p0 = rows[0], *p1 = rows[1], *p2 = rows[2], *p3 = rows[3], *p4 = rows[4], *p5 = rows[5],
          *p6 = rows[6], *p7 = rows[7];
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    const auto load = [&](const T* p) HWY_ATTR { return Num<T>(hn::LoadU(d, p + i)); };
    const auto with = [&](Num<T> all, const T* p) HWY_ATTR { return F::apply(all, load(p)); };
    const Num<T> half = with(with(with(load(p0), p1), p2), p3);
    hn::StoreU(with(with(with(with(half, p4), p5), p6), p7).v, d, result + i);
  }
  return i;
}

template <class F, class T>
void fold_rows(const T* const* rows, int n, int64_t width, T* result) {
  const Tag<T> d;
  const auto lanes = int64_t(hn::Lanes(d));
  int64_t i = n == kRowsAtOnce ? fold_eight_rows<F>(rows, width, result) : 0;
  for (; i < width; i += lanes) {
    const bool whole = i + lanes <= width;
    const auto mask = hn::FirstN(d, size_t(whole ? lanes : width - i));
    const auto load = [&](int r) HWY_ATTR {
      return Num<T>(whole ? hn::LoadU(d, rows[r] + i) : hn::MaskedLoad(mask, d, rows[r] + i));
    };
    Num<T> all = load(0);
    for (int r = 1; r < n; r++) all = F::apply(all, load(r));
    if (whole) {
      hn::StoreU(all.v, d, result + i);
    } else {
      hn::BlendedStore(all.v, mask, d, result + i);
    }
  }
}

template <class T>
int64_t find_first(const T* x, int64_t count, T value) {
  const Tag<T> d;
  const auto lanes = int64_t(hn::Lanes(d));
  const Num<T> wanted = splat(value);
  const bool any_nan = value != value;
  const auto is_it = [&](Num<T> number)
                         HWY_ATTR { return any_nan ? number != number : number == wanted; };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto found = is_it(Num<T>(hn::LoadU(d, x + i))).m;
    if (!hn::AllFalse(d, found)) return i + int64_t(hn::FindKnownFirstTrue(d, found));
  }
  while (any_nan ? x[i] == x[i] : x[i] != value) i++;
  return i;
}

template <class T>
Folds<T> find_folds(Fold fold) {
  const auto loops = []<class F>(F) {
    return Folds<T>{fold_block<F, T>,      fold_to_vector<F, T>,   fold_vector<F, T>,
                    fold_short_rows<F, T>, F::template scalar<T>,  find_first<T>,
                    fold_rows<F, T>,       F::template kNeutral<T>};
  };
  switch (fold) {
    case Fold::sum:
      return loops(Sum());
    case Fold::prod:
      return loops(Product());
    case Fold::max:
      return loops(Largest());
    default:
      return loops(Smallest());
  }
}

template <class F>
AnyStage find_stage(DType lane, bool to_vector) {
  const auto stages = [to_vector]<class T>(T) {
    return to_vector ? AnyStage(stage_fold_to_vector<F, T>) : AnyStage(stage_fold<F, T>);
  };
  switch (lane) {
    case DType::f32:
      return stages(float());
    case DType::f64:
      return stages(double());
    case DType::i64:
      return stages(int64_t());
    case DType::u64:
      return stages(uint64_t());
    default:
      fail(ErrorKind::internal, "flex: nothing is folded in lanes of {}", name_of(lane));
  }
}
AnyStage find_stage_of(Fold fold, DType lane, bool to_vector) {
  switch (fold) {
    case Fold::sum:
      return find_stage<Sum>(lane, to_vector);
    case Fold::prod:
      return find_stage<Product>(lane, to_vector);
    case Fold::max:
      return find_stage<Largest>(lane, to_vector);
    default:
      return find_stage<Smallest>(lane, to_vector);
  }
}
Folds<float> find_f32(Fold fold) { return find_folds<float>(fold); }
Folds<double> find_f64(Fold fold) { return find_folds<double>(fold); }
Folds<int64_t> find_i64(Fold fold) { return find_folds<int64_t>(fold); }
Folds<uint64_t> find_u64(Fold fold) { return find_folds<uint64_t>(fold); }

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fornax::flex {

HWY_EXPORT(find_f32);
HWY_EXPORT(find_f64);
HWY_EXPORT(find_i64);
HWY_EXPORT(find_u64);
HWY_EXPORT(find_stage_of);
template <>
Folds<float> folds<float>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(find_f32)(fold);
}
template <>
Folds<double> folds<double>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(find_f64)(fold);
}
template <>
Folds<int64_t> folds<int64_t>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(find_i64)(fold);
}
template <>
Folds<uint64_t> folds<uint64_t>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(find_u64)(fold);
}

AnyStage fold_stage(Fold fold, DType lane, bool to_vector) {
  return HWY_DYNAMIC_DISPATCH(find_stage_of)(fold, lane, to_vector);
}

}  // namespace fornax::flex
#endif
