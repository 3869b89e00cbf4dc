// Matrix products of 16-bit floats on compute 90, by its copy engine and matrix units.
#pragma once
#include <memory>

#include "backends/cube/epilogue.h"
#include "backends/cube/launch.h"

namespace fornax::cube {

// Products a [m, k] x b [k, n] as they lie in memory.
struct MatrixOperand {
  Place place;
  int64_t rows = 0, columns = 0;
  int64_t row_stride = 0, column_stride = 0;
  Strides batch;
};
struct MatrixProduct {
  DType dtype = DType::bf16;  // of both
  MatrixOperand a, b;
  std::vector<int64_t> batch;  // extents
  Epilogue after;              // over the batch, m and n
};

// Whether the device and the layouts allow it: rows that lie 16-byte aligned, and elements that lie
// side by side along either axis of a and b, along n in results.  When it runs, all that the
// epilogue wants aligned for kHopperVector elements must be, and a and b.
inline constexpr int kHopperVector = 8;
bool hopper_takes(const Device& device, const MatrixProduct& product);
Launch hopper_launch(Device& device, const MatrixProduct& product);

}  // namespace fornax::cube
