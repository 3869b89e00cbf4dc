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

// g++ makes the sibling call by itself from -O2 on.
#ifdef __clang__
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
using Bits = VecOf<double>;  // one lane of either width
#else
using Bits = VecOf<float>;  // bits of any lanes
#endif
// What goes from stage to stage.
#if defined(__clang__) && defined(__x86_64__)
// clang decides by the command line's instruction set, not the function's, whether a vector goes in
// a register or in memory.  A matrix always goes as the vector of its elements, for which the
// function's own set is asked.  Needs -fenable-matrix.
using Reg = float __attribute__((matrix_type(1, sizeof(Bits) / sizeof(float))));
#else
using Reg = Bits;
#endif
template <class To, class From>
HWY_INLINE To same_bits(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
  }
}
HWY_INLINE Reg pack(Bits bits) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  // Keeps compilers from working on all eight side by side, for which there are too few registers.
  asm volatile("" : "+v"(bits.raw));
#endif
  return same_bits<Reg>(bits);
}
HWY_INLINE Bits unpack(Reg r) { return same_bits<Bits>(r); }
using Stage = void (*)(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS);

template <class T>
HWY_INLINE Num<T> from_register(Reg r) {
#if HWY_TARGET == HWY_SCALAR
  T lane;
  const Bits bits = unpack(r);
  memcpy(&lane, &bits.raw, sizeof(lane));
  return splat(lane);
#else
  return Num<T>(hn::BitCast(Tag<T>(), unpack(r)));
#endif
}
template <class T>
HWY_INLINE Reg to_register(Num<T> x) {
#if HWY_TARGET == HWY_SCALAR
  double bits = 0;
  memcpy(&bits, &x.v.raw, sizeof(T));
  return pack(Bits(bits));
#else
  return pack(hn::BitCast(Tag<float>(), x.v));
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

// The sum is made here: sixteen of them, made ahead, are more than there are registers.
HWY_INLINE void move_on(const char*& p, int64_t step) {
  p += step;
  asm volatile("" : "+r"(p));
}

template <class F, class T>
void stage3(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand &second = context->operands[pc->x], &third = context->operands[pc->y];
  const char *p = second.base, *q = third.base;
  move_on(p, i * second.advance), move_on(q, i * third.advance);
#define FORNAX_DO(r, k)                                                                   \
  r = to_register(F::apply(first_of_three<F, T>(r), load_lanes<T>(p), load_lanes<T>(q))); \
  move_on(p, second.step), move_on(q, third.step);
  FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  FORNAX_NEXT;
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#endif
