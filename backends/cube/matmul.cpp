// Matrix products, with what follows them.  A block computes a tile of one product of the batch;
// blocks are numbered through the batch's axes, then down and across the tiles.
//
// Operands with a row or a column of consecutive elements are read where they lie; others, and
// those that are walked backwards, are copied first.
#include <algorithm>

#include "backends/cube/epilogue.h"
#include "backends/cube/hopper.h"
#include "backends/cube/kernels.h"
#include "backends/cube/operand.h"
#include "backends/cube/sequence.h"
#include "backends/cube/splits.h"
#include "base/error.h"
#include "kernel/library/matmul.h"

namespace fornax::cube {
namespace {

constexpr int kVector = 4;  // elements that are moved at once where everything is aligned

// All that the kernel's text follows from.
struct MatmulClass {
  DType dtype = DType::f32, index = DType::i32;
  kernel::PortableTiles tiles;
  bool a_rows = true, b_rows = true;  // whether rows are consecutive, else columns
  // Whether all lines begin at multiples of kVector.
  bool a_vectors = false, b_vectors = false;
  int m_divisor = 1, n_divisor = 1, k_divisor = 1;
  int batch_rank = 0;
  bool split = false;  // whether blocks share the sum over k
  EpilogueClass after;

  std::string key() const {
    const auto side = [](bool rows, bool vectors) {
      return fmt::format("{}{}", rows ? "r" : "c", vectors ? "v" : "");
    };
    return fmt::format("matmul {} {} {}x{}x{}/{} {}{} m{} n{} k{} b{}{}{}", name_of(dtype),
                       name_of(index), tiles.rows, tiles.columns, tiles.depth, tiles.slices,
                       side(a_rows, a_vectors), side(b_rows, b_vectors), m_divisor, n_divisor,
                       k_divisor, batch_rank, split ? " split" : "", after.key());
  }
};

// A matrix of a batch inside the kernel: where it begins follows from the batch's position.
struct Batched {
  kernel::MatrixView view;
  std::vector<Value> batch_strides;
};
kernel::Facts stride_facts(bool vectors) {
  return {.divisor = vectors ? kVector : 1, .most = INT64_MAX};
}
kernel::Facts memory_facts(DType dtype, bool vectors) {
  return {.divisor = int64_t(size_of(dtype)) * (vectors ? kVector : 1)};
}
Batched declare_matrix(Builder& k, const std::string& name, const MatmulClass& c, bool rows,
                       bool vectors) {
  Batched matrix;
  matrix.view.memory = k.buffer(name, c.dtype, memory_facts(c.dtype, vectors));
  const Value pitch = k.number(name + "_pitch", c.index, stride_facts(vectors));
  matrix.view.row_stride = rows ? pitch : Value(1);
  matrix.view.column_stride = rows ? Value(1) : pitch;
  matrix.view.rows_consecutive = rows;
  for (int i = 0; i < c.batch_rank; i++) {
    matrix.batch_strides.push_back(
        k.number(fmt::format("{}_stride{}", name, i), c.index, stride_facts(vectors)));
  }
  return matrix;
}

Value offset_of(Builder& k, const Position& batch, const std::vector<Value>& strides, DType index) {
  Value offset = k.constant(index, 0);
  for (size_t i = 0; i < strides.size(); i++) {
    offset = offset + k.cast(batch[i], index) * strides[i];
  }
  return offset;
}

kernel::Kernel build(const MatmulClass& known) {
  const kernel::PortableTiles& tiles = known.tiles;
  const DType sums = kernel::compute_dtype(known.dtype);
  Builder k("matmul", kernel::portable_settings(tiles, {known.a_rows}, {known.b_rows}));
  Batched a = declare_matrix(k, "a", known, known.a_rows, known.a_vectors);
  Batched b = declare_matrix(k, "b", known, known.b_rows, known.b_vectors);
  const Value m = k.number("m", DType::i32, {.divisor = known.m_divisor});
  const Value n = k.number("n", DType::i32, {.divisor = known.n_divisor});
  const Value depth = k.number("k", DType::i32, {.divisor = known.k_divisor});
  // The batch's axes, then the tiles down and across.
  const std::vector<Extent> extents = declare_extents(k, known.batch_rank + 2, DType::i32);
  const std::vector<View> views = declare_epilogue(k, known.after, known.index);
  Value tile = k.block(), split, share, count;
  Splits splits;
  if (known.split) {
    count = k.number("splits", DType::i32);
    splits = declare_splits(k, sums);
    share = k.number("share", DType::i32, {.divisor = tiles.depth});  // of k
    tile = k.block() / count;
    split = k.block() - tile * count;
  }
  Position batch = position_of(k, extents, tile);
  const Value column = batch.back() * tiles.columns;
  batch.pop_back();
  const Value row = batch.back() * tiles.rows;
  batch.pop_back();
  a.view.offset = offset_of(k, batch, a.batch_strides, known.index);
  b.view.offset = offset_of(k, batch, b.batch_strides, known.index);
  const Value from = known.split ? split * share : Value(0);
  const Value to = known.split ? min(from + share, depth) : depth;
  const Value product = kernel::portable_matmul(
      k, tiles, sums, kernel::elements_of(k, a.view, tiles.rows, tiles.depth, m, depth),
      kernel::elements_of(k, b.view, tiles.depth, tiles.columns, depth, n), from, to, row, column);
  const auto finish = [&](Value sum) {
    const Value rows = k.iota(0, tiles.rows) + row, columns = k.iota(1, tiles.columns) + column;
    TilePlace place{
        {}, kernel::within(k, tiles.rows, rows, m), kernel::within(k, tiles.columns, columns, n)};
    for (const Value& axis : batch) place.position.push_back(k.cast(axis, known.index));
    place.position.push_back(k.cast(rows, known.index));
    place.position.push_back(k.cast(columns, known.index));
    run_epilogue(k, known.after, views, sum, place);
  };
  if (known.split) {
    const auto slot = [&](Value number) { return tile * count + number; };
    add_up(k, splits, {tile, split, count, product, slot}, finish);
  } else {
    finish(product);
  }
  return k.finish();
}

// A matrix operand as the kernel reads it.
struct Matrix {
  Source source;
  int64_t pitch = 0;  // from row to row, or from column to column
  bool rows = true;   // are consecutive
};

bool any_negative(const Strides& strides) {
  return std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; });
}

Matrix matrix_of(Device& device, ScratchSequence& sequence, Source source) {
  const size_t rank = source.strides.size();
  const int64_t rows = source.shape[int(rank) - 2], columns = source.shape[int(rank) - 1];
  const auto consecutive = [&] {
    return source.strides[rank - 1] == 1 || source.strides[rank - 2] == 1 || rows == 1 ||
           columns == 1;
  };
  if (any_negative(source.strides) || !consecutive()) source = copied(device, sequence, source);
  Matrix matrix{source, 0, true};
  const int64_t down = source.strides[rank - 2], across = source.strides[rank - 1];
  // Of an axis with one element the stride says nothing.
  matrix.rows = across == 1 || (columns == 1 && down != 1);
  matrix.pitch = matrix.rows ? down : across;
  return matrix;
}

struct Product {
  Matrix a, b;
  int64_t m = 0, n = 0, k = 0;
  std::vector<int64_t> batch;    // extents
  Strides a_strides, b_strides;  // over the batch
  Epilogue after;                // over the batch, m and n
  std::vector<int64_t> extents() const {
    std::vector<int64_t> all = batch;
    all.insert(all.end(), {m, n});
    return all;
  }
  int64_t batches() const {
    int64_t count = 1;
    for (const int64_t extent : batch) count *= extent;
    return count;
  }
};

// One matrix for the whole batch: its products are one product of more rows.
void join_batch(Product& p) {
  if (p.batch.size() != 1 || p.b_strides[0] != 0) return;
  const bool single = p.m == 1;  // the stride over rows says nothing then
  const int64_t down = p.a.rows ? p.a.pitch : 1;
  if (single ? !p.a.rows : p.a_strides[0] != p.m * down) return;
  for (const Epilogue::Operand& operand : p.after.operands) {
    if (!single && operand.strides[0] != p.m * operand.strides[1]) return;
  }
  if (single) p.a.pitch = p.a_strides[0];
  for (Epilogue::Operand& operand : p.after.operands) {
    operand.strides.erase(operand.strides.begin() + (single ? 1 : 0));
  }
  p.m *= p.batch[0];
  p.batch.clear();
  p.a_strides.clear(), p.b_strides.clear();
}

Product product_of(Matrix a, Matrix b, Epilogue after) {
  const Shape &left = a.source.shape, &right = b.source.shape;
  const int rank = left.rank();
  const auto leading = [&](const Strides& strides) {
    return Strides(strides.begin(), strides.end() - 2);
  };
  Shape domain;
  for (int axis = 0; axis < rank - 2; axis++) domain.push_back(left[axis]);
  std::vector<Strides> strides{leading(a.source.strides), leading(b.source.strides)};
  for (const Epilogue::Operand& operand : after.operands) {
    strides.push_back(leading(operand.strides));
  }
  const Nest nest = collapse(domain, std::move(strides));
  Product product{std::move(a), std::move(b),    left[rank - 2],  right[rank - 1], left[rank - 1],
                  nest.extents, nest.strides[0], nest.strides[1], std::move(after)};
  for (size_t i = 0; i < product.after.operands.size(); i++) {
    Strides& own = product.after.operands[i].strides;
    const Strides lines(own.end() - 2, own.end());
    own = nest.strides[i + 2];
    own.insert(own.end(), lines.begin(), lines.end());
  }
  join_batch(product);
  for (const int64_t extent : {product.m, product.n, product.k}) {
    if (extent <= INT32_MAX) continue;
    fail(ErrorKind::shape,
         "matmul: a matrix with {} rows or columns; {} are the most here, split it", extent,
         INT32_MAX);
  }
  return product;
}

int64_t tiles_of(const Product& p, const kernel::PortableTiles& tiles) {
  return p.batches() * ceiling(p.m, tiles.rows) * ceiling(p.n, tiles.columns);
}

// The largest tiles that still keep every processor busy, else the smallest.  Those of 8-byte
// numbers must be small for registers and shared memory to hold them.
kernel::PortableTiles tiles_for(const Product& p, DType dtype, int processors) {
  if (size_of(kernel::compute_dtype(dtype)) == 8) {
    return {.rows = 32, .columns = 64, .depth = 32, .slices = 2};
  }
  const kernel::PortableTiles large{.rows = 128, .columns = 128, .depth = 16, .slices = 1};
  const kernel::PortableTiles middle{.rows = 64, .columns = 64, .depth = 32, .slices = 4};
  for (const auto& tiles : {large, middle}) {
    if (p.n >= tiles.columns && tiles_of(p, tiles) >= processors) return tiles;
  }
  return {.rows = 32, .columns = p.n <= 32 ? 32 : 64, .depth = 32, .slices = 8};
}

// How much of k a block sums up: less than all where there are few tiles and many processors.
int64_t share_for(const Product& p, const kernel::PortableTiles& tiles, int processors) {
  constexpr int kLeastTurns = 2, kMostSplits = 32;
  const int64_t splits = std::min({processors / std::max<int64_t>(tiles_of(p, tiles), 1),
                                   p.k / (tiles.depth * kLeastTurns), int64_t(kMostSplits)});
  if (splits < 2) return p.k;
  return ceiling(ceiling(p.k, splits), tiles.depth) * tiles.depth;
}

int divisor(int64_t extent, int tile) { return common_power({extent}, tile); }

MatmulClass class_of(const Product& p, DType dtype, const runtime::Capabilities& device,
                     int lanes) {
  MatmulClass known;
  known.dtype = dtype;
  known.tiles = tiles_for(p, dtype, device.processors);
  known.a_rows = p.a.rows, known.b_rows = p.b.rows;
  known.batch_rank = int(p.batch.size());
  known.split = share_for(p, known.tiles, device.processors) < p.k;
  const auto aligned = [&](int64_t pitch, Strides strides) {
    strides.push_back(pitch);
    return lanes == kVector && common_power(strides, kVector) == kVector;
  };
  known.a_vectors = aligned(p.a.pitch, p.a_strides);
  known.b_vectors = aligned(p.b.pitch, p.b_strides);
  known.after = p.after.described(p.extents(), lanes == kVector ? kVector : 1);
  // Either no tile has an edge, or what matters is whether vectors have one.
  const bool whole =
      p.m % known.tiles.rows == 0 && p.n % known.tiles.columns == 0 && p.k % known.tiles.depth == 0;
  known.m_divisor = whole ? known.tiles.rows : known.a_rows ? 1 : divisor(p.m, kVector);
  known.n_divisor = whole ? known.tiles.columns : divisor(p.n, kVector);
  known.k_divisor = whole                           ? known.tiles.depth
                    : known.a_rows || !known.b_rows ? divisor(p.k, kVector)
                                                    : 1;
  const auto span = [&](const Matrix& matrix) {
    const Shape& shape = matrix.source.shape;
    return span_of({shape.begin(), shape.end()}, matrix.source.strides);
  };
  std::vector<Span> spans = p.after.spans(p.extents());
  spans.insert(spans.end(), {span(p.a), span(p.b)});
  known.index = index_dtype(p.batches() * p.m * p.n, spans);
  return known;
}

std::unique_ptr<PreparedGroup> prepare_product(Device& device, const Product& p, DType dtype,
                                               int lanes) {
  const MatmulClass known = class_of(p, dtype, device.capabilities(), lanes);
  Arguments arguments;
  const auto pass_matrix = [&](const Matrix& matrix, const Strides& strides) {
    const Shape& shape = matrix.source.shape;
    const Span span = span_of({shape.begin(), shape.end()}, matrix.source.strides);
    arguments.buffer(matrix.source.place, dtype, 0, span.count);
    arguments.number(known.index, matrix.pitch);
    for (const int64_t stride : strides) arguments.number(known.index, stride);
  };
  pass_matrix(p.a, p.a_strides);
  pass_matrix(p.b, p.b_strides);
  for (const int64_t extent : {p.m, p.n, p.k}) arguments.number(DType::i32, extent);
  std::vector<int64_t> extents = p.batch;
  extents.push_back(ceiling(p.m, known.tiles.rows));
  extents.push_back(ceiling(p.n, known.tiles.columns));
  pass_extents(arguments, extents, DType::i32);
  p.after.pass(arguments, known.after, p.extents(), known.index);
  int64_t blocks = tiles_of(p, known.tiles);
  auto list = std::make_unique<LaunchList>(device);
  if (known.split) {
    const int64_t share = share_for(p, known.tiles, device.capabilities().processors);
    const int64_t splits = ceiling(p.k, share);
    arguments.number(DType::i32, splits);
    pass_splits(arguments, *list, kernel::compute_dtype(dtype), blocks, blocks * splits,
                int64_t(known.tiles.rows) * known.tiles.columns);
    arguments.number(DType::i32, share);
    blocks *= splits;
  }
  list->add(Launch(device, {known.key(), [known] { return build(known); }}, blocks_for(blocks, 1),
                   std::move(arguments)));
  return list;
}

// The product for hopper.h.
MatrixProduct hopper_product(const Product& p, DType dtype) {
  const auto operand = [](const Matrix& matrix, const Strides& batch) -> MatrixOperand {
    const Shape& shape = matrix.source.shape;
    return {matrix.source.place,
            shape[shape.rank() - 2],
            shape[shape.rank() - 1],
            matrix.rows ? matrix.pitch : 1,
            matrix.rows ? 1 : matrix.pitch,
            batch};
  };
  MatrixProduct product{dtype, operand(p.a, p.a_strides), operand(p.b, p.b_strides), p.batch,
                        p.after};
  product.a.rows = p.m;
  return product;
}

}  // namespace

std::unique_ptr<PreparedGroup> prepare_matmul(Device& device, const Group& group) {
  const Type& result = group.graph.steps[size_t(group.anchor)].type;
  const DType dtype = result.dtype;
  auto sequence = std::make_unique<ScratchSequence>(device, group);
  if (result.shape.element_count() == 0) return sequence;
  const Product p = product_of(matrix_of(device, *sequence, source_of(device, *sequence, group, 0)),
                               matrix_of(device, *sequence, source_of(device, *sequence, group, 1)),
                               Epilogue(group));
  const MatrixProduct whole = hopper_product(p, dtype);
  const bool hopper = hopper_takes(device, whole);
  const MatmulClass best = class_of(p, dtype, device.capabilities(), kVector);
  std::vector<VectorGroup::Operand> aligned = p.after.aligned(best.after);
  if (hopper || best.a_vectors) aligned.push_back({p.a.source.place, dtype, 0});
  if (hopper || best.b_vectors) aligned.push_back({p.b.source.place, dtype, 0});
  sequence->add(std::make_unique<VectorGroup>(
      hopper ? kHopperVector : kVector, std::move(aligned),
      [&device, p, dtype](int lanes) -> std::unique_ptr<PreparedGroup> {
        if (lanes <= kVector) return prepare_product(device, p, dtype, lanes);
        auto list = std::make_unique<LaunchList>(device);
        add_hopper(device, *list, hopper_product(p, dtype));
        return list;
      }));
  return sequence;
}

}  // namespace fornax::cube
