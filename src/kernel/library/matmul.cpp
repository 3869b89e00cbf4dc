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
          .distributions = {{kSide, kSide, kVector, false, tiles.rows > 64 ? 1 : kVector},
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
    const Value in_rows = within(k, rows, r, height), in_columns = within(k, columns, c, width);
    return in_columns.none() ? in_rows : in_rows.none() ? in_columns : in_rows & in_columns;
  };
  return {view.memory, {view.rows_consecutive, kVector}, index, mask};
}

Value within(Builder& k, int tile, Value positions, Value extent) {
  return divides(k, tile, extent) ? Value() : positions < extent;
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

KernelSettings hopper_settings(const HopperMatmul& tiles) {
  return {.dialect = Dialect::tile, .distributions = {{tiles.rows / 2, 4, 2, true}}};
}

namespace {

constexpr int kBoxSide = 64;

int64_t box_bytes(const Value& map, int rows) {
  return rows * kHopperDepth * int64_t(size_of(map.dtype()));
}

// Where a tile of the result is; coordinates count from the innermost axis.
struct TileOrigin {
  std::vector<Value> batch;
  Value row, column;
  std::vector<Value> at(Value x, Value y, const std::vector<bool>& varies) const {
    std::vector<Value> coordinates{x, y};
    for (size_t axis = batch.size(); axis-- > 0;) {
      coordinates.push_back(varies.empty() || varies[axis] ? batch[axis] : Value(0));
    }
    return coordinates;
  }
};

// Tiles are numbered matrix by matrix, in each by groups of `group` rows of tiles, column by column
// inside one: those that run together share rows of a and columns of b.
TileOrigin origin_of(const HopperMatmul& s, const HopperOperands& given, Value down, Value across,
                     Value tile) {
  TileOrigin origin;
  origin.batch.resize(given.batch.size());
  Value matrix = given.batch.empty() ? Value() : tile / (down * across);
  if (matrix) tile = tile - matrix * (down * across);
  for (size_t axis = given.batch.size(); axis-- > 0;) {
    const Value outer = axis == 0 ? Value() : matrix / given.batch[axis];
    origin.batch[axis] = outer ? matrix - outer * given.batch[axis] : matrix;
    matrix = outer;
  }
  const Value in_group = across * s.group, group = tile / in_group;
  const Value height = min(down - group * s.group, s.group), rest = tile - group * in_group;
  origin.row = (group * s.group + rest % height) * s.rows;
  origin.column = rest / height * s.columns;
  return origin;
}

// The operands' boxes of one turn over k, on their way to the stages of shared memory.
void fetch_boxes(Builder& k, const HopperMatmul& s, const HopperOperands& given, Value as, Value bs,
                 Value stage, Value step, const TileOrigin& origin) {
  const auto fetch = [&](Value map, Value memory, int side, bool whole, Value at,
                         const std::vector<bool>& varies) {
    const Value place = stage * (side * kHopperDepth);
    if (whole) {
      return k.fetch(map, memory, place, origin.at(step, at, varies), box_bytes(map, side));
    }
    for (int chunk = 0; chunk < side; chunk += kBoxSide) {
      k.fetch(map, memory, place + chunk * kHopperDepth, origin.at(at + chunk, step, varies),
              box_bytes(map, kBoxSide));
    }
  };
  fetch(given.a, as, s.rows, !s.a_transposed, origin.row, given.a_varies);
  fetch(given.b, bs, s.columns, s.b_transposed, origin.column, given.b_varies);
}

}  // namespace

void hopper_matmul(Builder& k, const HopperMatmul& s, const HopperOperands& given,
                   Epilogue epilogue) {
  const int a_box = s.rows * kHopperDepth, b_box = s.columns * kHopperDepth;
  const Value as = k.shared(s.dtype, s.stages * a_box, kBoxAlignment);
  const Value bs = k.shared(s.dtype, s.stages * b_box, kBoxAlignment);
  Value staging;
  if (given.result) {
    staging = k.shared(given.result.dtype(), s.rows * 2 * kBoxSide, kBoxAlignment);
  }
  const auto tiles_of = [](Value extent, int size) { return (extent + (size - 1)) / size; };
  const Value down = tiles_of(given.m, s.rows), across = tiles_of(given.n, s.columns);
  Value tiles = down * across;
  for (const Value& extent : given.batch) tiles = tiles * extent;

  k.loop(k.block(), tiles, k.blocks(), [&](Value tile) {
    const TileOrigin origin = origin_of(s, given, down, across, tile);
    Variable sums(k.spread(k.constant(DType::f32, 0), s.rows, s.columns));
    k.pipeline(
        tiles_of(given.k, kHopperDepth), s.stages,
        [&](Value i, Value stage) {
          fetch_boxes(k, s, given, as, bs, stage, i * kHopperDepth, origin);
        },
        [&](Value, Value stage) {
          sums = k.mma_boxes(sums, as, stage * a_box, bs, stage * b_box, kHopperDepth,
                             s.a_transposed, s.b_transposed);
        });
    for (int chunk = 0; chunk < s.columns; chunk += kBoxSide) {
      const Value column = origin.column + chunk;
      std::vector<Value> position = origin.batch;
      position.push_back(k.iota(0, s.rows) + origin.row);
      position.push_back(k.iota(1, kBoxSide) + column);
      const Value result = epilogue(k.part(sums, chunk, kBoxSide), position);
      if (given.result) {
        k.deposit(given.result, staging, result, origin.at(column, origin.row, {}));
      }
    }
  });
}

}  // namespace fornax::kernel
