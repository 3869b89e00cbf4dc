// pad and cat: boxes copied into a larger one.
#include <algorithm>

#include "backends/flex/index.h"
#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

void* result_of(const AnchorPlan& plan, std::span<const Argument> outputs) {
  return static_cast<std::byte*>(outputs[0].buffer->data) +
         outputs[0].offset * int64_t(size_of(plan.result.dtype));
}

void* advanced(void* data, int64_t elements, DType dtype) {
  return static_cast<std::byte*>(data) + elements * int64_t(size_of(dtype));
}

// The elements of x that stay, and where they go in the result.
struct Placement {
  Shape shape;
  int64_t from = 0, to = 0;  // of the first element
  int64_t strides[kMaxRank] = {};
};

Placement placement_of(const AnchorPlan& plan, const InputView& x) {
  const PerAxis per_axis{plan.attributes};
  const Shape& result = plan.result.shape;
  const Layout layout = row_major(result);
  Placement place{x.type.shape, 0, 0, {}};
  for (int axis = 0; axis < result.rank(); axis++) {
    const int64_t before = per_axis.first(axis), step = per_axis.third(axis) + 1;
    // First and last index i with 0 <= before + i * step < result size.
    const int64_t first = before < 0 ? (-before + step - 1) / step : 0;
    const int64_t room = result[axis] - 1 - before;
    const int64_t last = room < 0 ? -1 : std::min(x.type.shape[axis] - 1, room / step);
    place.shape[axis] = std::max(int64_t(0), last - first + 1);
    place.from += first * x.strides[axis];
    place.to += (before + first * step) * layout.strides[axis];
    place.strides[axis] = step * layout.strides[axis];
  }
  return place;
}

struct Pad : Kernel {
  explicit Pad(AnchorPlan p) : plan(std::move(p)) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const InputView x(plan, 0, inputs), value(plan, 1, inputs);
    void* result = result_of(plan, outputs);
    const Placement place = placement_of(plan, x);
    const int64_t kept = place.shape.element_count(), count = plan.result.shape.element_count();
    const size_t element = size_of(plan.result.dtype);
    if (kept != count) {
      const int64_t repeat[kMaxRank] = {}, step[kMaxRank] = {1};
      copy_box(element, Shape{count}, value.data, repeat, result, step);
    }
    if (kept == 0) return;
    copy_box(element, place.shape, x.as<std::byte>() + place.from * int64_t(element), x.strides,
             advanced(result, place.to, plan.result.dtype), place.strides);
  }

  AnchorPlan plan;
};

struct Cat : Kernel {
  explicit Cat(AnchorPlan p) : plan(std::move(p)) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const int axis = axis_of(plan.attributes);
    const Layout layout = row_major(plan.result.shape);
    void* to = result_of(plan, outputs);
    for (size_t i = 0; i < plan.inputs.size(); i++) {
      const InputView part(plan, int(i), inputs);
      copy_box(size_of(plan.result.dtype), part.type.shape, part.data, part.strides, to,
               layout.strides);
      to = advanced(to, part.type.shape[axis] * layout.strides[axis], plan.result.dtype);
    }
  }

  AnchorPlan plan;
};

}  // namespace

std::unique_ptr<Kernel> prepare_index(const Group& group) {
  AnchorPlan plan = plan_of(group);
  switch (plan.op) {
    case Op::pad:
      return std::make_unique<Pad>(std::move(plan));
    case Op::cat:
      return std::make_unique<Cat>(std::move(plan));
    case Op::fold:
      return prepare_fold(std::move(plan));
    case Op::gather:
      return prepare_gather(std::move(plan));
    case Op::scatter:
      return prepare_scatter(std::move(plan));
    default:
      fail(ErrorKind::internal, "flex: {} is no op that indexes; please report it",
           info(plan.op).name);
  }
}

}  // namespace fornax::flex
