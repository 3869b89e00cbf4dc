#include "kernel/library/matmul.h"

#include "base/error.h"
#include "kernel/analysis.h"
#include "kernel/number.h"

namespace fornax::kernel {
namespace {

constexpr int kSide = 16;                // threads along each side of c's tile
constexpr int kVector = 4;               // elements that a thread takes at once
constexpr int64_t kBoxAlignment = 1024;  // of boxes whose pieces are exchanged
constexpr int kPad = 4;                  // keeps columns of a shared tile off one bank

// Distributions: 0 of the sums, 1 of a's tile as it lies in memory, 2 of b's.
Distribution lying(int threads, int consecutive) {
  const int columns = consecutive / kVector;
  return {threads / columns, columns, kVector};
}

bool divides(Builder& k, int extent, Value value) {
  return value.builder && divisor_of(k.state(), value.id) % extent == 0;
}

// Copies the tile at [row, column] of a matrix with `height` x `width` elements to shared memory,
// where element [r, c] lies at r * row_step + c * column_step.
struct Staged {
  int rows, columns, row_step, column_step, layout;
};
void stage(Builder& k, const MatrixView& from, Value to, const Staged& tile, Value row,
           Value column, Value height, Value width) {
  const bool by_rows = from.rows_consecutive;
  const Value first = k.iota(0, by_rows ? tile.rows : tile.columns, tile.layout);
  const Value second = k.iota(1, by_rows ? tile.columns : tile.rows, tile.layout);
  const Value r = by_rows ? first : second, c = by_rows ? second : first;
  const auto along = [&](Value position, Value stride) {
    return stride.builder ? k.cast(position, stride.dtype()) * stride : position;
  };
  const Value rows = r + row, columns = c + column;
  const Value lines = by_rows ? along(rows, from.row_stride) : along(columns, from.column_stride);
  const Value offset = from.offset.builder ? from.offset : k.as(DType::i32, from.offset);
  const DType index = lines.dtype();
  const Value at = k.cast(offset, index) + lines + k.cast(by_rows ? columns : rows, index);
  Value mask;
  if (!divides(k, tile.rows, height)) mask = rows < height;
  if (!divides(k, tile.columns, width)) mask = mask ? mask & (columns < width) : columns < width;
  const Value loaded = mask ? k.load(from.memory, at, mask, 0) : k.load(from.memory, at);
  k.store(to, r * tile.row_step + c * tile.column_step, loaded);
}

}  // namespace

KernelSettings portable_settings(const PortableTiles& tiles, bool a_rows, bool b_rows) {
  const int threads = tiles.threads();
  return {.dialect = Dialect::tile,
          .distributions = {{kSide, kSide, kVector},
                            lying(threads, a_rows ? tiles.depth : tiles.rows),
                            lying(threads, b_rows ? tiles.columns : tiles.depth)}};
}

void portable_matmul(Builder& k, const PortableTiles& tiles, DType sums, const MatrixView& a,
                     const MatrixView& b, Value m, Value n, Value depth, Value row, Value column,
                     FunctionRef<void(Value, Value, Value, Value)> store) {
  const int a_step = tiles.rows + kPad, b_step = tiles.columns + kPad;
  const Value as = k.shared(a.memory.dtype(), tiles.depth * a_step);
  const Value bs = k.shared(b.memory.dtype(), tiles.depth * b_step);
  Variable tile(k.spread(k.constant(sums, 0), tiles.rows, tiles.columns));
  k.loop(0, depth, tiles.depth, [&](Value step) {
    stage(k, a, as, {tiles.rows, tiles.depth, 1, a_step, 1}, row, step, m, depth);
    stage(k, b, bs, {tiles.depth, tiles.columns, b_step, 1, 2}, step, column, depth, n);
    k.barrier();
    tile = k.mma(tile, as, 0, bs, 0, tiles.depth, {1, a_step}, {b_step, 1});
    k.barrier();
  });
  const Value rows = k.iota(0, tiles.rows) + row, columns = k.iota(1, tiles.columns) + column;
  Value mask;
  if (!divides(k, tiles.rows, m)) mask = rows < m;
  if (!divides(k, tiles.columns, n)) mask = mask ? mask & (columns < n) : columns < n;
  store(tile, rows, columns, mask);
}

Kernel hopper_matmul(const HopperMatmul& s, Epilogue epilogue) {
  constexpr int kDepth = kHopperDepth;
  Builder k("matmul", {.dialect = Dialect::tile, .distributions = {{s.rows / 2, 4, 2, true}}});
  const Value a = k.map("a", s.dtype), b = k.map("b", s.dtype), c = k.map("c", s.dtype);
  const Value m = k.number("m", DType::i32), n = k.number("n", DType::i32);
  const Value depth = k.number("k", DType::i32);
  const int a_box = s.rows * kDepth, b_box = s.columns * kDepth;
  const Value as = k.shared(s.dtype, s.stages * a_box, kBoxAlignment);
  const Value bs = k.shared(s.dtype, s.stages * b_box, kBoxAlignment);
  const Value staging = k.shared(s.dtype, s.rows / 64 * 2 * 64 * 64, kBoxAlignment);
  const auto tiles_of = [](Value extent, int size) { return (extent + (size - 1)) / size; };
  const Value down = tiles_of(m, s.rows), across = tiles_of(n, s.columns);

  k.loop(k.block(), down * across, k.blocks(), [&](Value tile) {
    // Tiles are numbered by groups of `group` rows of tiles, column by column inside one: those
    // that run together share rows of a and columns of b.
    const Value in_group = across * s.group, group = tile / in_group;
    const Value height = min(down - group * s.group, s.group), rest = tile - group * in_group;
    const Value row = (group * s.group + rest % height) * s.rows,
                column = rest / height * s.columns;
    Variable sums(k.spread(k.constant(DType::f32, 0), s.rows, s.columns));
    k.pipeline(
        tiles_of(depth, kDepth), s.stages,
        [&](Value i, Value stage) {
          const Value step = i * kDepth;
          const int box = 64 * kDepth;
          for (int chunk = 0; chunk < s.rows && s.a_transposed; chunk += 64) {
            k.fetch(a, as, stage * a_box + chunk * kDepth, {row + chunk, step}, box * 2);
          }
          if (!s.a_transposed) k.fetch(a, as, stage * a_box, {step, row}, a_box * 2);
          if (s.b_transposed) {
            k.fetch(b, bs, stage * b_box, {step, column}, b_box * 2);
            return;
          }
          for (int chunk = 0; chunk < s.columns; chunk += 64) {
            k.fetch(b, bs, stage * b_box + chunk * kDepth, {column + chunk, step}, box * 2);
          }
        },
        [&](Value, Value stage) {
          sums = k.mma_boxes(sums, as, stage * a_box, bs, stage * b_box, kDepth, s.a_transposed,
                             s.b_transposed);
        });
    const Value rows = k.iota(0, s.rows) + row, columns = k.iota(1, s.columns) + column;
    k.deposit(c, staging, epilogue(sums, rows, columns), {column, row});
  });
  return k.finish();
}

}  // namespace fornax::kernel
