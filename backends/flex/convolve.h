// Convolutions: what the three ops and their algorithms share.
//
// Floats run as products whose right side is never built.  A picture is copied once into planes
// with room for the padding, one plane per phase of the stride; then every tap of the kernel (a
// channel and a place in the window) reads the plane at a fixed shift, and a row of the right side
// is a pointer.
// Values; plans are const after they are made and shared by threads.
#pragma once
#include <vector>

#include "backends/flex/index.h"

namespace fornax::flex {

// The place of one kernel line (or column) along its axis: it reads plane `phase` at position
// t + shift for the result's position t.
struct AxisTap {
  int64_t kernel;
  int phase;
  int64_t shift;
};

// Result positions first + t * step for t < count, and the taps that contribute to them.
struct AxisPass {
  int64_t first, step, count;
  std::vector<AxisTap> taps;
};

// One spatial axis: how the source is laid out in planes, and what is computed from them.
struct AxisPlan {
  int64_t length;               // of the source
  int64_t step;                 // source positions per plane position
  std::vector<int64_t> phases;  // plane i holds source positions phases[i] + u * step ...
  int64_t low = 0;              // ... at low + u
  int64_t need = 0;             // plane positions read, from low on
  std::vector<AxisPass> passes;

  // Source positions that plane `phase` holds.
  int64_t held(size_t phase) const {
    const int64_t there = (length - phases[phase] + step - 1) / step;
    return std::max(int64_t(0), std::min(there, need));
  }
};
// For results at windows of the source, and for results that are sums over the windows they are in.
AxisPlan window_axis(const Window2d& w, int axis, int64_t length);
AxisPlan adjoint_axis(const Window2d& w, int axis, int64_t length);

// All planes of one channel.  Lines share their zeros: what pads one on the right pads the next on
// the left.
struct Planes {
  AxisPlan rows, columns;
  int64_t pitch = 0;  // elements from line to line
  int64_t size = 0;   // elements per plane
  Planes(AxisPlan r, AxisPlan c);
  int64_t per_channel() const { return size * int64_t(rows.phases.size() * columns.phases.size()); }
  // Where the value for the first result of a pass lies, for a tap in both axes.
  int64_t offset(const AxisTap& row, const AxisTap& column) const {
    const int64_t plane = row.phase * int64_t(columns.phases.size()) + column.phase;
    return plane * size + (row.shift + rows.low) * pitch + column.shift + columns.low;
  }
};
inline constexpr int64_t kPlaneSlack = 192;  // elements that tiles may read behind the last plane

// Lays out one channel of floating `dtype` elements that starts at `from`.
template <class T>
void fill_planes(const Planes& planes, DType dtype, const void* from, int64_t row_stride,
                 int64_t column_stride, T* to);
extern template void fill_planes(const Planes&, DType, const void*, int64_t, int64_t, float*);
extern template void fill_planes(const Planes&, DType, const void*, int64_t, int64_t, double*);

// Element `position` of an operand whose dtype has `element` bytes.
inline const std::byte* element_at(const InputView& operand, int64_t position) {
  return operand.as<std::byte>() + position * int64_t(size_of(operand.type.dtype));
}

// The sizes behind the three ops.
struct ConvolveSizes {
  int64_t images, groups, inputs, outputs;  // channels per group
  int64_t picture[2], result[2];            // spatial sizes of x and y
  Window2d window;
};
ConvolveSizes convolve_sizes(const AnchorPlan& plan);

// convolve and convolve_input where every channel of f32 is on its own, read line by line.
bool suits_depthwise(const AnchorPlan& plan);
std::unique_ptr<Kernel> prepare_depthwise(AnchorPlan plan);

// The weight gradient of floats, and all three ops on whole numbers.
std::unique_ptr<Kernel> prepare_convolve_weight(AnchorPlan plan);
std::unique_ptr<Kernel> prepare_convolve_whole(AnchorPlan plan);

}  // namespace fornax::flex
