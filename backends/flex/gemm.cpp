// Blocked matrix product: column blocks, then depth blocks, then tasks of row panels by strips.
//
// Words used here: a panel is a few rows of a, as many as the tile has; a strip is as many columns
// of b as the tile has.  Blocks of b lie packed in memory that all threads read; each task packs
// its own rows of a.  Operands that the tiles can read in place are not packed where that pays.
#include "backends/flex/gemm.h"

#include <algorithm>
#include <cstring>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/gemm_tiles.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

constexpr int64_t kDepthBlock = 256;    // a strip of b stays in the first-level cache
constexpr int64_t kRowBlock = 144;      // a block of a stays in the second-level cache
constexpr int64_t kColumnBlock = 2048;  // a block of b stays in the third-level cache

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
class Product {
 public:
  Product(const ProductSize& size, const Matrix& a, const Matrix& b, T* c)
      : size_(size), a_(a), b_(b), c_(c), tiles_(tile_table<T>()) {
    panels_ = up(size.m, tiles_.rows);
    // Packing an element of b pays once per row of a, and of a once per column of b.
    direct_b_ = b.dtype == dtype_of<T> && b.column == 1 &&
                (size.m <= 2 * tiles_.rows || size.n * size.k * int64_t(sizeof(T)) <= (128 << 10));
    direct_a_ = a.dtype == dtype_of<T> && size.n <= 6 * tiles_.columns;
  }

  void run() {
    const int64_t depth_blocks = up(size_.k, kDepthBlock);
    const int64_t depth = up(size_.k, depth_blocks);
    for (int64_t column = 0; column < size_.n; column += kColumnBlock) {
      columns_ = std::min(kColumnBlock, size_.n - column);
      strips_ = up(columns_, tiles_.columns);
      for (int64_t p = 0; p < size_.k; p += depth) {
        run_block(column, p, std::min(depth, size_.k - p));
      }
    }
  }

 private:
  int64_t panel_row(int64_t panel) const { return panel * size_.m / panels_; }

  // The product of columns [column, column + columns_) over depth [p, p + depth).
  void run_block(int64_t column, int64_t p, int64_t depth) {
    const int64_t strip_size = depth * tiles_.columns;
    Workspace packed(direct_b_ ? 0 : size_t(strips_ * strip_size) * sizeof(T));
    if (!direct_b_) {
      parallel(strips_, grain_for(strip_size * 4), [&](int64_t begin, int64_t end) {
        for (int64_t strip = begin; strip < end; strip++) {
          pack_strip(column + strip * tiles_.columns, p, depth,
                     packed.as<T>() + strip * strip_size);
        }
      });
    }
    const int64_t row_tasks = up(size_.m, kRowBlock);
    const int64_t wanted = thread_count() > 1 ? up(4 * thread_count(), row_tasks) : 1;
    const int64_t column_tasks = std::clamp(wanted, int64_t(1), up(strips_, 4));
    const int64_t work = size_.m * columns_ * depth / (row_tasks * column_tasks);
    parallel(row_tasks * column_tasks, grain_for(work), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        const int64_t r = task / column_tasks, s = task % column_tasks;
        run_task({column, p, depth, r * panels_ / row_tasks, (r + 1) * panels_ / row_tasks,
                  s * strips_ / column_tasks, (s + 1) * strips_ / column_tasks},
                 packed.as<T>());
      }
    });
  }

  struct Task {
    int64_t column, p, depth;
    int64_t first_panel, end_panel, first_strip, end_strip;
  };

  void run_task(const Task& task, const T* packed_b) const {
    const int64_t first_row = panel_row(task.first_panel);
    const int64_t rows = panel_row(task.end_panel) - first_row;
    Workspace packed_a(direct_a_ ? 0 : size_t(rows * task.depth) * sizeof(T));
    if (!direct_a_) pack_rows(task, packed_a.as<T>());
    int64_t offsets[kDepthBlock];
    const int64_t b_step = direct_b_ ? b_.row : tiles_.columns;
    for (int64_t p = 0; p < task.depth; p++) offsets[p] = p * b_step;
    for (int64_t strip = task.first_strip; strip < task.end_strip; strip++) {
      const int64_t column = task.column + strip * tiles_.columns;
      const int width = int(std::min<int64_t>(tiles_.columns, size_.n - column));
      TileCall<T> call{.depth = task.depth,
                       .a = nullptr,
                       .a_row = a_.row,
                       .a_step = a_.column,
                       .b = nullptr,
                       .offsets = offsets,
                       .c = nullptr,
                       .c_row = size_.n,
                       .columns = tiles_.columns,
                       .accumulate = task.p > 0};
      if (!direct_b_) {
        call.b = packed_b + strip * task.depth * tiles_.columns;
      } else if (width == tiles_.columns) {
        call.b = static_cast<const T*>(b_.data) + task.p * b_.row + column;
      } else {
        run_last_strip(task, column, width, call, packed_a.as<T>());
        continue;
      }
      run_strip(task, column, width, call, packed_a.as<T>());
    }
  }

  // Columns that do not fill a tile cannot be read in place.
  void run_last_strip(const Task& task, int64_t column, int width, TileCall<T> call,
                      const T* packed_a) const {
    Workspace strip(size_t(task.depth * tiles_.columns) * sizeof(T));
    pack_strip(column, task.p, task.depth, strip.as<T>());
    int64_t offsets[kDepthBlock];
    for (int64_t p = 0; p < task.depth; p++) offsets[p] = p * tiles_.columns;
    call.b = strip.as<T>();
    call.offsets = offsets;
    run_strip(task, column, width, call, packed_a);
  }

  void run_strip(const Task& task, int64_t column, int width, TileCall<T> call,
                 const T* packed_a) const {
    T narrow[kMaxTileRows * 64];
    const int64_t first_row = panel_row(task.first_panel);
    for (int64_t panel = task.first_panel; panel < task.end_panel; panel++) {
      const int64_t row = panel_row(panel);
      const int rows = int(panel_row(panel + 1) - row);
      T* c = c_ + row * size_.n + column;
      call.a = direct_a_ ? static_cast<const T*>(a_.data) + row * a_.row + task.p * a_.column
                         : packed_a + (row - first_row) * task.depth;
      const auto tile = direct_a_ ? tiles_.strided[rows] : tiles_.packed[rows];
      if (width == tiles_.columns) {
        call.c = c;
        tile(call);
        continue;
      }
      TileCall<T> partial = call;
      partial.c = narrow;
      partial.c_row = tiles_.columns;
      partial.accumulate = false;
      tile(partial);
      for (int i = 0; i < rows; i++) {
        for (int j = 0; j < width; j++) {
          const T sum = narrow[i * tiles_.columns + j];
          c[i * size_.n + j] = call.accumulate ? sum + c[i * size_.n + j] : sum;
        }
      }
    }
  }

  void pack_strip(int64_t column, int64_t p, int64_t depth, T* to) const {
    const int width = int(std::min<int64_t>(tiles_.columns, size_.n - column));
    with_float_type(b_.dtype, [&](auto type) {
      const auto* from = static_cast<decltype(type)>(b_.data) + p * b_.row + column * b_.column;
      pack_panel(from, b_.column, b_.row, tiles_.columns, width, depth, to);
    });
  }

  void pack_rows(const Task& task, T* to) const {
    with_float_type(a_.dtype, [&](auto type) {
      for (int64_t panel = task.first_panel; panel < task.end_panel; panel++) {
        const int64_t row = panel_row(panel);
        const int rows = int(panel_row(panel + 1) - row);
        const auto* from = static_cast<decltype(type)>(a_.data) + row * a_.row + task.p * a_.column;
        pack_panel(from, a_.row, a_.column, rows, rows, task.depth, to);
        to += rows * task.depth;
      }
    });
  }

  ProductSize size_;
  Matrix a_, b_;
  T* c_;
  const TileTable<T>& tiles_;
  int64_t panels_, columns_ = 0, strips_ = 0;
  bool direct_a_, direct_b_;
};

// y = a x where a can be read along one of its axes; false where it cannot.
template <class T>
bool matrix_times_vector(const Matrix& a, int64_t rows, int64_t depth, const Matrix& x,
                         int64_t x_step, T* y) {
  const bool along_rows = a.column == 1 || depth == 1;
  if (a.dtype != dtype_of<T> || (!along_rows && a.row != 1 && rows != 1)) return false;
  Workspace packed(x_step == 1 && x.dtype == dtype_of<T> ? 0 : size_t(depth) * sizeof(T));
  const T* vector = static_cast<const T*>(x.data);
  if (x_step != 1 || x.dtype != dtype_of<T>) {
    with_float_type(x.dtype, [&](auto type) {
      pack_panel(static_cast<decltype(type)>(x.data), 0, x_step, 1, 1, depth, packed.as<T>());
    });
    vector = packed.as<T>();
  }
  const TileTable<T>& tiles = tile_table<T>();
  // Chunks start at multiples of 64 rows: a row's sum must not depend on where its chunk starts.
  constexpr int64_t kRows = 64;
  parallel(up(rows, kRows), grain_for(kRows * depth * 4), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kRows, count = std::min(end * kRows, rows) - first;
    const VectorCall<T> call{count,
                             depth,
                             static_cast<const T*>(a.data) + first * a.row,
                             along_rows ? a.row : a.column,
                             vector,
                             y + first};
    (along_rows ? tiles.rows_times_vector : tiles.columns_times_vector)(call);
  });
  return true;
}

}  // namespace

template <class T>
void gemm(const ProductSize& size, const Matrix& a, const Matrix& b, T* c) {
  if (size.m == 0 || size.n == 0) return;
  if (size.k == 0) {
    std::fill_n(c, size.m * size.n, T(0));
    return;
  }
  if (size.n == 1 && matrix_times_vector(a, size.m, size.k, b, b.row, c)) return;
  const Matrix transposed{b.data, b.dtype, b.column, b.row};
  if (size.m == 1 && matrix_times_vector(transposed, size.n, size.k, a, a.column, c)) return;
  Product<T>(size, a, b, c).run();
}

template void gemm<float>(const ProductSize&, const Matrix&, const Matrix&, float*);
template void gemm<double>(const ProductSize&, const Matrix&, const Matrix&, double*);

}  // namespace fornax::flex
