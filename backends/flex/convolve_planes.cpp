// Laying pictures out in planes, and which shifts the taps of a window read them at.
#include <algorithm>

#include "backends/flex/convolve.h"
#include "backends/flex/gemm_pack.h"

namespace fornax::flex {
namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Sets how far the passes reach outside the source.
void measure(AxisPlan& plan) {
  for (const AxisPass& pass : plan.passes) {
    for (const AxisTap& tap : pass.taps) {
      plan.low = std::max(plan.low, -tap.shift);
      plan.need = std::max(plan.need, tap.shift + pass.count);
    }
  }
}

int phase_number(AxisPlan& plan, int64_t phase) {
  for (size_t i = 0; i < plan.phases.size(); i++) {
    if (plan.phases[i] == phase) return int(i);
  }
  plan.phases.push_back(phase);
  return int(plan.phases.size()) - 1;
}

}  // namespace

AxisPlan window_axis(const Window2d& w, int axis, int64_t length) {
  AxisPlan plan{.length = length, .step = w.stride[axis], .phases = {}, .passes = {}};
  AxisPass pass{0, 1, w.count(axis, length), {}};
  for (int64_t k = 0; k < w.size[axis]; k++) {
    const int64_t place = k * w.dilation[axis] - w.before[axis];
    const int64_t shift = floor_divide(place, plan.step);
    pass.taps.push_back({k, phase_number(plan, place - shift * plan.step), shift});
  }
  plan.passes.push_back(std::move(pass));
  measure(plan);
  return plan;
}

AxisPlan adjoint_axis(const Window2d& w, int axis, int64_t length) {
  AxisPlan plan{.length = length, .step = 1, .phases = {0}, .passes = {}};
  const int64_t step = w.stride[axis], extent = w.extent[axis];
  for (int64_t first = 0; first < std::min(step, extent); first++) {
    AxisPass pass{first, step, (extent - first + step - 1) / step, {}};
    for (int64_t k = 0; k < w.size[axis]; k++) {
      const int64_t place = first + w.before[axis] - k * w.dilation[axis];
      if (place % step == 0) pass.taps.push_back({k, 0, place / step});
    }
    plan.passes.push_back(std::move(pass));
  }
  measure(plan);
  return plan;
}

Planes::Planes(AxisPlan r, AxisPlan c) : rows(std::move(r)), columns(std::move(c)) {
  for (size_t phase = 0; phase < columns.phases.size(); phase++) {
    const int64_t held = columns.held(phase);
    pitch = std::max(pitch, held + std::max(columns.low, columns.need - held));
  }
  // A line of results is no longer than a line, so that each flat position belongs to one of them.
  for (const AxisPass& pass : columns.passes) pitch = std::max(pitch, pass.count);
  size = (rows.low + rows.need) * pitch + columns.low;
  size = (size + 15) / 16 * 16;
}

template <class T>
void fill_planes(const Planes& planes, DType dtype, const void* from, int64_t row_stride,
                 int64_t column_stride, T* to) {
  const AxisPlan &rows = planes.rows, &columns = planes.columns;
  with_float_type(dtype, [&](auto type) {
    const auto* picture = static_cast<decltype(type)>(from);
    for (size_t r = 0; r < rows.phases.size(); r++) {
      for (size_t c = 0; c < columns.phases.size(); c++, to += planes.size) {
        std::fill_n(to, planes.size, T(0));
        const int64_t lines = rows.held(r), width = columns.held(c);
        const int64_t step = columns.step * column_stride;
        for (int64_t u = 0; u < lines; u++) {
          const auto* line = picture + (rows.phases[r] + u * rows.step) * row_stride +
                             columns.phases[c] * column_stride;
          T* out = to + (rows.low + u) * planes.pitch + columns.low;
          if (step == 1) {
            for (int64_t v = 0; v < width; v++) out[v] = widen<T>(line[v]);
          } else {
            for (int64_t v = 0; v < width; v++) out[v] = widen<T>(line[v * step]);
          }
        }
      }
    }
  });
}

template void fill_planes(const Planes&, DType, const void*, int64_t, int64_t, float*);
template void fill_planes(const Planes&, DType, const void*, int64_t, int64_t, double*);

ConvolveSizes convolve_sizes(const AnchorPlan& plan) {
  const Window2d w(plan.attributes);
  const Shape &first = plan.inputs[0].type.shape, &second = plan.inputs[1].type.shape;
  const bool forward = plan.op == Op::convolve, weight = plan.op == Op::convolve_weight;
  const Shape& picture = plan.op == Op::convolve_input ? plan.result.shape : first;
  const Shape& result = forward ? plan.result.shape : weight ? second : first;
  return {picture[0],
          w.groups,
          picture[1] / w.groups,
          result[1] / w.groups,
          {picture[2], picture[3]},
          {result[2], result[3]},
          w};
}

}  // namespace fornax::flex
