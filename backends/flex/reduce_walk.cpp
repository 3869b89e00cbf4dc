#include "backends/flex/reduce_walk.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr int64_t kBlock = 1024;         // elements folded in one go, before pairs of results
constexpr int64_t kPiece = 64 * kBlock;  // elements of a row that one task folds
constexpr int64_t kRows = 1024;          // rows that one task folds
constexpr int64_t kColumns = 512;        // of wide rows, what one task folds at least
constexpr int64_t kMostColumns = 2048;   // and at most: eight rows of them fit the L2 cache
constexpr double kChunk = 20000;         // nanoseconds of work that a thread takes at a time

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t grain_of(double cost_of_task) { return int64_t(kChunk / std::max(cost_of_task, 1.0)) + 1; }

// Combines rows pair by pair, as a binary counter adds: the error of a sum grows with the logarithm
// of the count.
template <class T>
class Tree {
 public:
  Tree(const Folds<T>& folds, int64_t width) : folds_(folds), width_(width), next_(size_t(width)) {}

  // The caller writes the next row here, then calls push().
  T* next() { return next_.data(); }
  void push() {
    size_t level = 0;
    for (uint64_t n = count_; n & 1; n >>= 1, level++) join(levels_[level]);
    if (level == levels_.size()) levels_.emplace_back(size_t(width_));
    std::swap(levels_[level], next_);
    count_++;
  }
  // Requires: something was pushed.
  void finish(T* result) {
    bool first = true;
    for (size_t level = 0; level < levels_.size(); level++) {
      if (!(count_ >> level & 1)) continue;
      if (first) {
        std::copy_n(levels_[level].data(), width_, next_.data());
      } else {
        join(levels_[level]);
      }
      first = false;
    }
    std::copy_n(next_.data(), width_, result);
  }

 private:
  void join(const std::vector<T>& earlier) {
    const T* rows[] = {earlier.data(), next_.data()};
    folds_.rows(rows, 2, width_, next_.data());
  }

  Folds<T> folds_;
  int64_t width_;
  uint64_t count_ = 0;
  std::vector<T> next_;
  std::vector<std::vector<T>> levels_;
};

// The same of single numbers, which need no memory.
template <class T>
class NumberTree {
 public:
  explicit NumberTree(const Folds<T>& folds) : folds_(folds) {}
  void push(T number) {
    size_t level = 0;
    for (uint64_t n = count_; n & 1; n >>= 1, level++) number = join(levels_[level], number);
    levels_[level] = number;
    count_++;
  }
  // Requires: something was pushed.
  T finish() const {
    int level = std::countr_zero(count_);
    T all = levels_[level];
    while (++level < 64) {
      if (count_ >> level & 1) all = join(levels_[level], all);
    }
    return all;
  }

 private:
  T join(T earlier, T later) const {
    const T* rows[] = {&earlier, &later};
    folds_.rows(rows, 2, 1, &later);
    return later;
  }

  const Folds<T>& folds_;
  uint64_t count_ = 0;
  T levels_[64];
};

// All of x[0, count).
template <class T>
T fold_blocks(const Folds<T>& folds, const T* x, int64_t count) {
  if (count <= kBlock) return folds.block(x, count);
  NumberTree<T> tree(folds);
  for (int64_t i = 0; i < count; i += kBlock) {
    tree.push(folds.block(x + i, std::min(kBlock, count - i)));
  }
  return tree.finish();
}

// Folds [begin, end) of one row.
template <class T>
T fold_piece(const Elements<T>& elements, const Folds<T>& folds, int64_t begin, int64_t end,
             T* buffer) {
  if (end - begin <= kBlock) return folds.block(elements.get(begin, end, buffer), end - begin);
  NumberTree<T> tree(folds);
  for (int64_t tile = begin; tile < end; tile += kBufferElements) {
    const int64_t tile_end = std::min(end, tile + kBufferElements);
    const T* x = elements.get(tile, tile_end, buffer);
    for (int64_t i = tile; i < tile_end; i += kBlock) {
      tree.push(folds.block(x + (i - tile), std::min(kBlock, tile_end - i)));
    }
  }
  return tree.finish();
}

// Rows that are short and follow each other in memory, several per tile.
template <class T>
void fold_short_rows(const Walk& walk, const Elements<T>& elements, const Folds<T>& folds,
                     int64_t begin, int64_t end, T* buffer, T* result) {
  const int64_t per_tile = kBufferElements / walk.length;
  for (int64_t row = begin; row < end; row += per_tile) {
    const int64_t rows = std::min(per_tile, end - row);
    const T* x = elements.get(row * walk.length, (row + rows) * walk.length, buffer);
    if (walk.length <= kShortRow) {
      folds.short_rows(x, rows, walk.length, result + row);
      continue;
    }
    for (int64_t i = 0; i < rows; i++) {
      result[row + i] = folds.block(x + i * walk.length, walk.length);
    }
  }
}

template <class T>
void fold_inner(const Walk& walk, const Elements<T>& elements, const Folds<T>& folds, double cost,
                T* result) {
  const bool is_short = walk.others == 1 && walk.length <= kBlock;
  const int64_t pieces = divide_up(walk.length, kPiece), parts = walk.others * pieces;
  std::vector<T> partial(parts > 1 ? size_t(walk.kept * parts) : 0);
  T* to = parts > 1 ? partial.data() : result;
  const double task_cost = cost * double(std::min(walk.length, kPiece));
  parallel(walk.kept * parts, grain_of(task_cost), [&](int64_t begin, int64_t end) {
    const auto buffer = std::make_unique_for_overwrite<T[]>(size_t(kBufferElements));
    if (is_short) {
      fold_short_rows(walk, elements, folds, begin, end, buffer.get(), to);
      return;
    }
    for (int64_t i = begin; i < end; i++) {
      const int64_t start = walk.start(i / parts, i % parts / pieces);
      const int64_t from = i % pieces * kPiece, until = std::min(walk.length, from + kPiece);
      to[i] = fold_piece(elements, folds, start + from, start + until, buffer.get());
    }
  });
  if (parts == 1) return;
  parallel(walk.kept, grain_of(0.1 * double(parts) + 100), [&](int64_t begin, int64_t end) {
    for (int64_t keep = begin; keep < end; keep++) {
      result[keep] = fold_blocks(folds, partial.data() + keep * parts, parts);
    }
  });
}

// Folds `count` rows of `width` columns that start at elements start, start + stride, ...  The
// buffer has room for kRowsAtOnce of them and for kBufferElements.
template <class T>
void fold_rows(const Elements<T>& elements, const Folds<T>& folds, int64_t start, int64_t stride,
               int64_t count, int64_t width, T* buffer, T* result) {
  Tree<T> tree(folds, width);
  // Whole rows side by side are computed together.
  const bool dense = width == stride;
  const int64_t per_tile =
      dense ? std::max<int64_t>(kBufferElements / width / kRowsAtOnce, 1) * kRowsAtOnce
            : kRowsAtOnce;
  for (int64_t tile = 0; tile < count; tile += per_tile) {
    const int64_t tile_end = std::min(count, tile + per_tile);
    const T* x =
        dense ? elements.get(start + tile * stride, start + tile_end * stride, buffer) : nullptr;
    for (int64_t r = tile; r < tile_end; r += kRowsAtOnce) {
      const T* rows[kRowsAtOnce];
      const int n = int(std::min<int64_t>(kRowsAtOnce, tile_end - r));
      for (int k = 0; k < n; k++) {
        const int64_t at = start + (r + k) * stride;
        rows[k] =
            dense ? x + (r + k - tile) * stride : elements.get(at, at + width, buffer + k * width);
      }
      folds.rows(rows, n, width, tree.next());
      tree.push();
    }
  }
  tree.finish(result);
}

// Columns of a strip, of which there are `bands` at any width.  Wide strips are read faster, as
// memory is read ahead along a row; narrow ones leave work to every thread.  Results do not depend
// on it: each column is folded by itself.
int64_t strip_columns(int64_t width, int64_t bands) {
  const int64_t strips = divide_up(2 * int64_t(thread_count()), std::max<int64_t>(bands, 1));
  const int64_t even = divide_up(divide_up(width, strips), kColumns) * kColumns;
  return std::clamp(even, kColumns, kMostColumns);
}

// Rows in memory one after the other.
template <class T>
class Rows : public Elements<T> {
 public:
  explicit Rows(const T* data) : data_(data) {}
  const T* get(int64_t begin, int64_t, T*) const override { return data_ + begin; }

 private:
  const T* data_;
};

template <class T>
void fold_outer(const Walk& walk, const Elements<T>& elements, const Folds<T>& folds, double cost,
                T* result) {
  const int64_t pieces = divide_up(walk.length, kRows), parts = walk.others * pieces;
  const int64_t columns = strip_columns(walk.width, walk.kept * parts);
  const int64_t strips = divide_up(walk.width, columns), outputs = walk.outputs();
  std::vector<T> partial(parts > 1 ? size_t(outputs * parts) : 0);
  T* to = parts > 1 ? partial.data() : result;
  const double task_cost =
      cost * double(std::min(walk.length, kRows) * std::min(walk.width, columns));
  const int64_t elements_at_once = std::max(kBufferElements, kRowsAtOnce * columns);
  parallel(walk.kept * parts * strips, grain_of(task_cost), [&](int64_t begin, int64_t end) {
    const auto buffer = std::make_unique_for_overwrite<T[]>(size_t(elements_at_once));
    for (int64_t i = begin; i < end; i++) {
      const int64_t column = i % strips * columns, width = std::min(columns, walk.width - column);
      const int64_t part = i / strips % parts, keep = i / strips / parts;
      const int64_t first = part % pieces * kRows, rows = std::min(kRows, walk.length - first);
      fold_rows(elements, folds, walk.start(keep, part / pieces) + first * walk.width + column,
                walk.width, rows, width, buffer.get(),
                to + part * outputs + keep * walk.width + column);
    }
  });
  if (parts == 1) return;
  const Rows<T> rows(partial.data());
  parallel(divide_up(outputs, kColumns), grain_of(double(parts * kColumns)),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; i++) {
               const int64_t column = i * kColumns, width = std::min(kColumns, outputs - column);
               fold_rows<T>(rows, folds, column, outputs, parts, width, nullptr, result + column);
             }
           });
}

template <class T>
class RowFolderOf : public RowFolder {
 public:
  RowFolderOf(const Walk& walk, Fold fold)
      : folds_(folds<T>(fold)),
        length_(walk.length),
        pieces_(divide_up(walk.length, kPiece)),
        is_short_(walk.others == 1 && walk.length <= kShortRow),
        partial_(size_t(walk.others * pieces_)) {}

  void line(int64_t other, const void* x) override {
    const T* data = static_cast<const T*>(x);
    T* to = partial_.data() + other * pieces_;
    if (is_short_) return folds_.short_rows(data, 1, length_, to);
    for (int64_t i = 0; i < length_; i += kPiece) {
      *to++ = fold_blocks(folds_, data + i, std::min(kPiece, length_ - i));
    }
  }
  void finish(void* results, int64_t row) override {
    const auto parts = int64_t(partial_.size());
    static_cast<T*>(results)[row] =
        parts == 1 ? partial_[0] : fold_blocks(folds_, partial_.data(), parts);
  }
  void rows(const void* x, int64_t rows, void* results) override {
    const T* data = static_cast<const T*>(x);
    T* to = static_cast<T*>(results);
    if (is_short_) return folds_.short_rows(data, rows, length_, to);
    for (int64_t i = 0; i < rows; i++) {
      line(0, data + i * length_);
      finish(to, i);
    }
  }

 private:
  const Folds<T> folds_;
  const int64_t length_, pieces_;
  const bool is_short_;
  std::vector<T> partial_;
};

template <class T>
bool is_nan(T x) {
  return x != x;
}
// Whether x takes the place of the best so far.
template <class T>
bool beats(T x, T best, bool largest) {
  if (is_nan(best)) return false;
  return is_nan(x) || (largest ? x > best : x < best);
}

// The best of some elements, and where it lies along the reduced axis.
template <class T>
struct Best {
  T value{};
  int64_t position = -1;
};

// Some rows and columns of one outer kept index.
struct Patch {
  int64_t keep, row, rows, column, columns;
};

// Where rows follow each other in memory: width is 1.
template <class T>
Best<T> best_in_row(const Walk& walk, const Elements<T>& elements, const Folds<T>& folds,
                    bool largest, const Patch& patch, T* buffer) {
  const int64_t start = walk.start(patch.keep, 0), end = patch.row + patch.rows;
  Best<T> best;
  for (int64_t tile = patch.row; tile < end; tile += kBlock) {
    const int64_t count = std::min(kBlock, end - tile);
    const T* x = elements.get(start + tile, start + tile + count, buffer);
    const T candidate = folds.block(x, count);
    if (best.position >= 0 && !beats(candidate, best.value, largest)) continue;
    const T* found = std::find_if(
        x, x + count, [&](T t) { return is_nan(candidate) ? is_nan(t) : t == candidate; });
    best = {candidate, tile + (found - x)};
  }
  return best;
}

template <class T>
void best_in_columns(const Walk& walk, const Elements<T>& elements, bool largest,
                     const Patch& patch, T* buffer, Best<T>* result) {
  const int64_t start = walk.start(patch.keep, 0) + patch.column;
  for (int64_t row = patch.row; row < patch.row + patch.rows; row++) {
    const int64_t at = start + row * walk.width;
    const T* x = elements.get(at, at + patch.columns, buffer);
    for (int64_t k = 0; k < patch.columns; k++) {
      if (row == patch.row || beats(x[k], result[k].value, largest)) result[k] = {x[k], row};
    }
  }
}

// Of each output the first best of its `parts` partial ones, which lie `outputs` apart.
template <class T>
void first_best(const std::vector<Best<T>>& partial, int64_t parts, int64_t outputs, bool largest,
                int64_t* result) {
  for (int64_t output = 0; output < outputs; output++) {
    Best<T> best = partial[size_t(output)];
    for (int64_t part = 1; part < parts; part++) {
      const Best<T>& next = partial[size_t(part * outputs + output)];
      if (beats(next.value, best.value, largest)) best = next;
    }
    result[output] = best.position;
  }
}

}  // namespace

DType computed_in(Op op, DType dtype) {
  if (is_question(op)) return DType::i64;
  if (is_floating(dtype)) return dtype == DType::f64 ? DType::f64 : DType::f32;
  return is_signed(dtype) || is_boolean(dtype) ? DType::i64 : DType::u64;
}

Fold fold_of(Op op) {
  switch (op) {
    case Op::sum:
      return Fold::sum;
    case Op::prod:
      return Fold::prod;
    case Op::max:
    case Op::any:
    case Op::argmax:
      return Fold::max;
    default:
      return Fold::min;
  }
}

Walk::Walk(const Shape& domain, const Attributes& axes) {
  int rank = 0;
  int64_t stride = 1;
  for (int axis = domain.rank() - 1; axis >= 0; axis--) {
    if (domain[axis] == 0) empty = true;
    if (domain[axis] == 1) continue;
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (rank == 0 || reduced_[rank - 1] != reduced) {
      sizes_[rank] = 1, strides_[rank] = stride, reduced_[rank] = reduced;
      rank++;
    }
    sizes_[rank - 1] *= domain[axis];
    stride *= domain[axis];
  }
  // Innermost first here: [width] [length] outer ...
  int used = 0;
  if (used < rank && !reduced_[used]) width = sizes_[used++];
  if (used < rank) length = sizes_[used++];
  outer_ = rank - used;
  for (int i = 0; i < outer_; i++) {
    sizes_[i] = sizes_[used + i], strides_[i] = strides_[used + i],
    reduced_[i] = reduced_[used + i];
    (reduced_[i] ? others : kept) *= sizes_[i];
  }
}

int64_t Walk::start(int64_t keep, int64_t other) const {
  int64_t offset = 0;
  for (int i = 0; i < outer_; i++) {
    int64_t& index = reduced_[i] ? other : keep;
    offset += index % sizes_[i] * strides_[i];
    index /= sizes_[i];
  }
  return offset;
}

template <class T>
void reduce_fold(const Walk& walk, const Elements<T>& elements, Fold fold, double cost, T* result) {
  const Folds<T> loops = folds<T>(fold);
  if (walk.empty) {
    std::fill_n(result, walk.outputs(), loops.block(nullptr, 0));
  } else if (walk.width == 1) {
    fold_inner(walk, elements, loops, cost, result);
  } else {
    fold_outer(walk, elements, loops, cost, result);
  }
}

template <class T>
void reduce_position(const Walk& walk, const Elements<T>& elements, Fold fold, double cost,
                     int64_t* result) {
  if (walk.empty) return;
  const Folds<T> loops = folds<T>(fold);
  const bool largest = fold == Fold::max;
  const int64_t piece = walk.width == 1 ? kPiece : kRows, parts = divide_up(walk.length, piece);
  const int64_t strips = divide_up(walk.width, kColumns), outputs = walk.outputs();
  std::vector<Best<T>> partial(parts > 1 ? size_t(outputs * parts) : 0);
  const double task_cost =
      cost * double(std::min(walk.length, piece) * std::min(walk.width, kColumns));
  parallel(walk.kept * parts * strips, grain_of(task_cost), [&](int64_t begin, int64_t end) {
    const auto buffer = std::make_unique_for_overwrite<T[]>(size_t(kBufferElements));
    std::vector<Best<T>> whole(parts > 1 ? 0 : size_t(std::min(walk.width, kColumns)));
    for (int64_t i = begin; i < end; i++) {
      const int64_t column = i % strips * kColumns, part = i / strips % parts, row = part * piece;
      const Patch patch{i / strips / parts, row, std::min(piece, walk.length - row), column,
                        std::min(kColumns, walk.width - column)};
      const int64_t output = patch.keep * walk.width + column;
      Best<T>* best = parts > 1 ? partial.data() + part * outputs + output : whole.data();
      if (walk.width == 1) {
        *best = best_in_row(walk, elements, loops, largest, patch, buffer.get());
      } else {
        best_in_columns(walk, elements, largest, patch, buffer.get(), best);
      }
      for (int64_t k = 0; parts == 1 && k < patch.columns; k++) {
        result[output + k] = best[k].position;
      }
    }
  });
  if (parts > 1) first_best(partial, parts, outputs, largest, result);
}

std::unique_ptr<RowFolder> make_row_folder(DType computed, const Walk& walk, Fold fold) {
  switch (computed) {
    case DType::f32:
      return std::make_unique<RowFolderOf<float>>(walk, fold);
    case DType::f64:
      return std::make_unique<RowFolderOf<double>>(walk, fold);
    case DType::i64:
      return std::make_unique<RowFolderOf<int64_t>>(walk, fold);
    case DType::u64:
      return std::make_unique<RowFolderOf<uint64_t>>(walk, fold);
    default:
      fail(ErrorKind::internal, "flex: reductions do not compute in {}", name_of(computed));
  }
}

#define FORNAX_FOR(T)                                                              \
  template void reduce_fold<T>(const Walk&, const Elements<T>&, Fold, double, T*); \
  template void reduce_position<T>(const Walk&, const Elements<T>&, Fold, double, int64_t*);
FORNAX_FOR(float)
FORNAX_FOR(double)
FORNAX_FOR(int64_t)
FORNAX_FOR(uint64_t)
#undef FORNAX_FOR

}  // namespace fornax::flex
