// How a stage is written: its signature, eight registers at a time, and the table that
// FORNAX_LANE's ops make.  Included once per instruction set, by the stages_*.cpp through
// hwy/foreach_target.h.
#if defined(FORNAX_FLEX_STAGES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FORNAX_FLEX_STAGES_INL
#undef FORNAX_FLEX_STAGES_INL
#else
#define FORNAX_FLEX_STAGES_INL
#endif

#include <cstring>

#include "backends/flex/number.inl"
#include "backends/flex/stages.h"

// g++ makes the sibling call by itself from -O2 on.  On x86 clang passes vectors wider than the
// baseline's in memory, and clang 14 overwrites the stack where it must make the call.
#if defined(__clang__) && !defined(__x86_64__)
#define FORNAX_TAIL __attribute__((musttail))
#else
#define FORNAX_TAIL
#endif
#define FORNAX_REGISTERS Reg a, Reg b, Reg c, Reg d, Reg e, Reg f, Reg g, Reg h
#define FORNAX_NEXT                                                                                \
  FORNAX_TAIL return reinterpret_cast<Stage>(pc[1].stage)(pc + 1, context, i, a, b, c, d, e, f, g, \
                                                          h)
// DO(register, its number), eight times.
#define FORNAX_EACH(DO) DO(a, 0) DO(b, 1) DO(c, 2) DO(d, 3) DO(e, 4) DO(f, 5) DO(g, 6) DO(h, 7)

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
using Reg = VecOf<double>;  // one lane of either width
#else
using Reg = VecOf<float>;  // bits of any lanes
#endif
using Stage = void (*)(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS);

template <class T>
HWY_INLINE Num<T> from_register(Reg r) {
#if HWY_TARGET == HWY_SCALAR
  T lane;
  memcpy(&lane, &r.raw, sizeof(lane));
  return splat(lane);
#else
  return Num<T>(hn::BitCast(Tag<T>(), r));
#endif
}
template <class T>
HWY_INLINE Reg to_register(Num<T> x) {
#if HWY_TARGET == HWY_SCALAR
  double bits = 0;
  memcpy(&bits, &x.v.raw, sizeof(T));
  return Reg(bits);
#else
  return hn::BitCast(Tag<float>(), x.v);
#endif
}
// Truth in a register is the integer 0 or 1.
template <class T>
HWY_INLINE Reg to_register(Ask<T> x) {
  return to_register(select(x, bits_as<T>(Num<IntOf<T>>(1)), bits_as<T>(Num<IntOf<T>>(0))));
}
template <class T>
HWY_INLINE Ask<T> ask_register(Reg r) {
  return bits_as<T>(from_register<IntOf<T>>(r)) != Num<T>(0);
}
template <>
HWY_INLINE Ask<float> ask_register<float>(Reg r) {
  return Ask<float>(hn::RebindMask(Tag<float>(), ask_register<int32_t>(r).m));
}
template <>
HWY_INLINE Ask<double> ask_register<double>(Reg r) {
  return Ask<double>(hn::RebindMask(Tag<double>(), ask_register<int64_t>(r).m));
}
template <class T>
HWY_INLINE Num<T> load_lanes(const char* p) {
  return Num<T>(hn::LoadU(Tag<T>(), reinterpret_cast<const T*>(p)));
}

template <class R>
inline constexpr bool kSlow = false;
template <class T>
inline constexpr bool kSlow<Slow<T>> = true;

// Formulas: value columns with the operand in registers first.
template <class F, class T>
void stage1(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  if constexpr (kSlow<decltype(F::apply(Num<T>()))>) {
    Reg v[8] = {a, b, c, d, e, f, g, h};
#pragma GCC unroll 1
    for (int k = 0; k < 8; k++) v[k] = to_register(F::apply(from_register<T>(v[k])));
    a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
  } else {
#define FORNAX_DO(r, k) r = to_register(F::apply(from_register<T>(r)));
    FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  }
  FORNAX_NEXT;
}

template <class F, class T>
void stage2(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand& operand = context->operands[pc->x];
  const char* p = operand.base + i * operand.advance;
  if constexpr (kSlow<decltype(F::apply(Num<T>(), Num<T>()))>) {
    const int64_t step = operand.step;
    Reg v[8] = {a, b, c, d, e, f, g, h};
#pragma GCC unroll 1
    for (int k = 0; k < 8; k++) {
      v[k] = to_register(F::apply(from_register<T>(v[k]), load_lanes<T>(p + k * step)));
    }
    a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
  } else if (operand.step == 0) {
    const Num<T> everywhere = load_lanes<T>(p);
#define FORNAX_DO(r, k) r = to_register(F::apply(from_register<T>(r), everywhere));
    FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  } else {
    // The step that is not 0 is a vector's bytes.
    constexpr size_t kStep = hn::MaxLanes(Tag<T>()) * sizeof(T);
#define FORNAX_DO(r, k) \
  r = to_register(F::apply(from_register<T>(r), load_lanes<T>(p + k * kStep)));
    FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  }
  FORNAX_NEXT;
}

// Both operands in memory; the first is no constant.
template <class F, class T>
void stage2_loading(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand &first = context->operands[pc->x], &second = context->operands[pc->y];
  const char* p = first.base + i * first.advance;
  const char* q = second.base + i * second.advance;
  constexpr size_t kStep = hn::MaxLanes(Tag<T>()) * sizeof(T);
  if (second.step == 0) {
    const Num<T> everywhere = load_lanes<T>(q);
#define FORNAX_DO(r, k) r = to_register(F::apply(load_lanes<T>(p + k * kStep), everywhere));
    FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  } else {
#define FORNAX_DO(r, k) \
  r = to_register(F::apply(load_lanes<T>(p + k * kStep), load_lanes<T>(q + k * kStep)));
    FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  }
  FORNAX_NEXT;
}

template <class F, class T>
HWY_INLINE auto first_of_three(Reg r) {
  if constexpr (F::kSelects) {
    return ask_register<T>(r);
  } else {
    return from_register<T>(r);
  }
}

template <class F, class T>
void stage3(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand &second = context->operands[pc->x], &third = context->operands[pc->y];
  const char* p = second.base + i * second.advance;
  const char* q = third.base + i * third.advance;
  const int64_t p_step = second.step, q_step = third.step;
#define FORNAX_DO(r, k)                                                           \
  r = to_register(F::apply(first_of_three<F, T>(r), load_lanes<T>(p + k * p_step), \
                           load_lanes<T>(q + k * q_step)));
  FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  FORNAX_NEXT;
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
