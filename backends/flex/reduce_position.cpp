// find_position(): argmax and argmin.
#include <algorithm>
#include <vector>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/pool.h"
#include "backends/flex/reduce_walk.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr int64_t kRows = 1024;    // rows that one task looks at
constexpr int64_t kColumns = 512;  // of them
constexpr double kChunk = 20000;   // nanoseconds of work that a thread takes at a time

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

// One thread's look at patches.
template <class T>
class Seeker {
 public:
  Seeker(const Walk& walk, Fold fold, std::unique_ptr<Values> values)
      : walk_(walk),
        folds_(folds<T>(fold)),
        largest_(fold == Fold::max),
        values_(std::move(values)),
        memory_(size_t(kBufferElements) * sizeof(T)) {}

  // The best of each column of the patch.
  void look(const Patch& patch, Best<T>* result) {
    if (walk_.width == 1) {
      *result = in_row(patch);
    } else {
      in_columns(patch, result);
    }
  }

 private:
  const T* get(int64_t begin, int64_t end) {
    char* buffer = memory_.as<char>();
    const char* data = nullptr;
    values_->get(begin, end, &buffer, &data);
    return reinterpret_cast<const T*>(data);
  }

  // Where in the row is looked up once it is known in which block.
  Best<T> in_row(const Patch& patch) {
    const int64_t start = walk_.start(patch.keep, 0), end = patch.row + patch.rows;
    Best<T> best;
    for (int64_t row = patch.row; row < end; row += kBlock) {
      const int64_t count = std::min(kBlock, end - row);
      const T candidate = folds_.block(get(start + row, start + row + count), count);
      if (best.position < 0 || beats(candidate, best.value, largest_)) best = {candidate, row};
    }
    const int64_t count = std::min(kBlock, end - best.position);
    const T* x = get(start + best.position, start + best.position + count);
    best.position += folds_.find(x, count, best.value);
    return best;
  }

  void in_columns(const Patch& patch, Best<T>* result) {
    const int64_t start = walk_.start(patch.keep, 0) + patch.column;
    for (int64_t row = patch.row; row < patch.row + patch.rows; row++) {
      const int64_t at = start + row * walk_.width;
      const T* x = get(at, at + patch.columns);
      for (int64_t k = 0; k < patch.columns; k++) {
        if (row == patch.row || beats(x[k], result[k].value, largest_)) result[k] = {x[k], row};
      }
    }
  }

  const Walk& walk_;
  const Folds<T> folds_;
  const bool largest_;
  const std::unique_ptr<Values> values_;
  const Workspace memory_;
};

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

template <class T>
void find_of(const Walk& walk, Fold fold, double cost,
             FunctionRef<std::unique_ptr<Values>()> values, int64_t* result) {
  const int64_t piece = walk.width == 1 ? kPiece : kRows, parts = divide_up(walk.length, piece);
  const int64_t strips = divide_up(walk.width, kColumns), outputs = walk.outputs();
  std::vector<Best<T>> partial(parts > 1 ? size_t(outputs * parts) : 0);
  const double task_cost =
      cost * double(std::min(walk.length, piece) * std::min(walk.width, kColumns));
  const auto grain = int64_t(kChunk / std::max(task_cost, 1.0)) + 1;
  parallel(walk.kept * parts * strips, grain, [&](int64_t begin, int64_t end) {
    Seeker<T> seeker(walk, fold, values());
    std::vector<Best<T>> whole(parts > 1 ? 0 : size_t(std::min(walk.width, kColumns)));
    for (int64_t i = begin; i < end; i++) {
      const int64_t column = i % strips * kColumns, part = i / strips % parts, row = part * piece;
      const Patch patch{i / strips / parts, row, std::min(piece, walk.length - row), column,
                        std::min(kColumns, walk.width - column)};
      const int64_t output = patch.keep * walk.width + column;
      Best<T>* best = parts > 1 ? partial.data() + part * outputs + output : whole.data();
      seeker.look(patch, best);
      for (int64_t k = 0; parts == 1 && k < patch.columns; k++) {
        result[output + k] = best[k].position;
      }
    }
  });
  if (parts > 1) first_best(partial, parts, outputs, fold == Fold::max, result);
}

}  // namespace

void find_position(const Walk& walk, Fold fold, DType computed, double cost,
                   FunctionRef<std::unique_ptr<Values>()> values, int64_t* result) {
  if (walk.empty) return;
  switch (computed) {
    case DType::f32:
      return find_of<float>(walk, fold, cost, values, result);
    case DType::f64:
      return find_of<double>(walk, fold, cost, values, result);
    case DType::i64:
      return find_of<int64_t>(walk, fold, cost, values, result);
    case DType::u64:
      return find_of<uint64_t>(walk, fold, cost, values, result);
    default:
      fail(ErrorKind::internal, "flex: no position is found in {}", name_of(computed));
  }
}

}  // namespace fornax::flex
