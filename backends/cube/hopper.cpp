#include "backends/cube/hopper.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/library/matmul.h"
#include "kernel/lower.h"

namespace fornax::cube {
namespace {

using kernel::HopperMatmul;
using kernel::kHopperDepth;

constexpr int64_t kAligned = 8;       // elements of 16 bits in 16 bytes
constexpr int kSharedBytes = 232448;  // of a block
constexpr int kBoxBytes = 64 * 64 * 2;
constexpr int kMostStages = 8;

bool whole_rows(const MatrixOperand& x) {
  return x.column_stride == 1 && x.row_stride % kAligned == 0 && x.row_stride >= x.columns;
}
MatrixOperand transposed(const MatrixOperand& x) {
  return {x.place, x.columns, x.rows, x.column_stride, x.row_stride};
}

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The largest tile of which there are enough for every processor: small ones read more, but a
// processor without a tile does nothing.
HopperMatmul settings_for(const MatrixProduct& product, int processors) {
  constexpr int kTiles[][2] = {{128, 256}, {128, 128}, {64, 128}, {64, 64}};
  HopperMatmul best;
  best.dtype = product.dtype;
  best.a_transposed = !whole_rows(product.a);
  best.b_transposed = !whole_rows(product.b);
  for (const auto& [rows, columns] : kTiles) {
    best.rows = rows, best.columns = columns;
    const int64_t tiles = ceiling(product.c.rows, rows) * ceiling(product.c.columns, columns);
    if (tiles >= processors * 3 / 4) break;
  }
  const int stage = (best.rows + best.columns) * kHopperDepth * 2;
  const int staging = best.rows / 64 * 2 * kBoxBytes;
  best.stages = std::min((kSharedBytes - staging - 1024) / stage, kMostStages);
  return best;
}

runtime::TensorMapRequest map_of(const MatrixOperand& x, int box_rows) {
  runtime::TensorMapRequest request;
  request.element_bytes = 2;
  request.rank = 2;
  request.extents = {uint64_t(x.columns), uint64_t(x.rows), 1};
  request.pitches = {uint64_t(x.row_stride) * 2, 0};
  request.box = {uint32_t(kHopperDepth), uint32_t(box_rows), 1};
  return request;
}

}  // namespace

bool hopper_takes(const Device& device, const MatrixProduct& product) {
  const bool small = product.dtype == DType::bf16 || product.dtype == DType::f16;
  if (device.capabilities().compute != 90 || !small) return false;
  if (product.c.rows == 0 || product.c.columns == 0 || product.a.columns == 0) return false;
  const auto lies_well = [](const MatrixOperand& x) {
    return whole_rows(x) || whole_rows(transposed(x));
  };
  return lies_well(product.a) && lies_well(product.b) && whole_rows(product.c);
}

Launch hopper_launch(Device& device, const MatrixProduct& product) {
  const int processors = device.capabilities().processors;
  const HopperMatmul s = settings_for(product, processors);
  Arguments arguments;
  arguments.map(
      product.a.place, s.dtype,
      s.a_transposed ? map_of(transposed(product.a), kHopperDepth) : map_of(product.a, s.rows));
  arguments.map(
      product.b.place, s.dtype,
      s.b_transposed ? map_of(transposed(product.b), s.columns) : map_of(product.b, kHopperDepth));
  arguments.map(product.c.place, s.dtype, map_of(product.c, 64));
  arguments.number(DType::i32, product.c.rows);
  arguments.number(DType::i32, product.c.columns);
  arguments.number(DType::i32, product.a.columns);
  const int64_t tiles = ceiling(product.c.rows, s.rows) * ceiling(product.c.columns, s.columns);
  const runtime::Grid grid{uint32_t(std::min<int64_t>(tiles, processors)), 1, 1};
  KernelRecipe recipe{
      fmt::format("hopper {} {}x{}x{} {}{}", name_of(s.dtype), s.rows, s.columns, s.stages,
                  s.a_transposed ? "t" : "n", s.b_transposed ? "t" : "n"),
      [s] {
        return kernel::lower(kernel::hopper_matmul(
            s, [](kernel::Value tile, kernel::Value, kernel::Value) { return tile; }));
      }};
  return Launch(device, std::move(recipe), grid, std::move(arguments));
}

}  // namespace fornax::cube
