// cumsum, cumprod, cummax, cummin: running results along one axis.
//
// Lines are independent and spread over the threads.  Where the axis is not the last one, a block
// of neighbouring lines advances together, so that memory is read in order.  Floats are summed and
// multiplied in f64 and rounded at each element; integers wrap in the widened type.
#include <algorithm>
#include <cmath>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/index.h"
#include "backends/flex/pool.h"
#include "backends/flex/sort.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr int64_t kBlock = 128;  // lines that advance together

struct RunningSum {
  template <class A>
  static A next(A before, A x) {
    return before + x;
  }
};
struct RunningProduct {
  template <class A>
  static A next(A before, A x) {
    return before * x;
  }
};
// A NaN replaces any number and is replaced by none.  Of zeros, +0 is the larger.
template <class A>
bool is_minus_zero(A x) {
  if constexpr (std::is_floating_point_v<A>) return x == 0 && std::signbit(x);
  return false;
}
struct RunningMaximum {
  template <class A>
  static A next(A before, A x) {
    if (before == x) return is_minus_zero(before) ? x : before;
    return before > x || before != before ? before : x;
  }
};
struct RunningMinimum {
  template <class A>
  static A next(A before, A x) {
    if (before == x) return is_minus_zero(x) ? x : before;
    return before < x || before != before ? before : x;
  }
};

// Steps along the scanned axis and from line to line.
struct Steps {
  int64_t along, across;
};

// x and y point at the first element of the first of `lines` <= kBlock lines.
template <class Step, class A, class T, class R>
void scan_block(int64_t length, int64_t lines, const T* x, Steps x_steps, R* y, Steps y_steps) {
  if (lines == 1) {
    A state = widen<A>(*x);
    *y = narrow<R>(state);
    for (int64_t t = 1; t < length; t++) {
      state = Step::next(state, widen<A>(x[t * x_steps.along]));
      y[t * y_steps.along] = narrow<R>(state);
    }
    return;
  }
  A states[kBlock];
  for (int64_t i = 0; i < lines; i++) {
    states[i] = widen<A>(x[i * x_steps.across]);
    y[i * y_steps.across] = narrow<R>(states[i]);
  }
  for (int64_t t = 1; t < length; t++) {
    const T* from = x + t * x_steps.along;
    R* to = y + t * y_steps.along;
    for (int64_t i = 0; i < lines; i++) {
      states[i] = Step::next(states[i], widen<A>(from[i * x_steps.across]));
      to[i * y_steps.across] = narrow<R>(states[i]);
    }
  }
}

struct Scan : Kernel {
  explicit Scan(AnchorPlan p) : plan(std::move(p)), axis(axis_of(plan.attributes)) {
    const Shape& shape = plan.result.shape;
    const Layout to = row_major(shape);
    const int64_t* from = plan.inputs[0].layout.strides;
    const bool last = axis == shape.rank() - 1;
    const int side = shape.rank() - 1;  // the axis that lines of a block lie along
    x_steps = {from[axis], last ? 0 : from[side]};
    y_steps = {to.strides[axis], last ? 0 : 1};
    length = shape[axis];
    across = last ? 1 : shape[side];
    for (int i = 0; i < shape.rank(); i++) {
      if (i == axis || i == side) continue;
      x_strides[outer.rank()] = from[i];
      y_strides[outer.rank()] = to.strides[i];
      outer.push_back(shape[i]);
    }
  }

  template <class Step, class A, class T, class R>
  void run_as(const T* x, R* y) const {
    const int64_t blocks = (across + kBlock - 1) / kBlock;
    const int64_t width = std::min(across, kBlock);
    parallel(outer.element_count() * blocks, (1 << 14) / (length * width) + 1,
             [&](int64_t begin, int64_t end) {
               StridedWalk<2> walk(outer, {x_strides, y_strides});
               for (int64_t i = begin; i < end; i++) {
                 if (i == begin || i % blocks == 0) walk.seek(i / blocks);
                 const int64_t first = i % blocks * kBlock;
                 scan_block<Step, A>(length, std::min(kBlock, across - first),
                                     x + walk.offsets[0] + first * x_steps.across, x_steps,
                                     y + walk.offsets[1] + first * y_steps.across, y_steps);
               }
             });
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan.result.shape.element_count() == 0) return;
    const InputView operand(plan, 0, inputs);
    with_type(operand.type.dtype, [&](auto type) {
      using T = decltype(type);
      // Sums of integers are those of unsigned ones, which wrap; signed sources are widened first.
      using Unsigned = std::bool_constant<std::is_unsigned_v<T> && !std::is_same_v<T, bool>>;
      using Integer = std::conditional_t<Unsigned::value, uint64_t, int64_t>;
      using Wide = std::conditional_t<std::is_integral_v<T>, Integer, T>;
      using A = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
      using Order = std::conditional_t<std::is_class_v<T>, float, T>;
      const T* x = operand.as<T>();
      switch (plan.op) {
        case Op::cumsum:
          return run_as<RunningSum, A>(x, data_of<Wide>(outputs[0]));
        case Op::cumprod:
          return run_as<RunningProduct, A>(x, data_of<Wide>(outputs[0]));
        case Op::cummax:
          return run_as<RunningMaximum, Order>(x, data_of<T>(outputs[0]));
        default:
          return run_as<RunningMinimum, Order>(x, data_of<T>(outputs[0]));
      }
    });
  }

  AnchorPlan plan;
  int axis;
  Steps x_steps{}, y_steps{};
  int64_t length = 0, across = 1;
  Shape outer;
  int64_t x_strides[kMaxRank] = {}, y_strides[kMaxRank] = {};
};

}  // namespace

std::unique_ptr<Kernel> prepare_scan(const Group& group) {
  AnchorPlan plan = plan_of(group);
  FORNAX_CHECK(info(plan.op).family == Family::scan && plan.inputs.size() == 1);
  if (plan.op == Op::argsort) return prepare_argsort(std::move(plan));
  return std::make_unique<Scan>(std::move(plan));
}

}  // namespace fornax::flex
