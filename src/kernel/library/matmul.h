// Matrix products c = a x b, written once as tiles.
//
// Portable: any target, dtype and layout; a block keeps a tile of c in registers and walks over k,
// copying what it needs of a and b to shared memory first.  Hopper: 16-bit floats on compute 90,
// whose copy engine and matrix units it uses.
#pragma once
#include <fornax/function.h>

#include "kernel/build.h"

namespace fornax::kernel {

// What becomes of a finished tile before it is stored; `rows` and `columns` say where its elements
// are in c.
using Epilogue = FunctionRef<Value(Value tile, Value rows, Value columns)>;

// Element [r, c] of a matrix is number offset + r * row_stride + c * column_stride of the memory.
// The stride along which elements are consecutive is the literal 1, so that vectors can be proven.
struct MatrixView {
  Value memory, offset, row_stride, column_stride;
  bool rows_consecutive = true;  // column_stride is 1
};

struct PortableTiles {
  int rows = 64, columns = 64, depth = 16;
  int threads() const { return 256; }
};
// How a kernel with one such product shares out its tiles.
KernelSettings portable_settings(const PortableTiles& tiles, bool a_rows, bool b_rows);

// The tile of c = a[m, k] x b[k, n] that begins at element [row, column], sums in dtype `sums`.
// Whole, without a test per element, where m, n and k are multiples of the tile's extents by their
// facts.  Calls `store` with the tile and where its elements are; a mask says which exist.
void portable_matmul(Builder& builder, const PortableTiles& tiles, DType sums, const MatrixView& a,
                     const MatrixView& b, Value m, Value n, Value k, Value row, Value column,
                     FunctionRef<void(Value tile, Value rows, Value columns, Value mask)> store);

struct HopperMatmul {
  DType dtype = DType::bf16;  // of a, b and c; sums are f32
  bool a_transposed = false;  // a lies as [k, m]
  bool b_transposed = false;  // b lies as [n, k]
  int rows = 128, columns = 256, stages = 4;
  int group = 8;  // how many tiles of rows are walked together, for the cache
};
inline constexpr int kHopperDepth = 64;
// Arguments: maps of a in boxes of rows x 64, or 64 x 64 where it is transposed, of b in boxes of
// columns x 64 where it is transposed and 64 x 64 where not, of c [m, n] in boxes of 64 x 64; i32
// m, n, k.  A grid of any number of blocks; as many as there are processors, or tiles if those are
// fewer.
Kernel hopper_matmul(const HopperMatmul& settings, Epilogue epilogue);

}  // namespace fornax::kernel
