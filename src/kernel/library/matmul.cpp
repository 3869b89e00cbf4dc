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
Distribution lying(int threads, int consecutive, int vector) {
  const int columns = consecutive / vector;
  return {threads / columns, columns, vector};
}

bool divides(Builder& k, int extent, Value value) {
  return value.builder && divisor_of(k.state(), value.id) % extent == 0;
}

// A tile of an operand on its way to shared memory, where element [r, c] lies at
// r * row_step + c * column_step.
class Staged {
 public:
  Staged(Builder& k, const MatrixElements& from, int rows, int columns, int row_step,
         int column_step, int layout)
      : k_(k),
        from_(from),
        memory_(k.shared(from.memory.dtype(), rows_of(rows, columns, row_step))) {
    const bool by_rows = from.order.by_rows;
    const Value first = k.iota(0, by_rows ? rows : columns, layout);
    const Value second = k.iota(1, by_rows ? columns : rows, layout);
    rows_ = by_rows ? first : second, columns_ = by_rows ? second : first;
    to_ = rows_ * row_step + columns_ * column_step;
  }
  Value memory() const { return memory_; }
  // The tile at [row, column], nothing where `more` does not hold.
  Value load(Value row, Value column, Value more) {
    const Value rows = rows_ + row, columns = columns_ + column;
    Value mask = from_.mask ? from_.mask(rows, columns) : Value();
    mask = mask ? mask & more : more;
    return k_.load(from_.memory, from_.index(rows, columns), mask, 0);
  }
  void store(Value tile) { k_.store(memory_, to_, tile); }

 private:
  static int rows_of(int rows, int columns, int row_step) {
    return row_step == 1 ? columns * (rows + kPad) : rows * row_step;
  }
  Builder& k_;
  const MatrixElements& from_;
  const Value memory_;
  Value rows_, columns_, to_;
};

}  // namespace

KernelSettings portable_settings(const PortableTiles& tiles, CopyOrder a, CopyOrder b) {
  const int threads = tiles.threads();
  return {.dialect = Dialect::tile,
          .distributions = {{kSide, kSide, kVector},
                            lying(threads, a.by_rows ? tiles.depth : tiles.rows, a.vector),
                            lying(threads, b.by_rows ? tiles.columns : tiles.depth, b.vector)}};
}

MatrixElements elements_of(Builder& k, const MatrixView& view, int rows, int columns, Value height,
                           Value width) {
  const auto along = [&k](Value position, Value stride) {
    return stride.builder ? k.cast(position, stride.dtype()) * stride : position;
  };
  const auto index = [&k, view, along](Value r, Value c) {
    const bool by_rows = view.rows_consecutive;
    const Value lines = by_rows ? along(r, view.row_stride) : along(c, view.column_stride);
    const Value offset = k.cast(k.as(lines.dtype(), view.offset), lines.dtype());
    return offset + lines + k.cast(by_rows ? c : r, lines.dtype());
  };
  const auto mask = [&k, rows, columns, height, width](Value r, Value c) {
    return inside(k, rows, columns, r, c, height, width);
  };
  return {view.memory, {view.rows_consecutive, kVector}, index, mask};
}

Value inside(Builder& k, int rows, int columns, Value row, Value column, Value height,
             Value width) {
  const bool whole_rows = divides(k, rows, height), whole_columns = divides(k, columns, width);
  const Value in_rows = whole_rows ? Value() : row < height;
  if (whole_columns) return in_rows;
  return in_rows ? in_rows & (column < width) : column < width;
}

Value portable_matmul(Builder& k, const PortableTiles& tiles, DType sums, const MatrixElements& a,
                      const MatrixElements& b, Value from, Value to, Value row, Value column) {
  const int a_step = tiles.rows + kPad, b_step = tiles.columns + kPad;
  Staged left(k, a, tiles.rows, tiles.depth, 1, a_step, 1);
  Staged right(k, b, tiles.depth, tiles.columns, b_step, 1, 2);
  Variable tile(k.spread(k.constant(sums, 0), tiles.rows, tiles.columns));
  // What the next turn needs is on its way while this one computes.
  const Value any = k.as(DType::i32, from) < to;
  Variable next_left(left.load(row, from, any)), next_right(right.load(from, column, any));
  k.loop(from, to, tiles.depth, [&](Value step) {
    left.store(next_left);
    right.store(next_right);
    k.barrier();
    const Value next = step + tiles.depth, more = next < to;
    next_left = left.load(row, next, more);
    next_right = right.load(next, column, more);
    tile = k.mma(tile, left.memory(), 0, right.memory(), 0, tiles.depth, {1, a_step}, {b_step, 1});
    k.barrier();
  });
  return tile;
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
