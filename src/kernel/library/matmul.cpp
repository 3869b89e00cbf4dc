#include "kernel/library/matmul.h"

#include "base/error.h"
#include "kernel/analysis.h"
#include "kernel/number.h"

namespace fornax::kernel {
namespace {

constexpr int kVector = 4;               // elements that a thread takes at once
constexpr int64_t kBoxAlignment = 1024;  // of boxes whose pieces are exchanged
constexpr int kPad = 4;                  // keeps columns of a shared tile off one bank

// Distributions: of the result, of a's tile as it lies in memory, of b's, of the slices' sums.
enum Layout { kResult, kLeft, kRight, kSums };

Distribution lying(int threads, int consecutive, int vector) {
  const int columns = consecutive / vector;
  return {threads / columns, columns, vector};
}

// A thread sums up 8 columns, in two vectors, and as many neighbouring rows as there are then.
Distribution summing(const PortableTiles& tiles) {
  const int columns = tiles.columns / (2 * kVector), rows = tiles.threads() / columns;
  return {rows, columns, kVector, false, tiles.slices * tiles.rows / rows};
}

bool divides(Builder& k, int extent, Value value) {
  return value.builder && divisor_of(k.state(), value.id) % extent == 0;
}

enum class Side { left, right };

// A tile of an operand on its way to shared memory: its lines, which are a's rows and b's columns,
// over a turn's depth.  There the depth lies in slices, in each of which the lines are consecutive.
class Staged {
 public:
  Staged(Builder& k, const MatrixElements& from, const PortableTiles& tiles, Side side)
      : k_(k), from_(from) {
    const bool left = side == Side::left;
    const int lines = left ? tiles.rows : tiles.columns, depth = tiles.depth / tiles.slices;
    step_ = lines + kPad, slice_ = depth * step_ + (tiles.slices > 1 ? kPad : 0);
    memory_ = k.shared(from.memory.dtype(), tiles.slices * slice_);
    const bool lines_first = from.order.by_rows == left;
    const int layout = left ? kLeft : kRight;
    const Value first = k.iota(0, lines_first ? lines : tiles.depth, layout);
    const Value second = k.iota(1, lines_first ? tiles.depth : lines, layout);
    const Value line = lines_first ? first : second, along = lines_first ? second : first;
    rows_ = left ? line : along, columns_ = left ? along : line;
    const Value slice = along / depth;
    to_ = slice * slice_ + (along - slice * depth) * step_ + line;
  }
  Value memory() const { return memory_; }
  int step() const { return step_; }
  int slice() const { return slice_; }
  // The tile at [row, column], nothing where `more` does not hold.
  Value load(Value row, Value column, Value more) {
    const Value rows = rows_ + row, columns = columns_ + column;
    Value mask = from_.mask ? from_.mask(rows, columns) : Value();
    mask = mask ? mask & more : more;
    return k_.load(from_.memory, from_.index(rows, columns), mask, 0);
  }
  void store(Value tile) { k_.store(memory_, to_, tile); }

 private:
  Builder& k_;
  const MatrixElements& from_;
  int step_ = 0, slice_ = 0;
  Value memory_, rows_, columns_, to_;
};

// The sum over the slices that lie one below the other, held as results are.
Value add_slices(Builder& k, const PortableTiles& tiles, Value sums) {
  if (tiles.slices == 1) return sums;
  const int size = tiles.rows * tiles.columns;
  const Value parts = k.shared(sums.dtype(), tiles.slices * size);
  const auto within = [&](int rows, int layout) {
    return k.iota(0, rows, layout) * tiles.columns + k.iota(1, tiles.columns, layout);
  };
  k.store(parts, within(tiles.slices * tiles.rows, kSums), sums);
  k.barrier();
  const Value at = within(tiles.rows, kResult);
  Value sum = k.load(parts, at);
  for (int slice = 1; slice < tiles.slices; slice++) sum = sum + k.load(parts, at + slice * size);
  return sum;
}

}  // namespace

KernelSettings portable_settings(const PortableTiles& tiles, CopyOrder a, CopyOrder b) {
  const int threads = tiles.threads();
  const Distribution sums = summing(tiles);
  return {
      .dialect = Dialect::tile,
      .distributions = {tiles.slices == 1 ? sums : lying(threads, tiles.columns, kVector),
                        lying(threads, a.by_rows ? tiles.depth : tiles.rows, a.vector),
                        lying(threads, b.by_rows ? tiles.columns : tiles.depth, b.vector), sums},
      .resident = 2};
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
  Staged left(k, a, tiles, Side::left), right(k, b, tiles, Side::right);
  Variable tile(k.spread(k.constant(sums, 0), tiles.slices * tiles.rows, tiles.columns,
                         tiles.slices == 1 ? kResult : kSums));
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
    tile = k.mma(tile, left.memory(), 0, right.memory(), 0, tiles.depth / tiles.slices,
                 {1, left.step()}, {right.step(), 1}, {tiles.slices, left.slice(), right.slice()});
    k.barrier();
  });
  return add_slices(k, tiles, tile);
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

// The kernel's memory and extents, and what happens to a tile.
class Hopper {
 public:
  Hopper(Builder& k, const HopperMatmul& s, const HopperOperands& given, Epilogue epilogue)
      : k_(k), s_(s), given_(given), epilogue_(epilogue) {
    as_ = k.shared(s.dtype, s.stages * a_box(), kBoxAlignment);
    bs_ = k.shared(s.dtype, s.stages * b_box(), kBoxAlignment);
    if (given.result) {
      staging_ = k.shared(given.result.dtype(), s.rows * 2 * kBoxSide, kBoxAlignment);
    }
    down_ = pieces(given.m, s.rows), across_ = pieces(given.n, s.columns);
  }

  Value tiles() const {
    Value tiles = down_ * across_;
    for (const Value& extent : given_.batch) tiles = tiles * extent;
    return tiles;
  }
  Value turns() const { return pieces(given_.k, kHopperDepth); }
  TileOrigin origin(Value tile) const { return origin_of(s_, given_, down_, across_, tile); }

  // Over `turns` turns of k from number `first` on.
  Value multiply(const TileOrigin& origin, Value first, Value turns) {
    Variable sums(k_.spread(k_.constant(DType::f32, 0), s_.rows, s_.columns));
    k_.pipeline(
        turns, s_.stages,
        [&](Value i, Value stage) {
          fetch_boxes(k_, s_, given_, as_, bs_, stage, (first + i) * kHopperDepth, origin);
        },
        [&](Value, Value stage) {
          sums = k_.mma_boxes(sums, as_, stage * a_box(), bs_, stage * b_box(), kHopperDepth,
                              s_.a_transposed, s_.b_transposed);
        });
    return sums;
  }

  void finish(const TileOrigin& origin, Value sums) {
    for (int chunk = 0; chunk < s_.columns; chunk += kBoxSide) {
      const Value column = origin.column + chunk;
      std::vector<Value> position = origin.batch;
      position.push_back(k_.iota(0, s_.rows) + origin.row);
      position.push_back(k_.iota(1, kBoxSide) + column);
      const Value result = epilogue_(k_.part(sums, chunk, kBoxSide), position);
      if (given_.result) {
        k_.deposit(given_.result, staging_, result, origin.at(column, origin.row, {}));
      }
    }
  }

 private:
  int a_box() const { return s_.rows * kHopperDepth; }
  int b_box() const { return s_.columns * kHopperDepth; }
  static Value pieces(Value extent, int size) { return (extent + (size - 1)) / size; }

  Builder& k_;
  const HopperMatmul& s_;
  const HopperOperands& given_;
  const Epilogue epilogue_;
  Value as_, bs_, staging_, down_, across_;
};

}  // namespace

void hopper_matmul(Builder& k, const HopperMatmul& s, const HopperOperands& given,
                   Epilogue epilogue) {
  Hopper product(k, s, given, epilogue);
  k.loop(k.block(), product.tiles(), k.blocks(), [&](Value tile) {
    const TileOrigin origin = product.origin(tile);
    product.finish(origin, product.multiply(origin, 0, product.turns()));
  });
}

void hopper_matmul(Builder& k, const HopperMatmul& s, const HopperOperands& given,
                   const TileShares& shares, Epilogue epilogue) {
  Hopper product(k, s, given, epilogue);
  share_tiles(
      k, shares, product.tiles(), product.turns(),
      [&](Value tile, Value first, Value turns) {
        return product.multiply(product.origin(tile), first, turns);
      },
      [&](Value tile, Value sums) { product.finish(product.origin(tile), sums); });
}

void share_tiles(Builder& k, const TileShares& shares, Value tiles, Value turns,
                 FunctionRef<Value(Value tile, Value first, Value turns)> multiply,
                 FunctionRef<void(Value tile, Value sums)> finish) {
  const Value padded = shares.padded, share = shares.share, block = k.block();
  const Value begin = block * share, end = min(begin + share, tiles * padded);
  Variable next(begin);
  const auto piece = [&] {
    const Value tile = next.get() / padded, first = next.get() - tile * padded;
    const Value counted = min(padded - first, end - next.get());
    Variable sums(multiply(tile, first, min(counted, turns - first)));
    // The first of the tile's blocks ends with its piece, the others begin with theirs.
    const Value before = tile * padded / share;
    const Value count = (tile * padded + padded - 1) / share - before + 1;
    const auto slot = [&](Value number) {
      return (before + number) * 2 + k.cast(number == 0, DType::i32);
    };
    Variable whole(count == 1);
    k.when(count > 1, [&] {
      shares.add_up({tile, block - before, count, sums, slot}, [&](Value all) {
        sums = all;
        whole = k.constant(DType::bool_, true);
      });
    });
    k.when(whole, [&] { finish(tile, sums); });
    next = next.get() + counted;
  };
  k.repeat_while([&] { return next.get() < end; }, piece);
}

}  // namespace fornax::kernel
