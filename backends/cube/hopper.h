// Matrix products of 16-bit floats on compute 90, by its copy engine and matrix units.  Where tiles
// are few, blocks have equal shares of the turns over k, and the parts of a tile are added up in
// their order.
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
void add_hopper(Device& device, LaunchList& list, const MatrixProduct& product);

// How the work is shared out among blocks.
struct HopperSize {
  int64_t products, m, n, k;
  int64_t tiles(int rows, int columns) const;
  int64_t turns() const;  // over k, of a tile
};
struct HopperPlan {
  int rows = 0, columns = 0;  // of a tile
  // Turns of a block, and how many are counted of a tile (kernel/library/matmul.h); 0: blocks have
  // whole tiles.
  int64_t share = 0, padded = 0;
};
HopperPlan plan_hopper(const HopperSize& size, int processors);

}  // namespace fornax::cube
