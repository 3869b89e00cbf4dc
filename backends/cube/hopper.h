// Matrix products of 16-bit floats on compute 90, by its copy engine and matrix units.
#pragma once
#include <memory>

#include "backends/cube/launch.h"

namespace fornax::cube {

// c [m, n] = a [m, k] x b [k, n] as they lie in memory.
struct MatrixOperand {
  Place place;
  int64_t rows = 0, columns = 0;
  int64_t row_stride = 0, column_stride = 0;
};
struct MatrixProduct {
  DType dtype = DType::bf16;  // of all three
  MatrixOperand a, b, c;
};

// Whether the device and the layouts allow it: rows that lie 16-byte aligned, and elements that lie
// side by side along either axis of a and b, along n in c.  When it runs, all three must begin
// 16-byte aligned.
bool hopper_takes(const Device& device, const MatrixProduct& product);
Launch hopper_launch(Device& device, const MatrixProduct& product);

}  // namespace fornax::cube
