// The inner loops of gemm_tiles.h for one instruction set.  Included once per target and number
// type: the including file defines FORNAX_TILE_TYPE and FORNAX_FILL, the name of the function that
// fills the table.  No guard, on purpose.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/flex/gemm_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace fornax::flex::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 14 x 2 accumulators where there are 32 registers, 6 x 2 where there are 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr int kRows = 14, kRegisters = 32;
#else
constexpr int kRows = 6, kRegisters = 16;
#endif

#ifdef __clang__
#define FORNAX_UNROLL_BY_FOUR  // it unrolls loops by itself
#else
#define FORNAX_UNROLL_BY_FOUR _Pragma("GCC unroll 4")
#endif

// Vectors per row of a wide tile: as many as leave registers for b and one element of a.
constexpr int wide_vectors(int rows) {
  const int fit = (kRegisters - 1) / (rows + 1);
  return fit > 8 ? 8 : fit < 2 ? 2 : fit;
}

template <class T, int kTileRows, int kVectors, bool kPacked>
HWY_NOINLINE void tile(const TileCall<T>& call) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const int64_t depth = call.depth, c_row = call.c_row;
  const int64_t a_row = call.a_row, a_step = call.a_step;
  const int64_t* offsets = call.offsets;
  const bool accumulate = call.accumulate;
  const T* strip = call.b;
  for (int64_t j = 0; j < call.columns; j += kVectors * int64_t(lanes)) {
    // What the sums go to is on its way while they are made.
    T* const c = call.c + j;
    FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
      hwy::Prefetch(c + i * c_row);
      hwy::Prefetch(c + i * c_row + size_t(kVectors) * lanes - 1);
    }
    V sums[kTileRows][kVectors];
    FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
      FORNAX_UNROLL for (int v = 0; v < kVectors; v++) sums[i][v] = hn::Zero(d);
    }
    const T* a = call.a;
    const T* const b = strip;
    strip += kVectors * int64_t(lanes) + call.b_gap;
    // By the pragma: turns that are written out four times get mixed, for which there are too few
    // registers.
    FORNAX_UNROLL_BY_FOUR for (int64_t p = 0; p < depth; p++) {
      const T* row = b + offsets[p];
      V right[kVectors];
      FORNAX_UNROLL for (int v = 0; v < kVectors; v++) {
        right[v] = hn::LoadU(d, row + size_t(v) * lanes);
      }
      FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
        const V left = hn::Set(d, kPacked ? a[i] : a[i * a_row]);
        FORNAX_UNROLL for (int v = 0; v < kVectors; v++) {
          sums[i][v] = hn::MulAdd(left, right[v], sums[i][v]);
        }
      }
      a += kPacked ? kTileRows : a_step;
    }
    if (accumulate) {
      FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
        FORNAX_UNROLL for (int v = 0; v < kVectors; v++) {
          sums[i][v] = hn::Add(sums[i][v], hn::LoadU(d, c + i * c_row + size_t(v) * lanes));
        }
      }
    }
    FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
      FORNAX_UNROLL for (int v = 0; v < kVectors; v++) {
        hn::StoreU(sums[i][v], d, c + i * c_row + size_t(v) * lanes);
      }
    }
  }
}

template <class T, int kY, int kX>
HWY_NOINLINE void dot(const DotCall<T>& call) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d));
  const int64_t whole = call.width / lanes * lanes;
  const auto rest = hn::FirstN(d, size_t(call.width - whole));
  const T* x[kX];
  V sums[kY][kX];
  FORNAX_UNROLL for (int j = 0; j < kX; j++) x[j] = call.x + call.offsets[j];
  FORNAX_UNROLL for (int i = 0; i < kY; i++) {
    FORNAX_UNROLL for (int j = 0; j < kX; j++) sums[i][j] = hn::Zero(d);
  }
  for (int64_t image = 0; image < call.images; image++) {
    for (int64_t row = 0; row < call.rows; row++) {
      const T* y_line = call.y + image * call.y_image + row * call.y_row;
      const int64_t x_line = image * call.x_image + row * call.x_row;
      for (int64_t p = 0; p < whole; p += lanes) {
        V right[kX];
        FORNAX_UNROLL for (int j = 0; j < kX; j++) right[j] = hn::LoadU(d, x[j] + x_line + p);
        FORNAX_UNROLL for (int i = 0; i < kY; i++) {
          const V left = hn::LoadU(d, y_line + i * call.y_channel + p);
          FORNAX_UNROLL for (int j = 0; j < kX; j++) {
            sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
          }
        }
      }
      if (whole == call.width) continue;
      V right[kX];
      FORNAX_UNROLL for (int j = 0; j < kX; j++) {
        right[j] = hn::MaskedLoad(rest, d, x[j] + x_line + whole);
      }
      FORNAX_UNROLL for (int i = 0; i < kY; i++) {
        const V left = hn::MaskedLoad(rest, d, y_line + i * call.y_channel + whole);
        FORNAX_UNROLL for (int j = 0; j < kX; j++) {
          sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
        }
      }
    }
  }
  FORNAX_UNROLL for (int i = 0; i < kY; i++) {
    FORNAX_UNROLL for (int j = 0; j < kX; j++) {
      call.c[i * call.c_row + j] += hn::GetLane(hn::SumOfLanes(d, sums[i][j]));
    }
  }
}

// Four rows at a time, two accumulators each; a row's sum does not depend on its neighbours.
template <class T, int kTileRows>
HWY_INLINE void some_rows_times_vector(const VectorCall<T>& call, int64_t first) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d));
  V even[kTileRows], odd[kTileRows];
  FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) even[i] = odd[i] = hn::Zero(d);
  const T* a = call.a + first * call.stride;
  int64_t p = 0;
  for (; p + 2 * lanes <= call.depth; p += 2 * lanes) {
    const V x0 = hn::LoadU(d, call.x + p), x1 = hn::LoadU(d, call.x + p + lanes);
    FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
      even[i] = hn::MulAdd(hn::LoadU(d, a + i * call.stride + p), x0, even[i]);
      odd[i] = hn::MulAdd(hn::LoadU(d, a + i * call.stride + p + lanes), x1, odd[i]);
    }
  }
  for (; p < call.depth; p += lanes) {
    const auto some = hn::FirstN(d, size_t(HWY_MIN(lanes, call.depth - p)));
    const V x0 = hn::MaskedLoad(some, d, call.x + p);
    FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
      even[i] = hn::MulAdd(hn::MaskedLoad(some, d, a + i * call.stride + p), x0, even[i]);
    }
  }
  FORNAX_UNROLL for (int i = 0; i < kTileRows; i++) {
    call.y[first + i] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[i], odd[i])));
  }
}

template <class T>
void rows_times_vector(const VectorCall<T>& call) {
  int64_t r = 0;
  for (; r + 4 <= call.rows; r += 4) some_rows_times_vector<T, 4>(call, r);
  for (; r < call.rows; r++) some_rows_times_vector<T, 1>(call, r);
}

// Eight columns per pass over a block of y that stays in the first-level cache.
template <class T>
void columns_times_vector(const VectorCall<T>& call) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d));
  constexpr int kColumns = 8;
  constexpr int64_t kBlock = 16384 / sizeof(T);
  for (int64_t begin = 0; begin < call.rows; begin += kBlock) {
    const int64_t end = HWY_MIN(begin + kBlock, call.rows);
    for (int64_t r = begin; r < end; r++) call.y[r] = 0;
    for (int64_t p = 0; p < call.depth; p += kColumns) {
      V x[kColumns];
      const T* a[kColumns];
      const int64_t left = call.depth - p;
      if (left < kColumns) {
        for (int64_t q = p; q < call.depth; q++) {
          for (int64_t r = begin; r < end; r++) {
            call.y[r] += call.a[q * call.stride + r] * call.x[q];
          }
        }
        break;
      }
      FORNAX_UNROLL for (int q = 0; q < kColumns; q++) {
        x[q] = hn::Set(d, call.x[p + q]);
        a[q] = call.a + (p + q) * call.stride;
      }
      int64_t r = begin;
      for (; r < end; r += lanes) {
        const auto some = hn::FirstN(d, size_t(HWY_MIN(lanes, end - r)));
        const bool all = end - r >= lanes;
        V even = all ? hn::LoadU(d, call.y + r) : hn::MaskedLoad(some, d, call.y + r);
        V odd = hn::Zero(d);
        FORNAX_UNROLL for (int q = 0; q < kColumns; q += 2) {
          const V a0 = all ? hn::LoadU(d, a[q] + r) : hn::MaskedLoad(some, d, a[q] + r);
          const V a1 = all ? hn::LoadU(d, a[q + 1] + r) : hn::MaskedLoad(some, d, a[q + 1] + r);
          even = hn::MulAdd(a0, x[q], even);
          odd = hn::MulAdd(a1, x[q + 1], odd);
        }
        if (all) {
          hn::StoreU(hn::Add(even, odd), d, call.y + r);
        } else {
          hn::BlendedStore(hn::Add(even, odd), some, d, call.y + r);
        }
      }
    }
  }
}

// Columns [begin, begin + count) of a RowsCall, and their sums so far.
template <class T>
struct Stretch {
  int64_t begin, count;
  T* sums;  // sums[i * row + j]
  int64_t row;
};

// sums[i][j] += the sum over kDepth p of a[i][p] * b[p][j], whose factors a stay in registers.
template <class T, int kSome, int kDepth>
HWY_INLINE void add_to_rows(const RowsCall<T>& call, const Stretch<T>& stretch, int64_t i,
                            int64_t p) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d)), b_row = call.b_row, row = stretch.row;
  V left[kSome][kDepth];
  FORNAX_UNROLL for (int r = 0; r < kSome; r++) {
    FORNAX_UNROLL for (int q = 0; q < kDepth; q++) {
      left[r][q] = hn::Set(d, call.a[(i + r) * call.a_row + (p + q) * call.a_step]);
    }
  }
  const T* const b = call.b + p * b_row + stretch.begin;
  T* const sums = stretch.sums + i * row;
  const auto add = [&](int64_t j, auto load) HWY_ATTR {
    V sum[kSome];
    FORNAX_UNROLL for (int r = 0; r < kSome; r++) sum[r] = hn::Load(d, sums + r * row + j);
    FORNAX_UNROLL for (int q = 0; q < kDepth; q++) {
      const V right = load(b + q * b_row + j);
      FORNAX_UNROLL for (int r = 0; r < kSome; r++) {
        sum[r] = hn::MulAdd(left[r][q], right, sum[r]);
      }
    }
    FORNAX_UNROLL for (int r = 0; r < kSome; r++) hn::Store(sum[r], d, sums + r * row + j);
  };
  const auto whole = [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); };
  int64_t j = 0;
  if (call.far && i == 0 && p + 2 * kDepth <= call.depth) {
    // The next rows of b come while these are read for the first time.
    for (; j + lanes <= stretch.count; j += lanes) {
      FORNAX_UNROLL for (int q = 0; q < kDepth; q++) {
        __builtin_prefetch(b + (kDepth + q) * b_row + j, 0, 2);
      }
      add(j, whole);
    }
  }
  for (; j + lanes <= stretch.count; j += lanes) add(j, whole);
  if (j == stretch.count) return;
  const auto some = hn::FirstN(d, size_t(stretch.count - j));
  add(j, [&](const T* from) HWY_ATTR { return hn::MaskedLoad(some, d, from); });
}

template <class T, int kDepth>
HWY_INLINE void add_to_all_rows(const RowsCall<T>& call, const Stretch<T>& stretch, int64_t p) {
  int64_t i = 0;
  for (; i + 3 <= call.rows; i += 3) add_to_rows<T, 3, kDepth>(call, stretch, i, p);
  if (i + 2 == call.rows) add_to_rows<T, 2, kDepth>(call, stretch, i, p);
  if (i + 1 == call.rows) add_to_rows<T, 1, kDepth>(call, stretch, i, p);
}

// A stretch of each row at a time stays in the first-level cache with what is read of b.  The sums
// have a place of their own: rows of c may be in each other's way there.
template <class T>
void rows_times_matrix(const RowsCall<T>& call) {
  constexpr int64_t kSums = 24576 / sizeof(T), kMost = 4096 / sizeof(T);
  constexpr int kDepth = 4;
  HWY_ALIGN T sums[kSums];
  const int64_t row = HWY_MIN(kSums / call.rows / 16 * 16, kMost);
  for (int64_t begin = 0; begin < call.columns; begin += row) {
    Stretch<T> stretch{begin, HWY_MIN(row, call.columns - begin), sums, row};
    std::fill_n(sums, call.rows * row, T(0));
    int64_t p = 0;
    for (; p + kDepth <= call.depth; p += kDepth) add_to_all_rows<T, kDepth>(call, stretch, p);
    for (; p < call.depth; p++) add_to_all_rows<T, 1>(call, stretch, p);
    for (int64_t i = 0; i < call.rows; i++) {
      std::copy_n(sums + i * row, stretch.count, call.c + i * call.c_row + begin);
    }
  }
}

template <class T, int kTileRows>
void add_tiles(TileTable<T>& table, int lanes) {
  constexpr int kWide = wide_vectors(kTileRows);
  table.packed[kTileRows] = tile<T, kTileRows, 2, true>;
  table.strided[kTileRows] = tile<T, kTileRows, 2, false>;
  table.wide[kTileRows] = tile<T, kTileRows, kWide, true>;
  table.wide_columns[kTileRows] = kWide * lanes;
  if constexpr (kTileRows > 1) add_tiles<T, kTileRows - 1>(table, lanes);
}

template <class T, int kY>
void add_dots(TileTable<T>& table) {
  table.dot[kY][1] = dot<T, kY, 1>;
  table.dot[kY][2] = dot<T, kY, 2>;
  table.dot[kY][3] = dot<T, kY, 3>;
  if constexpr (kY > 1) add_dots<T, kY - 1>(table);
}

template <class T>
void fill_table(TileTable<T>& table) {
  const int lanes = int(hn::Lanes(hn::ScalableTag<T>()));
  table.rows = kRows;
  table.columns = 2 * lanes;
  table.depth = HWY_MIN(kMaxTileDepth, (16 << 10) / int64_t(2 * lanes * int(sizeof(T))));
  add_tiles<T, kRows>(table, lanes);
  add_dots<T, TileTable<T>::kDotRows>(table);
  table.rows_times_vector = rows_times_vector<T>;
  table.columns_times_vector = columns_times_vector<T>;
  table.rows_times_matrix = rows_times_matrix<T>;
}

void FORNAX_FILL(TileTable<FORNAX_TILE_TYPE>& table) { fill_table(table); }

}  // namespace fornax::flex::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
