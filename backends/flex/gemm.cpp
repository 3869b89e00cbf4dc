// Matrix product of any size: by vectors, by few rows, or blocked.
//
// Words used here: a panel is a few rows of a, as many as the tile has; a strip is as many columns
// of b as the tile has.  A round packs panels of a over some of the depth, in memory that all
// threads read.  A task of the round then goes over a chunk of strips: it packs them itself, a
// block of the depth at a time, and multiplies each with all panels, a group after the other.
// Operands that the tiles can read in place are not packed where that pays.
#include "backends/flex/gemm.h"

#include <algorithm>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/gemm_tiles.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

constexpr int64_t kGroupBytes = 72 << 10;    // of panels, stay in the second-level cache
constexpr int64_t kChunkBytes = 64 << 10;    // of strips, likewise
constexpr int64_t kRunBytes = 20 << 10;      // of strips, stay in the first-level cache
constexpr int64_t kRoundBytes = 4 << 20;     // of panels, stay in the third-level cache
constexpr int64_t kNear = 2 << 10;           // from row to row of a that is not packed
constexpr int64_t kSmallInPlace = 16 << 10;  // of an operand, likewise
constexpr int64_t kFewInPlace = 64 << 10;    // of b where a has few rows
constexpr int64_t kFar = 8 << 20;            // of b that no cache holds

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The rows of a in panels of `height`.  What is left over and the last whole one share their rows,
// as a tile of one or two takes as long as one of four.
class Panels {
 public:
  Panels(int64_t size, int64_t height) : size_(size), height_(height), whole_(size / height) {
    const int64_t rest = size - whole_ * height;
    count_ = whole_ + (rest > 0);
    if (rest > 0 && whole_ > 0) whole_--;
  }
  int64_t count() const { return count_; }
  int64_t rows(int64_t panel, int64_t end) const { return at(end) - at(panel); }
  // Where a panel begins; of count(): the end.
  int64_t at(int64_t panel) const {
    if (panel <= whole_) return panel * height_;
    return panel == count_ ? size_ : (whole_ * height_ + size_ + 1) / 2;
  }

 private:
  int64_t size_, height_, whole_, count_;
};

template <class T>
class Product {
 public:
  Product(const ProductSize& size, const Matrix& a, const Matrix& b, T* c)
      : size_(size),
        a_(a),
        b_(b),
        c_(c),
        tiles_(tile_table<T>()),
        panels_(size.m, tiles_.rows),
        strips_(up(size.n, tiles_.columns)),
        depth_(block_of(size.k, tiles_.depth)),
        run_(std::max(int64_t(1), kRunBytes / (depth_ * tiles_.columns * int64_t(sizeof(T))))),
        strip_size_((depth_ + 1) * tiles_.columns) {
    constexpr int64_t kElement = sizeof(T);
    const int64_t a_bytes = size.m * size.k * kElement, b_bytes = size.n * size.k * kElement;
    const bool a_may =
        size.n <= tiles_.columns || (a.row == 1 && strips_ <= run_) ||
        (a.column == 1 && (size.n <= 6 * tiles_.columns || a.row * kElement <= kNear));
    direct_a_ = a.dtype == dtype_of<T> && (a_may || a_bytes <= kSmallInPlace);
    direct_b_ = b.dtype == dtype_of<T> && b.column == 1 &&
                (size.m <= 2 * tiles_.rows || b_bytes <= kSmallInPlace);
    for (int64_t p = 0; p < depth_; p++) packed_offsets_[p] = p * tiles_.columns;
    if (!direct_b_) return;
    for (int64_t p = 0; p < depth_; p++) direct_offsets_[p] = p * b.row;
  }

  void run() const {
    if (direct_a_) return run_round({0, panels_.count(), 0, size_.k});
    const int64_t most = kRoundBytes / (depth_ * int64_t(sizeof(T)));  // rows
    const int64_t panels = std::max(int64_t(1), most / tiles_.rows);
    for (int64_t panel = 0; panel < panels_.count(); panel += panels) {
      const int64_t end = std::min(panel + panels, panels_.count());
      const int64_t depth = std::max(int64_t(1), most / panels_.rows(panel, end)) * depth_;
      for (int64_t p = 0; p < size_.k; p += depth) {
        Round round{panel, end, p, std::min(p + depth, size_.k)};
        Workspace packed(size_t(panels_.rows(panel, end) * (round.end_p - p)) * sizeof(T));
        pack_round(round, packed.as<T>());
        round.packed = packed.as<T>();
        run_round(round);
      }
    }
  }

 private:
  struct Round {
    int64_t panel, end_panel, p, end_p;
    const T* packed = nullptr;  // where a is not read in place
  };
  // Some panels of a round, and some strips.
  struct Task {
    int64_t panel, end_panel, strip, end_strip;
  };
  // A block of the depth, and where the first panel and the first strip of it are packed.
  struct Block {
    int64_t p, depth;
    const T *panels, *strips;
  };

  // As few blocks as there can be, as even as they can be.
  static int64_t block_of(int64_t depth, int64_t most) {
    return depth <= most ? depth : up(up(depth, up(depth, most)), 8) * 8;
  }
  // Panels that are multiplied with one strip after the other.
  int64_t group() const {
    return std::max(int64_t(1), kGroupBytes / (depth_ * tiles_.rows * int64_t(sizeof(T))));
  }

  // Blocks of the depth one after another, of each its panels.
  void pack_round(const Round& round, T* to) const {
    const int64_t rows = panels_.rows(round.panel, round.end_panel), some = group();
    const int64_t groups = up(round.end_panel - round.panel, some);
    const int64_t blocks = up(round.end_p - round.p, depth_);
    const int64_t grain = grain_for(some * tiles_.rows * depth_ * 4);
    parallel(blocks * groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t p = round.p + i / groups * depth_, panel = round.panel + i % groups * some;
        const int64_t depth = std::min(depth_, round.end_p - p);
        pack_panels_of_a(panel, std::min(panel + some, round.end_panel), p, depth,
                         to + rows * (p - round.p) + panels_.rows(round.panel, panel) * depth);
      }
    });
  }

  void run_round(const Round& round) const {
    const int64_t rows = panels_.rows(round.panel, round.end_panel), depth = round.end_p - round.p;
    const int64_t work = rows * size_.n * depth;
    const Task all{round.panel, round.end_panel, 0, strips_};
    if (work < grain_for(1) && direct_a_ && direct_b_) return run_task(round, all);
    const int64_t threads = thread_count(), some = group();
    int64_t chunk = kChunkBytes / (depth_ * tiles_.columns * int64_t(sizeof(T)));
    if (threads > 1) chunk = std::clamp(up(strips_, 4 * threads), int64_t(1), chunk);
    const int64_t chunks = up(strips_, chunk), groups = up(round.end_panel - round.panel, some);
    const int64_t parts = threads > 1 ? std::min(up(2 * threads, chunks), groups) : 1;
    parallel(chunks * parts, grain_for(work / (chunks * parts)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t strip = i / parts * chunk, part = i % parts;
        Task task{round.panel + part * groups / parts * some,
                  round.panel + (part + 1) * groups / parts * some, strip, strip + chunk};
        task.end_panel = std::min(task.end_panel, round.end_panel);
        task.end_strip = std::min(task.end_strip, strips_);
        run_task(round, task);
      }
    });
  }

  void run_task(const Round& round, const Task& task) const {
    // Strips that are read in place, then those that are packed: columns that do not fill a tile
    // always are.
    const int64_t packed = direct_b_ ? task.end_strip - !whole(task.end_strip - 1) : task.strip;
    Workspace memory(size_t((task.end_strip - packed) * strip_size_) * sizeof(T));
    const int64_t rows = panels_.rows(round.panel, round.end_panel), some = group();
    for (int64_t p = round.p; p < round.end_p; p += depth_) {
      const int64_t depth = std::min(depth_, round.end_p - p);
      if (packed < task.end_strip) pack_strips(packed, task.end_strip, p, depth, memory.as<T>());
      for (int64_t panel = task.panel; panel < task.end_panel; panel += some) {
        const int64_t end = std::min(panel + some, task.end_panel);
        const T* panels = direct_a_ ? nullptr
                                    : round.packed + rows * (p - round.p) +
                                          panels_.rows(round.panel, panel) * depth;
        for (int64_t strip = task.strip; strip < task.end_strip;) {
          const T* from =
              strip < packed ? nullptr : memory.as<T>() + (strip - packed) * strip_size_;
          const int64_t end_strip = end_of_run(strip, strip < packed ? packed : task.end_strip);
          run_strips({panel, end, strip, end_strip}, {p, depth, panels, from});
          strip = end_strip;
        }
      }
    }
  }

  bool whole(int64_t strip) const { return (strip + 1) * tiles_.columns <= size_.n; }

  // Strips from this one on that a panel is multiplied with at once.
  int64_t end_of_run(int64_t strip, int64_t end) const {
    const int64_t end_of_whole = whole(end - 1) ? end : end - 1;
    return std::max(strip + 1, std::min(strip + run_, end_of_whole));
  }

  // Some panels times one strip, or several whole ones.
  void run_strips(const Task& task, const Block& block) const {
    const int64_t column = task.strip * tiles_.columns;
    const bool in_place = block.strips == nullptr;
    TileCall<T> call{
        .depth = block.depth,
        .a = block.panels,
        .a_row = a_.row,
        .a_step = a_.column,
        .b = in_place ? static_cast<const T*>(b_.data) + block.p * b_.row + column : block.strips,
        .offsets = in_place ? direct_offsets_ : packed_offsets_,
        .c = nullptr,
        .c_row = size_.n,
        .columns = (task.end_strip - task.strip) * tiles_.columns,
        .b_gap = in_place ? 0 : strip_size_ - tiles_.columns,
        .accumulate = block.p > 0};
    const bool all = whole(task.strip);
    for (int64_t panel = task.panel; panel < task.end_panel; panel++) {
      const int64_t row = panels_.at(panel);
      const int rows = int(panels_.at(panel + 1) - row);
      if (direct_a_) {
        call.a = static_cast<const T*>(a_.data) + row * a_.row + block.p * a_.column;
      }
      call.c = c_ + row * size_.n + column;
      const auto tile = (direct_a_ ? tiles_.strided : tiles_.packed)[rows];
      all ? tile(call) : run_partial(tile, call, rows, int(size_.n - column));
      if (!direct_a_) call.a += rows * block.depth;
    }
  }

  // A tile of which only `width` columns are there.
  void run_partial(typename TileTable<T>::Tile tile, TileCall<T> call, int rows, int width) const {
    T narrow[kMaxTileRows * 64];
    T* c = call.c;
    const bool accumulate = call.accumulate;
    call.c = narrow;
    call.c_row = tiles_.columns;
    call.accumulate = false;
    tile(call);
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < width; j++) {
        const T sum = narrow[i * tiles_.columns + j];
        c[i * size_.n + j] = accumulate ? sum + c[i * size_.n + j] : sum;
      }
    }
  }

  void pack_strips(int64_t strip, int64_t end, int64_t p, int64_t depth, T* to) const {
    const int64_t column = strip * tiles_.columns;
    const int64_t columns = std::min(end * tiles_.columns, size_.n) - column;
    with_float_type(b_.dtype, [&](auto type) {
      const auto* from = static_cast<decltype(type)>(b_.data) + p * b_.row + column * b_.column;
      pack_panels(from, b_.column, b_.row, tiles_.columns, columns, depth, strip_size_, to);
    });
  }

  void pack_panels_of_a(int64_t panel, int64_t end, int64_t p, int64_t depth, T* to) const {
    with_float_type(a_.dtype, [&](auto type) {
      while (panel < end) {
        const int64_t row = panels_.at(panel);
        const int64_t height = panels_.at(panel + 1) - row;
        // Panels of one height are packed together.
        int64_t next = panel + 1;
        while (next < end && panels_.at(next + 1) - panels_.at(next) == height) next++;
        const int64_t rows = panels_.at(next) - row;
        const auto* from = static_cast<decltype(type)>(a_.data) + row * a_.row + p * a_.column;
        pack_panels(from, a_.row, a_.column, int(height), rows, depth, height * depth, to);
        to += rows * depth;
        panel = next;
      }
    });
  }

  ProductSize size_;
  Matrix a_, b_;
  T* c_;
  const TileTable<T>& tiles_;
  Panels panels_;
  int64_t strips_, depth_;  // depth: of a block
  int64_t run_;             // strips that a panel is multiplied with at once
  // Elements of a packed strip: one line more than it has, as lines that lie a power of two apart
  // are in each other's way in the cache.
  int64_t strip_size_;
  bool direct_a_, direct_b_;
  int64_t packed_offsets_[kMaxTileDepth], direct_offsets_[kMaxTileDepth];
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

// Few rows times a large matrix whose rows lie one after another, each of which is read once.
template <class T>
bool few_rows_times_matrix(const ProductSize& size, const Matrix& a, const Matrix& b, T* c) {
  if (size.m > kFewRows || a.dtype != dtype_of<T> || b.dtype != dtype_of<T>) return false;
  const int64_t bytes = size.n * size.k * int64_t(sizeof(T));
  if (b.column != 1 || bytes <= kFewInPlace) return false;
  const TileTable<T>& tiles = tile_table<T>();
  constexpr int64_t kColumns = 64;  // of which a task has some
  const int64_t work = size.m * kColumns * size.k;
  parallel(up(size.n, kColumns), grain_for(work), [&](int64_t begin, int64_t end) {
    const int64_t column = begin * kColumns;
    tiles.rows_times_matrix({.rows = size.m,
                             .columns = std::min(end * kColumns, size.n) - column,
                             .depth = size.k,
                             .a = static_cast<const T*>(a.data),
                             .a_row = a.row,
                             .a_step = a.column,
                             .b = static_cast<const T*>(b.data) + column,
                             .b_row = b.row,
                             .c = c + column,
                             .c_row = size.n,
                             .far = bytes > kFar});
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
  if (few_rows_times_matrix(size, a, b, c)) return;
  Product<T>(size, a, b, c).run();
}

template void gemm<float>(const ProductSize&, const Matrix&, const Matrix&, float*);
template void gemm<double>(const ProductSize&, const Matrix&, const Matrix&, double*);

}  // namespace fornax::flex
