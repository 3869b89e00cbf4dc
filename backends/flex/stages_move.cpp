// Stages that load, store, cast, round and loop.
//
// Casts whose rounding takes care go through graph/evaluate.h, which defines them, element by
// element; a wide lane and its Word are the same bits.  The others have vector forms here.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/stages_move.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#include "backends/flex/lanes.inl"
#include "base/error.h"
#include "graph/evaluate.h"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

template <class T, class L>
void stage_load(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand& operand = context->operands[pc->x];
  const T* p = reinterpret_cast<const T*>(operand.base + i * operand.advance);
  const int64_t lanes = lanes_of<L>();
  if constexpr (kByElement<T, L>) {
    Reg v[8];
#pragma GCC unroll 1
    for (int k = 0; k < 8; k++) v[k] = load_vector<T, L>(p + k * lanes);
    a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
  } else {
#define FORNAX_DO(r, k) r = load_vector<T, L>(p + k * lanes);
    FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  }
  FORNAX_NEXT;
}

template <class T, class L>
void stage_store(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand& operand = context->operands[pc->x];
  T* p = reinterpret_cast<T*>(operand.base + i * operand.advance);
  const int64_t lanes = lanes_of<L>();
  if constexpr (kByElement<T, L>) {
    const Reg v[8] = {a, b, c, d, e, f, g, h};
#pragma GCC unroll 1
    for (int k = 0; k < 8; k++) store_vector<T, L>(v[k], p + k * lanes);
  } else {
#define FORNAX_DO(r, k) store_vector<T, L>(r, p + k * lanes);
    FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  }
  FORNAX_NEXT;
}

template <class L>
void stage_stream(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand& operand = context->operands[pc->x];
  L* p = reinterpret_cast<L*>(operand.base + i * operand.advance);
  const int64_t lanes = lanes_of<L>();
#define FORNAX_DO(r, k) hn::Stream(from_register<L>(r).v, Tag<L>(), p + k * lanes);
  FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  FORNAX_NEXT;
}

template <class L>
void stage_lanes(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const Operand& operand = context->operands[pc->x];
  const char* p = operand.base + i * operand.advance;
  const int64_t step = operand.step;
#define FORNAX_DO(r, k) r = to_register(load_lanes<L>(p + k * step));
  FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  FORNAX_NEXT;
}

template <class L>
void stage_spill(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  L* p = reinterpret_cast<L*>(context->operands[pc->x].base);
  const int64_t lanes = lanes_of<L>();
#define FORNAX_DO(r, k) hn::StoreU(from_register<L>(r).v, Tag<L>(), p + k * lanes);
  FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  FORNAX_NEXT;
}

void stage_prefetch(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  constexpr int64_t kAhead = 2048, kLine = 64;  // bytes
  const Operand& operand = context->operands[pc->x];
  const char* p = operand.base + i * operand.advance + kAhead;
  for (int64_t k = 0; k < lanes_of<float>() * 8 * operand.advance; k += kLine) {
    __builtin_prefetch(p + k);
  }
  FORNAX_NEXT;
}

void stage_far(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  constexpr int64_t kLine = 64;  // bytes
  const Operand& operand = context->operands[pc->x];
  const char* p = operand.base + i * operand.advance + pc->y;
  for (int64_t k = 0; k < lanes_of<float>() * 8 * operand.advance; k += kLine) {
    __builtin_prefetch(p + k, 0, 2);
  }
  FORNAX_NEXT;
}

template <class L>
void stage_loop(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  i += lanes_of<L>() * 8;
  if (i >= context->end) return;
  pc = context->program - 1;
  FORNAX_NEXT;
}

// Casts and settling that are a few instructions: Move is a functor of registers.
template <class F>
void stage_change(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
#define FORNAX_DO(r, k) r = F::apply(r);
  FORNAX_EACH(FORNAX_DO)
#undef FORNAX_DO
  FORNAX_NEXT;
}

template <class L>
struct ToBool {
  static HWY_INLINE Reg apply(Reg r) { return to_register(from_register<L>(r) != Num<L>(0)); }
};
// Integer lanes to integers of T.
template <class T, class L>
struct Wrap {
  static HWY_INLINE Reg apply(Reg r) {
    const Num<L> x = from_register<L>(r);
    if constexpr (std::is_unsigned_v<T>) {
      return to_register(bitwise_and(x, splat(L(std::numeric_limits<T>::max()))));
    } else {
      constexpr int kRest = int(8 * (sizeof(L) - sizeof(T)));
      return to_register(Num<L>(hn::ShiftRight<kRest>(hn::ShiftLeft<kRest>(x.v))));
    }
  }
};
struct RoundBrain {
  static HWY_INLINE Reg apply(Reg r) {
    return to_register(round_to_brain(from_register<float>(r)));
  }
};
#if HWY_TARGET != HWY_SCALAR
struct RoundHalf {
  static HWY_INLINE Reg apply(Reg r) {
    const hn::Rebind<hwy::float16_t, Tag<float>> half;
    const auto x = hn::DemoteTo(half, from_register<float>(r).v);
    return to_register(Num<float>(hn::PromoteTo(Tag<float>(), x)));
  }
};
#endif
struct RoundSingle {  // wide
  static HWY_INLINE Reg apply(Reg r) {
    alignas(kMaxVector) float single[kMaxVector / sizeof(double)];
    store_vector<float, double>(r, single);
    return load_vector<float, double>(single);
  }
};
struct SignedToFloat {
  static HWY_INLINE Reg apply(Reg r) {
    return to_register(Num<float>(hn::ConvertTo(Tag<float>(), from_register<int32_t>(r).v)));
  }
};
// Both halves are exact, so their sum rounds once.
struct UnsignedToFloat {
  static HWY_INLINE Reg apply(Reg r) {
    const auto x = from_register<uint32_t>(r).v;
    const Tag<int32_t> d;
    const auto high = hn::BitCast(d, hn::ShiftRight<16>(x));
    const auto low = hn::And(hn::BitCast(d, x), hn::Set(d, 0xffff));
    const Num<float> scaled = Num<float>(hn::ConvertTo(Tag<float>(), high)) * splat(65536.0f);
    return to_register(scaled + Num<float>(hn::ConvertTo(Tag<float>(), low)));
  }
};
// Saturates; T is at most 16 bits, or int32_t.
template <class T>
struct FloatTo {
  static HWY_INLINE Reg apply(Reg r) {
    using Limits = std::numeric_limits<T>;
    const Num<float> x = from_register<float>(r);
    const Num<float> low = splat(float(Limits::min())), high = splat(float(Limits::max()));
    const Num<float> number = select(is_nan(x), Num<float>(0), x);
    const Num<float> clamped = select(number < low, low, number);
    // float(max) of int32_t is one too many, so that one is put in afterwards.
    const Ask<float> above = number >= high;
    const Num<int32_t> whole(
        hn::ConvertTo(Tag<int32_t>(), select(above, Num<float>(0), clamped).v));
    const Ask<int32_t> mask(hn::RebindMask(Tag<int32_t>(), above.m));
    return to_register(select(mask, splat(int32_t(Limits::max())), whole));
  }
};

// Any cast: x and y of the instruction are the dtypes of the lanes before and of the numbers after.
template <class L>
void stage_convert(const Instruction* pc, const Context* context, int64_t i, FORNAX_REGISTERS) {
  const DType from = DType(pc->x), to = DType(pc->y);
  const size_t n = size_t(lanes_of<L>());
  Reg v[8] = {a, b, c, d, e, f, g, h};
#pragma GCC unroll 1
  for (Reg& r : v) {
    alignas(kMaxVector) L lanes[kMaxVector / sizeof(L)];
    Word words[kMaxVector / sizeof(L)];
    hn::Store(from_register<L>(r).v, Tag<L>(), lanes);
    for (size_t k = 0; k < n; k++) words[k] = load(from, lanes, int64_t(k));
    convert(from, to, std::span(words, n));
    for (size_t k = 0; k < n; k++) store(lane_of(to, sizeof(L) == 8), lanes, int64_t(k), words[k]);
    r = to_register(Num<L>(hn::Load(Tag<L>(), lanes)));
  }
  a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
  FORNAX_NEXT;
}

// body(T(), L()) with the storage type of `dtype` and the type of its lanes.
template <class Body>
AnyStage with_types(bool wide, DType dtype, Body body) {
  switch (dtype) {
#define FORNAX_DTYPE(name, type, kind, ...)                                           \
  case DType::name: {                                                                 \
    using Narrow = std::conditional_t<                                                \
        Kind::kind == Kind::floating, float,                                          \
        std::conditional_t<Kind::kind == Kind::unsigned_integer, uint32_t, int32_t>>; \
    using Wide = std::conditional_t<                                                  \
        Kind::kind == Kind::floating, double,                                         \
        std::conditional_t<Kind::kind == Kind::unsigned_integer, uint64_t, int64_t>>; \
    if (wide) return body(type(), Wide());                                            \
    if constexpr (sizeof(type) <= 4) return body(type(), Narrow());                   \
    break;                                                                            \
  }
#include <fornax/dtypes.def>
  }
  fail(ErrorKind::internal, "flex: {} has no {} lanes", name_of(dtype), wide ? "wide" : "narrow");
}

AnyStage find_load(bool wide, DType dtype) {
  return with_types(wide, dtype, []<class T, class L>(T, L) {
    return AnyStage(stage_load<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>, L>);
  });
}
AnyStage find_store(bool wide, DType dtype) {
  return with_types(wide, dtype, []<class T, class L>(T, L) {
    return AnyStage(stage_store<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>, L>);
  });
}
AnyStage find_move(Move move, bool wide, DType dtype) {
  switch (move) {
    case Move::load:
      return find_load(wide, dtype);
    case Move::store:
      return find_store(wide, dtype);
    case Move::stream:
      if (size_of(dtype) != (wide ? 8 : 4)) return nullptr;
      return wide ? AnyStage(stage_stream<int64_t>) : AnyStage(stage_stream<int32_t>);
    case Move::lanes:
      return wide ? AnyStage(stage_lanes<int64_t>) : AnyStage(stage_lanes<int32_t>);
    case Move::spill:
      return wide ? AnyStage(stage_spill<int64_t>) : AnyStage(stage_spill<int32_t>);
    case Move::prefetch:
      return AnyStage(stage_prefetch);
    case Move::far:
      return AnyStage(stage_far);
    case Move::loop:
      return wide ? AnyStage(stage_loop<int64_t>) : AnyStage(stage_loop<int32_t>);
  }
  return nullptr;
}

AnyStage change_of_float(DType to) {
  switch (to) {
    case DType::f32:
      return nullptr;
    case DType::bf16:
      return AnyStage(stage_change<RoundBrain>);
#if HWY_TARGET != HWY_SCALAR
    case DType::f16:
      return AnyStage(stage_change<RoundHalf>);
#endif
    case DType::bool_:
      return AnyStage(stage_change<ToBool<float>>);
    case DType::i8:
      return AnyStage(stage_change<FloatTo<int8_t>>);
    case DType::i16:
      return AnyStage(stage_change<FloatTo<int16_t>>);
    case DType::i32:
      return AnyStage(stage_change<FloatTo<int32_t>>);
    case DType::u8:
      return AnyStage(stage_change<FloatTo<uint8_t>>);
    case DType::u16:
      return AnyStage(stage_change<FloatTo<uint16_t>>);
    default:
      return AnyStage(stage_convert<float>);
  }
}
// L is signed, whatever the lanes are; null where the lanes are right as they are.
template <class L>
AnyStage wrap_to(DType to) {
  switch (to) {
    case DType::bool_:
      return AnyStage(stage_change<ToBool<L>>);
    case DType::i8:
      return AnyStage(stage_change<Wrap<int8_t, L>>);
    case DType::i16:
      return AnyStage(stage_change<Wrap<int16_t, L>>);
    case DType::u8:
      return AnyStage(stage_change<Wrap<uint8_t, L>>);
    case DType::u16:
      return AnyStage(stage_change<Wrap<uint16_t, L>>);
    case DType::i32:
      return sizeof(L) == 4 ? nullptr : AnyStage(stage_change<Wrap<int32_t, L>>);
    case DType::u32:
      return sizeof(L) == 4 ? nullptr : AnyStage(stage_change<Wrap<uint32_t, L>>);
    default:
      return nullptr;
  }
}
AnyStage change_of_integer(DType lane, DType to) {
  if (is_integer(to) || is_boolean(to)) {
    return size_of(lane) == 8 ? wrap_to<int64_t>(to) : wrap_to<int32_t>(to);
  }
  if (to == DType::f32 && lane == DType::i32) return AnyStage(stage_change<SignedToFloat>);
  if (to == DType::f32 && lane == DType::u32) return AnyStage(stage_change<UnsignedToFloat>);
  if (size_of(lane) == 8) {
    return lane == DType::i64 ? AnyStage(stage_convert<int64_t>)
                              : AnyStage(stage_convert<uint64_t>);
  }
  return lane == DType::i32 ? AnyStage(stage_convert<int32_t>) : AnyStage(stage_convert<uint32_t>);
}
AnyStage find_cast(DType lane, DType to) {
  if (lane == DType::f32) return change_of_float(to);
  if (is_integer(lane)) return change_of_integer(lane, to);
  if (to == DType::f64) return nullptr;
  return to == DType::f32 ? AnyStage(stage_change<RoundSingle>) : AnyStage(stage_convert<double>);
}

void fill_floats(void* vector, float number) {
  hn::StoreU(splat(number).v, Tag<float>(), static_cast<float*>(vector));
}
int64_t count_lanes(bool wide) { return wide ? lanes_of<double>() : lanes_of<float>(); }

// Compilers do it where a function that used wide vectors ends, but do not see that stages do.
// Without it the next instruction on narrow vectors, whoever's it is, costs more than a hundred
// cycles.
HWY_INLINE void forget_upper_halves() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  _mm256_zeroupper();
#endif
}

// In slices, because g++ nests the stages on the stack where it makes no sibling calls: below -O2
// and under sanitizers.
void run_blocks(const Instruction* program, const Operand* operands, int64_t count) {
  const int64_t slice = 16 * 8 * lanes_of<float>();
  const Reg zero = to_register(Num<float>(0));
  for (int64_t i = 0; i < count; i += slice) {
    const Context context{program, operands, i + slice < count ? i + slice : count};
    reinterpret_cast<Stage>(program->stage)(program, &context, i, zero, zero, zero, zero, zero,
                                            zero, zero, zero);
  }
  forget_upper_halves();
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fornax::flex {

HWY_EXPORT(find_move);
HWY_EXPORT(find_cast);
HWY_EXPORT(fill_floats);
HWY_EXPORT(count_lanes);
HWY_EXPORT(run_blocks);
HWY_EXPORT(target_name);

AnyStage move_stage(Move move, bool wide, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(find_move)(move, wide, dtype);
}
AnyStage cast_stage(DType lane, DType to) { return HWY_DYNAMIC_DISPATCH(find_cast)(lane, to); }
int64_t vector_lanes(bool wide) { return HWY_DYNAMIC_DISPATCH(count_lanes)(wide); }
void run_program(const Instruction* program, const Operand* operands, int64_t count) {
  HWY_DYNAMIC_DISPATCH(run_blocks)(program, operands, count);
}
std::string_view instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

void fill_lanes(void* vector, float number) { HWY_DYNAMIC_DISPATCH(fill_floats)(vector, number); }
void fill_lanes(void* vector, bool wide, DType dtype, Word number) {
  const int64_t lanes = vector_lanes(wide);
  for (int64_t k = 0; k < lanes; k++) store(lane_of(dtype, wide), vector, k, number);
}

const OpStages* stages_f32();
const OpStages* stages_f64();
const OpStages* stages_i32();
const OpStages* stages_i64();
const OpStages* stages_u32();
const OpStages* stages_u64();

const OpStages& op_stages(DType lane, Op op) {
  const OpStages* table = nullptr;
  switch (lane) {
    case DType::f32:
      table = stages_f32();
      break;
    case DType::f64:
      table = stages_f64();
      break;
    case DType::i32:
      table = stages_i32();
      break;
    case DType::i64:
      table = stages_i64();
      break;
    case DType::u32:
      table = stages_u32();
      break;
    case DType::u64:
      table = stages_u64();
      break;
    default:
      fail(ErrorKind::internal, "flex: {} is no lane", name_of(lane));
  }
  return table[size_t(op)];
}

}  // namespace fornax::flex
#endif
