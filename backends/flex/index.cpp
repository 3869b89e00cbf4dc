// Operands, walking and copying for the kernels that stand alone.
#include "backends/flex/index.h"

#include <algorithm>

#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {

AnchorPlan plan_of(const Group& group) {
  FORNAX_CHECK(group.anchor >= 0 && size_t(group.anchor) < group.graph.steps.size());
  FORNAX_CHECK(group.layouts.size() == size_t(group.inputs));
  const Step& anchor = group.graph.steps[size_t(group.anchor)];
  AnchorPlan plan{anchor.op, anchor.type, anchor.attributes, {}};
  for (int input : anchor.inputs) {
    FORNAX_CHECK(input >= 0 && input < group.inputs);
    const Step& step = group.graph.steps[size_t(input)];
    Layout layout = group.layouts[size_t(input)];
    if (step.op == Op::full) layout = {};
    plan.inputs.push_back({input, step.op == Op::full, step.type, layout});
  }
  return plan;
}

void store_scalar(DType dtype, const Scalar& number, void* to) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    T value;
    if constexpr (std::is_same_v<T, bool>) {
      value = number.as_double() != 0;
    } else if constexpr (std::is_class_v<T>) {
      value = T(float(number.as_double()));
    } else if constexpr (std::is_floating_point_v<T>) {
      value = T(number.as_double());
    } else if constexpr (std::is_unsigned_v<T>) {
      value = T(number.as_uint64());
    } else {
      value = T(number.as_int64());
    }
    std::memcpy(to, &value, sizeof(T));
  });
}

InputView::InputView(const AnchorPlan& plan, int i, std::span<const Argument> arguments)
    : data(number_),
      type(plan.inputs[size_t(i)].type),
      strides(plan.inputs[size_t(i)].layout.strides) {
  const AnchorPlan::Input& input = plan.inputs[size_t(i)];
  const Argument& argument = arguments[size_t(input.argument)];
  if (input.number) {
    store_scalar(type.dtype, argument.scalar, number_);
  } else {
    data = static_cast<const std::byte*>(argument.buffer->data) +
           argument.offset * int64_t(size_of(type.dtype));
  }
}

WithoutAxis without_axis(const Shape& shape, const int64_t* strides, int axis) {
  WithoutAxis rest{shape, {}};
  rest.shape.erase(axis);
  for (int i = 0; i < shape.rank(); i++) {
    if (i != axis) rest.strides[size_t(i < axis ? i : i - 1)] = strides[i];
  }
  return rest;
}

namespace {

// A box in as few axes as describe it: axes of size 1 are gone, and neighbours that can be walked
// as one are merged.
struct Box {
  Shape shape;
  int64_t from[kMaxRank] = {}, to[kMaxRank] = {};
};

Box merged(const Shape& shape, const int64_t* from, const int64_t* to) {
  Box box;
  for (int axis = 0; axis < shape.rank(); axis++) {
    if (shape[axis] == 1) continue;
    const int last = box.shape.rank() - 1;
    if (last >= 0 && box.from[last] == from[axis] * shape[axis] &&
        box.to[last] == to[axis] * shape[axis]) {
      box.shape[last] *= shape[axis];
      box.from[last] = from[axis];
      box.to[last] = to[axis];
      continue;
    }
    box.from[last + 1] = from[axis];
    box.to[last + 1] = to[axis];
    box.shape.push_back(shape[axis]);
  }
  return box;
}

template <class T>
void copy_line(int64_t count, const T* from, int64_t from_step, T* to, int64_t to_step) {
  if (from_step == 1 && to_step == 1) {
    std::memcpy(to, from, size_t(count) * sizeof(T));
  } else if (from_step == 0 && to_step == 1) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; i++) to[i * to_step] = from[i * from_step];
  }
}

}  // namespace

void copy_box(size_t element, const Shape& shape, const void* from, const int64_t* from_strides,
              void* to, const int64_t* to_strides) {
  if (shape.element_count() == 0) return;
  Box box = merged(shape, from_strides, to_strides);
  if (box.shape.rank() == 0) box.shape.push_back(1);
  const int inner = box.shape.rank() - 1;
  const int64_t count = box.shape[inner], lines = box.shape.element_count() / count;
  Shape outer = box.shape;
  outer.erase(inner);
  with_bytes(element, [&](auto type) {
    using T = decltype(type);
    const T* source = static_cast<const T*>(from);
    T* target = static_cast<T*>(to);
    if (lines == 1) {
      parallel(count, 1 << 16, [&](int64_t begin, int64_t end) {
        copy_line(end - begin, source + begin * box.from[inner], box.from[inner],
                  target + begin * box.to[inner], box.to[inner]);
      });
      return;
    }
    parallel(lines, (1 << 15) / count + 1, [&](int64_t begin, int64_t end) {
      StridedWalk<2> walk(outer, {box.from, box.to});
      walk.seek(begin);
      for (int64_t line = begin; line < end; line++, walk.next()) {
        copy_line(count, source + walk.offsets[0], box.from[inner], target + walk.offsets[1],
                  box.to[inner]);
      }
    });
  });
}

}  // namespace fornax::flex
