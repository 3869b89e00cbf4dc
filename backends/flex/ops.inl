// One lane type's table of ops, from the value column of ops.def: stages and small loops.
// Requires: FORNAX_LANE, the lane's C++ type, and FORNAX_TABLE, the name of the function that
// returns the table.  Included once per instruction set and lane.
#include "backends/flex/math.inl"
#include "backends/flex/small.inl"
#include "backends/flex/stages.inl"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex {
namespace HWY_NAMESPACE {

// Whether `rule` admits operands of T: the table has no entry where it does not.
template <class T>
constexpr bool admits(Rule rule) {
  if (wants_floats(rule)) return kFloat<T>;
  return rule != Rule::bitwise || !kFloat<T>;
}

// `number` in a value column makes a constant.
#define OP1(name, rule, value, ...)          \
  struct Formula_##name {                    \
    template <class number>                  \
    static HWY_INLINE auto apply(number x) { \
      return value;                          \
    }                                        \
  };
#define OP2(name, rule, value, ...)                    \
  struct Formula_##name {                              \
    template <class number>                            \
    static HWY_INLINE auto apply(number a, number b) { \
      return value;                                    \
    }                                                  \
  };
#define OP3(name, rule, value, ...)                             \
  struct Formula_##name {                                       \
    /* Whether the first operand is a condition. */             \
    static constexpr bool kSelects = Rule::rule == Rule::selected; \
    template <class First, class number>                        \
    static HWY_INLINE auto apply(First a, number b, number c) { \
      return value;                                             \
    }                                                           \
  };
#include <fornax/ops.def>

// b op a, for what does not commute and would else take a spill.
template <class F>
struct Swapped {
  template <class N>
  static HWY_INLINE auto apply(N x, N y) {
    return F::apply(y, x);
  }
};

// Nanoseconds per element: parallel loops cut their work by it.
inline constexpr double kFastCost = 0.06, kSlowCost = 1;

template <class F, class T>
OpStages entry1() {
  return {AnyStage(stage1<F, T>), nullptr, nullptr, small1<F, T>,
          kSlow<decltype(F::apply(Num<T>()))> ? kSlowCost : kFastCost};
}
template <class F, class T>
OpStages entry2() {
  // Slow formulas swap by a spill: it costs little beside them.
  if constexpr (kSlow<decltype(F::apply(Num<T>(), Num<T>()))>) {
    return {AnyStage(stage2<F, T>), nullptr, nullptr, small2<F, T>, kSlowCost};
  } else {
    // Only f32 is worth a stage more.
    AnyStage loading = nullptr;
    if constexpr (std::is_same_v<T, float>) loading = AnyStage(stage2_loading<F, T>);
    return {AnyStage(stage2<F, T>), AnyStage(stage2<Swapped<F>, T>), loading, small2<F, T>,
            kFastCost};
  }
}

template <class F, class T>
OpStages entry3() {
  return {AnyStage(stage3<F, T>), nullptr, nullptr, small3<F, T>, kFastCost};
}

struct OpTable {
  OpStages entries[256];
};

template <class T>
OpTable make_table() {
  OpTable table;
#define OP1(name, rule, ...) \
  if constexpr (admits<T>(Rule::rule)) table.entries[int(Op::name)] = entry1<Formula_##name, T>();
#define OP2(name, rule, ...) \
  if constexpr (admits<T>(Rule::rule)) table.entries[int(Op::name)] = entry2<Formula_##name, T>();
#define OP3(name, rule, ...) \
  if constexpr (admits<T>(Rule::rule)) table.entries[int(Op::name)] = entry3<Formula_##name, T>();
#include <fornax/ops.def>
  return table;
}

const OpStages* FORNAX_TABLE() {
  static const OpTable table = make_table<FORNAX_LANE>();
  return table.entries;
}

}  // namespace HWY_NAMESPACE
}  // namespace fornax::flex
HWY_AFTER_NAMESPACE();
