#include "backends/flex/reduce_walk.h"

#include <algorithm>
#include <vector>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

constexpr int64_t kColumns = 512;       // of wide rows, what one task folds at least
constexpr int64_t kMostColumns = 2048;  // and at most: eight rows of them fit the L2 cache
constexpr double kChunk = 20000;        // nanoseconds of work that a thread takes at a time

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t grain_of(double cost_of_task) { return int64_t(kChunk / std::max(cost_of_task, 1.0)) + 1; }

// The values of one thread, and what it has folded of them.
class Worker {
 public:
  // Buffers have room for `room` elements.
  Worker(std::span<const Folding> foldings, std::unique_ptr<Values> values, int64_t room)
      : foldings_(foldings), values_(std::move(values)), memory_(size_t(room) * bytes(foldings)) {
    char* free = memory_.as<char>();
    for (const Folding& folding : foldings) {
      buffers_.push_back(free);
      free += size_t(room) * size_of(folding.computed);
    }
    data_.resize(foldings.size());
    at_.resize(foldings.size());
    into_.resize(foldings.size());
  }

  // Results of what is folded next are `index` elements behind these.
  void give(std::span<char* const> to, int64_t index) {
    for (size_t k = 0; k < foldings_.size(); k++) at_[k] = to[k] + index * size(k);
  }
  // Elements [begin, end) of a row.
  void piece(int64_t begin, int64_t end);
  // Rows [begin, end), which are short and follow each other in memory.
  void short_rows(int64_t begin, int64_t end, int64_t length);
  // `count` rows of `width` columns that start at elements start, start + stride, ...
  void strip(int64_t start, int64_t stride, int64_t count, int64_t width);

 private:
  static size_t bytes(std::span<const Folding> foldings) {
    size_t sum = 0;
    for (const Folding& folding : foldings) sum += size_of(folding.computed);
    return sum;
  }
  int64_t size(size_t k) const { return int64_t(size_of(foldings_[k].computed)); }
  void get(int64_t begin, int64_t end) { values_->get(begin, end, buffers_.data(), data_.data()); }
  void set_width(int64_t width);
  void finish() {
    for (size_t k = 0; k < folders_.size(); k++) folders_[k]->finish(at_[k]);
  }
  void apart_rows(int64_t start, int64_t stride, int n, int64_t width);
  void folded_rows(int64_t start, int64_t stride, int n, int64_t width);

  const std::span<const Folding> foldings_;
  const std::unique_ptr<Values> values_;
  const Workspace memory_;
  std::vector<char*> buffers_, at_, into_;
  std::vector<const char*> data_;
  int64_t width_ = 0;  // of the folders
  std::vector<std::unique_ptr<Folder>> folders_;
};

void Worker::set_width(int64_t width) {
  if (width == width_) return;
  width_ = width;
  folders_.clear();
  for (const Folding& folding : foldings_) {
    folders_.push_back(make_folder(folding.computed, folding.fold, width));
  }
}

void Worker::piece(int64_t begin, int64_t end) {
  set_width(1);
  for (; begin < end; begin += kBufferElements) {
    const int64_t count = std::min(kBufferElements, end - begin);
    get(begin, begin + count);
    for (size_t k = 0; k < folders_.size(); k++) folders_[k]->stretch(data_[k], count);
  }
  finish();
}

void Worker::short_rows(int64_t begin, int64_t end, int64_t length) {
  set_width(1);
  const int64_t per_tile = kBufferElements / length;
  for (int64_t row = begin; row < end; row += per_tile) {
    const int64_t rows = std::min(per_tile, end - row);
    get(row * length, (row + rows) * length);
    for (size_t k = 0; k < folders_.size(); k++) {
      folders_[k]->short_rows(data_[k], rows, length, at_[k] + (row - begin) * size(k));
    }
  }
}

// Rows that do not follow each other are computed one by one, to buffers side by side.
void Worker::apart_rows(int64_t start, int64_t stride, int n, int64_t width) {
  std::vector<char*> buffers = buffers_;
  std::vector<const char*> rows(foldings_.size() * kRowsAtOnce);
  for (int r = 0; r < n; r++, start += stride) {
    values_->get(start, start + width, buffers.data(), data_.data());
    for (size_t k = 0; k < foldings_.size(); k++) {
      rows[k * kRowsAtOnce + size_t(r)] = data_[k];
      buffers[k] += width * size(k);
    }
  }
  for (size_t k = 0; k < folders_.size(); k++) folders_[k]->rows(&rows[k * kRowsAtOnce], n);
}

// Rows whose values are folded as they are computed.
void Worker::folded_rows(int64_t start, int64_t stride, int n, int64_t width) {
  for (size_t k = 0; k < folders_.size(); k++) into_[k] = folders_[k]->next_rows();
  for (int r = 0; r < n; r++) {
    const int64_t begin = start + r * stride;
    values_->fold(begin, begin + width, into_.data());
  }
  for (size_t k = 0; k < folders_.size(); k++) {
    if (!values_->in_memory(k, start)) {
      folders_[k]->push_rows();
      continue;
    }
    const char* rows[kRowsAtOnce];
    for (int r = 0; r < n; r++) rows[r] = values_->in_memory(k, start + r * stride);
    folders_[k]->rows(rows, n);
  }
}

void Worker::strip(int64_t start, int64_t stride, int64_t count, int64_t width) {
  set_width(width);
  const auto rows_from = [&](int64_t row) {
    return int(std::min<int64_t>(kRowsAtOnce, count - row));
  };
  if (values_->folds_columns() || width != stride) {
    for (int64_t row = 0; row < count; row += kRowsAtOnce) {
      const int64_t first = start + row * stride;
      if (values_->folds_columns()) {
        folded_rows(first, stride, rows_from(row), width);
      } else {
        apart_rows(first, stride, rows_from(row), width);
      }
    }
    return finish();
  }
  // Whole rows side by side are computed together.
  const int64_t per_tile =
      std::max<int64_t>(kBufferElements / width / kRowsAtOnce, 1) * kRowsAtOnce;
  for (int64_t tile = 0; tile < count; tile += per_tile) {
    const int64_t tile_end = std::min(count, tile + per_tile);
    get(start + tile * width, start + tile_end * width);
    for (int64_t row = tile; row < tile_end; row += kRowsAtOnce) {
      for (size_t k = 0; k < folders_.size(); k++) {
        const char* rows[kRowsAtOnce];
        for (int r = 0; r < kRowsAtOnce; r++) {
          rows[r] = data_[k] + (row - tile + r) * width * size(k);
        }
        folders_[k]->rows(rows, rows_from(row));
      }
    }
  }
  finish();
}

void fold_inner(const Walk& walk, std::span<const Folding> foldings, double cost,
                FunctionRef<std::unique_ptr<Values>()> values) {
  const bool is_short = walk.others == 1 && walk.length <= kBlock;
  const int64_t pieces = divide_up(walk.length, kPiece), parts = walk.others * pieces;
  const Parts partial(foldings, parts, walk.kept);
  const double task_cost = cost * double(std::min(walk.length, kPiece));
  parallel(walk.kept * parts, grain_of(task_cost), [&](int64_t begin, int64_t end) {
    Worker worker(foldings, values(), kBufferElements);
    if (is_short) {
      worker.give(partial.to(), begin);
      worker.short_rows(begin, end, walk.length);
      return;
    }
    for (int64_t i = begin; i < end; i++) {
      const int64_t start = walk.start(i / parts, i % parts / pieces);
      const int64_t from = i % pieces * kPiece, until = std::min(walk.length, from + kPiece);
      worker.give(partial.to(), i);
      worker.piece(start + from, start + until);
    }
  });
  if (parts == 1) return;
  for (size_t k = 0; k < foldings.size(); k++) {
    const auto size = int64_t(size_of(foldings[k].computed));
    parallel(walk.kept, grain_of(0.1 * double(parts) + 100), [&](int64_t begin, int64_t end) {
      const auto folder = make_folder(foldings[k].computed, foldings[k].fold, 1);
      for (int64_t keep = begin; keep < end; keep++) {
        folder->stretch(partial.to()[k] + keep * parts * size, parts);
        folder->finish(foldings[k].result + keep * size);
      }
    });
  }
}

// Columns of a strip, of which there are `bands` at any width.  Wide strips are read faster, as
// memory is read ahead along a row; narrow ones leave work to every thread.  Results do not depend
// on it: each column is folded by itself.
int64_t strip_columns(int64_t width, int64_t bands) {
  const int64_t strips = divide_up(2 * int64_t(thread_count()), std::max<int64_t>(bands, 1));
  const int64_t even = divide_up(divide_up(width, strips), kColumns) * kColumns;
  return std::clamp(even, kColumns, kMostColumns);
}

void fold_outer(const Walk& walk, std::span<const Folding> foldings, double cost,
                FunctionRef<std::unique_ptr<Values>()> values) {
  const int64_t pieces = divide_up(walk.length, kPartRows), parts = walk.others * pieces;
  const int64_t columns = strip_columns(walk.width, walk.kept * parts);
  const int64_t strips = divide_up(walk.width, columns), outputs = walk.outputs();
  const Parts partial(foldings, parts, outputs);
  const double task_cost =
      cost * double(std::min(walk.length, kPartRows) * std::min(walk.width, columns));
  const int64_t room = std::max(kBufferElements, kRowsAtOnce * std::min(columns, walk.width));
  parallel(walk.kept * parts * strips, grain_of(task_cost), [&](int64_t begin, int64_t end) {
    Worker worker(foldings, values(), room);
    for (int64_t i = begin; i < end; i++) {
      const int64_t column = i % strips * columns, width = std::min(columns, walk.width - column);
      const int64_t part = i / strips % parts, keep = i / strips / parts;
      const int64_t first = part % pieces * kPartRows,
                    rows = std::min(kPartRows, walk.length - first);
      worker.give(partial.to(), part * outputs + keep * walk.width + column);
      worker.strip(walk.start(keep, part / pieces) + first * walk.width + column, walk.width, rows,
                   width);
    }
  });
  partial.fold_columns();
}

// Rows of a folding's parts, which lie in memory one after the other.
void fold_parts(const Folding& folding, const char* partial, int64_t parts, int64_t outputs) {
  const auto size = int64_t(size_of(folding.computed));
  parallel(divide_up(outputs, kColumns), grain_of(double(parts * kColumns)),
           [&](int64_t begin, int64_t end) {
             for (int64_t column = begin * kColumns; column < std::min(end * kColumns, outputs);
                  column += kColumns) {
               const int64_t width = std::min(kColumns, outputs - column);
               const auto folder = make_folder(folding.computed, folding.fold, width);
               for (int64_t part = 0; part < parts; part += kRowsAtOnce) {
                 const char* rows[kRowsAtOnce];
                 for (int r = 0; r < kRowsAtOnce; r++) {
                   rows[r] = partial + ((part + r) * outputs + column) * size;
                 }
                 folder->rows(rows, int(std::min<int64_t>(kRowsAtOnce, parts - part)));
               }
               folder->finish(folding.result + column * size);
             }
           });
}

}  // namespace

Parts::Parts(std::span<const Folding> foldings, int64_t parts, int64_t outputs)
    : foldings_(foldings), parts_(parts), outputs_(outputs) {
  for (const Folding& folding : foldings) {
    const size_t bytes = size_t(parts * outputs) * size_of(folding.computed);
    if (parts > 1) memory_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    to_.push_back(parts > 1 ? memory_.back().get() : folding.result);
  }
}

void Parts::fold_columns() const {
  for (size_t k = 0; parts_ > 1 && k < foldings_.size(); k++) {
    fold_parts(foldings_[k], to_[k], parts_, outputs_);
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
  if (outer_ == 1 && !reduced_[0]) return keep * strides_[0];
  int64_t offset = 0;
  for (int i = 0; i < outer_; i++) {
    int64_t& index = reduced_[i] ? other : keep;
    offset += index % sizes_[i] * strides_[i];
    index /= sizes_[i];
  }
  return offset;
}

void fold_values(const Walk& walk, std::span<const Folding> foldings, double cost,
                 FunctionRef<std::unique_ptr<Values>()> values) {
  if (walk.empty) {
    for (const Folding& folding : foldings) {
      make_folder(folding.computed, folding.fold, 1)->fill_empty(folding.result, walk.outputs());
    }
  } else if (walk.width == 1) {
    fold_inner(walk, foldings, cost, values);
  } else {
    fold_outer(walk, foldings, cost, values);
  }
}

}  // namespace fornax::flex
