// Matrix products c = a x b, written once as tiles.
//
// Portable: any target, dtype and layout; a block keeps a tile of c in registers and walks over k,
// copying what it needs of a and b to shared memory first.  Hopper: 16-bit floats on compute 90,
// whose copy engine and matrix units it uses.
#pragma once
#include <fornax/function.h>

#include "kernel/build.h"

namespace fornax::kernel {

// How the threads share out an operand's tile while they copy it.
struct CopyOrder {
  bool by_rows = true;  // neighbours along a row lie side by side in memory, else along a column
  int vector = 4;       // elements that a thread takes at once
};

// An operand of a product: element [r, c] is number index(r, c) of the memory where mask(r, c)
// holds, and 0 elsewhere.  Without a mask all are there.
struct MatrixElements {
  Value memory;
  CopyOrder order;
  Function<Value(Value rows, Value columns)> index, mask;
};

// The tile of c that a block computes, and how much of k in a turn.  In `slices` the block's warps
// share out each turn's k and add up what they found at the end: a thread then has more numbers of
// the tile, and reads fewer of a and b for each.
struct PortableTiles {
  int rows = 64, columns = 64, depth = 16, slices = 4;
  int threads() const { return 256; }
};
// How a kernel with one such product shares out its tiles.
KernelSettings portable_settings(const PortableTiles& tiles, CopyOrder a, CopyOrder b);

// Element [r, c] is number offset + r * row_stride + c * column_stride of the memory.  The stride
// along which elements are consecutive is the literal 1, so that vectors can be proven; the tile
// `rows` x `columns` has no edge where the facts say that it divides the matrix.
struct MatrixView {
  Value memory, offset, row_stride, column_stride;
  bool rows_consecutive = true;  // column_stride is 1
};
MatrixElements elements_of(Builder& builder, const MatrixView& view, int rows, int columns,
                           Value height, Value width);
// Which positions along an axis of `tile` elements lie below `extent`; none where all do.
Value within(Builder& builder, int tile, Value positions, Value extent);

// The sum of a[r, k] x b[k, c] over k from `from` to `to`, for the tile that begins at element
// [row, column], in dtype `sums`.  Beyond `to`, elements must be masked out.
Value portable_matmul(Builder& builder, const PortableTiles& tiles, DType sums,
                      const MatrixElements& a, const MatrixElements& b, Value from, Value to,
                      Value row, Value column);

// What a block has of a tile that several share.
struct TilePart {
  Value tile;           // its number
  Value number, count;  // of the part, and how many the tile has
  Value sums;
  FunctionRef<Value(Value number)> slot;  // which place in memory a part of the tile has
};
// Where tiles are few, each block has an equal share of the turns over k that all tiles need, one
// tile after another: the end of one perhaps, and the beginning of another.
struct TileShares {
  Value share;   // i32, turns of a block
  Value padded;  // i32, turns counted of a tile: at least those that it needs, but so few more that
                 // every part has some that it needs
  // Calls `finish` in one of the tile's blocks, with what all parts add up to.  Their slots lie
  // below twice the number of blocks.
  FunctionRef<void(const TilePart& part, FunctionRef<void(Value sums)> finish)> add_up;
};
// For a grid of as many blocks as there are shares.  `multiply` gives the sums of some turns of a
// tile, `finish` gets the whole ones.
void share_tiles(Builder& builder, const TileShares& shares, Value tiles, Value turns,
                 FunctionRef<Value(Value tile, Value first, Value turns)> multiply,
                 FunctionRef<void(Value tile, Value sums)> finish);

struct HopperMatmul {
  DType dtype = DType::bf16;  // of a and b; sums are f32
  bool a_transposed = false;  // a lies as [k, m]
  bool b_transposed = false;  // b lies as [n, k]
  int rows = 128, columns = 256, stages = 4;
  int group = 8;  // how many tiles of rows are walked together, for the cache
};
inline constexpr int kHopperDepth = 64;
KernelSettings hopper_settings(const HopperMatmul& tiles);

// Parameters of the kernel: maps of a in boxes of rows x 64, or 64 x 64 where it is transposed, of
// b in boxes of columns x 64 where it is transposed and 64 x 64 where not; where there is one, of
// the result [m, n], of 16-bit elements, in boxes of 64 x 64.
//
// Of a batch, the maps have its axes too, those over which an operand is the same with extent 1.
struct HopperOperands {
  Value a, b, result;
  Value m, n, k;                         // i32
  std::vector<Value> batch;              // extents, i32
  std::vector<bool> a_varies, b_varies;  // along the batch's axes
};
// What becomes of 64 columns of a finished tile, which lie at `position`: the batch's axes, the
// rows and the columns.  What it gives is the result there.
using Epilogue = FunctionRef<Value(Value sums, const std::vector<Value>& position)>;
// For a grid of any number of blocks; as many as there are processors, or tiles if those are fewer.
void hopper_matmul(Builder& builder, const HopperMatmul& tiles, const HopperOperands& operands,
                   Epilogue epilogue);
// For a grid of as many blocks as there are shares.
void hopper_matmul(Builder& builder, const HopperMatmul& tiles, const HopperOperands& operands,
                   const TileShares& shares, Epilogue epilogue);

}  // namespace fornax::kernel
