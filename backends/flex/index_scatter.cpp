// scatter: values combined into a copy of base at indices along one axis.
//
// Positions that differ outside the axis are independent, so threads share those; repeats along the
// axis are combined in row-major order by one thread, which makes every mode deterministic.  Halves
// are combined as f32 and rounded once.
#include <algorithm>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/index.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

template <ScatterMode kMode, class T>
T combined(T old, T value) {
  // Unsigned, and wide enough to be spared promotion to int: signed numbers wrap too.
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  if constexpr (kMode == ScatterMode::assign) {
    return value;
  } else if constexpr (kMode == ScatterMode::add) {
    return T(Wide(old) + Wide(value));
  } else if constexpr (kMode == ScatterMode::multiply) {
    return T(Wide(old) * Wide(value));
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      if (old != old || value != value) return old + value;
    }
    const bool below = value < old;
    return below == (kMode == ScatterMode::minimum) ? value : old;
  }
}

// How a line of values goes into the result.  index is null where the target has no other stride.
using Line = void (*)(void* to, int64_t axis_stride, const int64_t* index, const void* from,
                      int64_t count);

template <ScatterMode kMode, class T>
void combine_line(void* to, int64_t axis_stride, const int64_t* index, const void* from,
                  int64_t count) {
  T* out = static_cast<T*>(to);
  const T* values = static_cast<const T*>(from);
  if (!index) {
    for (int64_t i = 0; i < count; i++) out[i] = combined<kMode>(out[i], values[i]);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    // Lines lie across the axis, or along it where there is nothing across.
    T& element = out[index[i] * axis_stride + (axis_stride == 1 ? 0 : i)];
    element = combined<kMode>(element, values[i]);
  }
}

template <class T>
Line line_for(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::add:
      return combine_line<ScatterMode::add, T>;
    case ScatterMode::multiply:
      return combine_line<ScatterMode::multiply, T>;
    case ScatterMode::minimum:
      return combine_line<ScatterMode::minimum, T>;
    case ScatterMode::maximum:
      return combine_line<ScatterMode::maximum, T>;
    default:
      return combine_line<ScatterMode::assign, T>;
  }
}

// The operand's elements in row-major order as f32.
void widen_to(const InputView& from, float* to) {
  with_float_type(from.type.dtype, [&](auto type) {
    const auto* data = static_cast<decltype(type)>(from.data);
    parallel(from.type.shape.element_count(), 1 << 13, [&](int64_t begin, int64_t end) {
      StridedWalk<1> walk(from.type.shape, {from.strides});
      walk.seek(begin);
      for (int64_t i = begin; i < end; i++, walk.next()) {
        to[i] = widen<float>(data[walk.offsets[0]]);
      }
    });
  });
}

struct Scatter : Kernel {
  explicit Scatter(AnchorPlan p) : plan(std::move(p)), settings(plan.attributes) {
    const Shape& shape = plan.inputs[1].type.shape;
    for (int i = 0; i < shape.rank(); i++) (i < settings.axis ? outer : inner) *= shape[i];
    length = shape[settings.axis];
    if (length > 0) inner /= length;
    size = plan.result.shape[settings.axis];
    rows = repeats_behind(plan.inputs[1], settings.axis);
    const DType dtype = plan.result.dtype;
    halves = is_floating(dtype) && dtype != DType::f32 && dtype != DType::f64;
    with_type(halves ? DType::f32 : dtype, [&](auto type) {
      using T = decltype(type);
      if constexpr (!std::is_class_v<T>) line = line_for<T>(settings.mode);
    });
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const InputView base(plan, 0, inputs), index(plan, 1, inputs), values(plan, 2, inputs);
    if (inner == 1 && length > 0 && !halves) return run_lines(base, index, values, outputs[0]);
    const int64_t places = index.type.shape.element_count();
    const int64_t count = plan.result.shape.element_count();
    Workspace indices(size_t(rows && inner > 0 ? places / inner : places) * sizeof(int64_t));
    if (places > 0) resolve_all(index, indices.as<int64_t>());
    void* result = static_cast<std::byte*>(outputs[0].buffer->data) +
                   outputs[0].offset * int64_t(size_of(plan.result.dtype));
    const bool copied =
        halves || !is_contiguous(values.type.shape, plan.inputs[2].layout) || plan.inputs[2].number;
    const size_t element = halves ? sizeof(float) : size_of(plan.result.dtype);
    Workspace memory(copied ? size_t(places) * element : 0);
    if (halves) {
      Workspace sums(size_t(count) * sizeof(float));
      widen_to(base, sums.as<float>());
      widen_to(values, memory.as<float>());
      combine(sums.as<std::byte>(), indices.as<int64_t>(), memory.as<std::byte>(), element);
      with_float_type(plan.result.dtype, [&](auto type) {
        using S = std::remove_const_t<std::remove_pointer_t<decltype(type)>>;
        S* to = static_cast<S*>(result);
        for (int64_t i = 0; i < count; i++) to[i] = narrow<S>(sums.as<float>()[i]);
      });
      return;
    }
    const Layout to = row_major(plan.result.shape), packed = row_major(values.type.shape);
    copy_box(element, plan.result.shape, base.data, base.strides, result, to.strides);
    if (copied) {
      copy_box(element, values.type.shape, values.data, values.strides, memory.as<void>(),
               packed.strides);
    }
    combine(static_cast<std::byte*>(result), indices.as<int64_t>(),
            copied ? memory.as<std::byte>() : values.as<std::byte>(), element);
  }

  // Nothing lies behind the axis: line by line, while one is in the cache.
  void run_lines(const InputView& base, const InputView& index, const InputView& values,
                 const Argument& output) const {
    const size_t element = size_of(plan.result.dtype);
    std::byte* result =
        static_cast<std::byte*>(output.buffer->data) + output.offset * int64_t(element);
    Shape lines = values.type.shape;
    while (lines.rank() > settings.axis) lines.erase(lines.rank() - 1);
    const int axis = settings.axis;
    const bool in_place = values.strides[axis] == 1 || length == 1;
    parallel(outer, (1 << 14) / (size + length) + 1, [&](int64_t begin, int64_t end) {
      const int64_t one = 1;
      Workspace places(size_t(length) * sizeof(int64_t));
      Workspace copy(in_place ? 0 : size_t(length) * element);
      StridedWalk<3> walk(lines, {base.strides, index.strides, values.strides});
      walk.seek(begin);
      for (int64_t i = begin; i < end; i++, walk.next()) {
        std::byte* to = result + i * size * int64_t(element);
        copy_box(element, {size}, base.as<std::byte>() + walk.offsets[0] * int64_t(element),
                 base.strides + axis, to, &one);
        resolve_indices(index, walk.offsets[1], index.strides[axis], length, Op::scatter, axis,
                        plan.result, places.as<int64_t>());
        const std::byte* from = values.as<std::byte>() + walk.offsets[2] * int64_t(element);
        if (!in_place) {
          copy_box(element, {length}, from, values.strides + axis, copy.as<void>(), &one);
          from = copy.as<std::byte>();
        }
        line(to, 1, places.as<int64_t>(), from, length);
      }
    });
  }

  // All indices in row-major order, one per row where rows are moved whole.
  void resolve_all(const InputView& index, int64_t* to) const {
    Shape shape = index.type.shape;
    if (rows) {
      while (shape.rank() > settings.axis + 1) shape.erase(shape.rank() - 1);
    }
    const int last = shape.rank() - 1;
    const int64_t step = index.strides[last], count = shape[last];
    shape.erase(last);
    const int64_t lines = shape.element_count();
    StridedWalk<1> walk(shape, {index.strides});
    walk.seek(0);
    for (int64_t i = 0; i < lines; i++, walk.next()) {
      resolve_indices(index, walk.offsets[0], step, count, Op::scatter, settings.axis, plan.result,
                      to + i * count);
    }
  }

  // to [outer, size, inner], values [outer, length, inner].
  void combine(std::byte* to, const int64_t* indices, const std::byte* values,
               size_t element) const {
    if (length == 0 || inner == 0) return;
    constexpr int64_t kSlice = 64;  // at least, so that threads do not share cache lines
    const int64_t wanted = outer >= 4 * thread_count() ? 1 : 4 * thread_count();
    const int64_t slices = std::clamp(inner / kSlice, int64_t(1), wanted);
    const int64_t bytes = int64_t(element), work = length * (inner / slices + 1);
    parallel(outer * slices, (1 << 14) / work + 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        const int64_t o = task / slices, s = task % slices;
        const int64_t first = s * inner / slices, count = (s + 1) * inner / slices - first;
        std::byte* target = to + (o * size * inner + first) * bytes;
        const std::byte* from = values + (o * length * inner + first) * bytes;
        if (inner == 1) {
          line(target, 1, indices + o * length, from, length);
          continue;
        }
        for (int64_t j = 0; j < length; j++, from += inner * bytes) {
          if (rows) {
            line(target + indices[o * length + j] * inner * bytes, 0, nullptr, from, count);
          } else {
            line(target, inner, indices + (o * length + j) * inner + first, from, count);
          }
        }
      }
    });
  }

  AnchorPlan plan;
  ScatterSettings settings;
  int64_t outer = 1, inner = 1, length = 0, size = 0;
  bool rows, halves;
  Line line = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> prepare_scatter(AnchorPlan plan) {
  return std::make_unique<Scatter>(std::move(plan));
}

}  // namespace fornax::flex
