// The inner loops of products and convolutions, one table per instruction set and number type.
// Pure functions over the caller's memory; safe from any thread.
//
// Every element of a result is summed in the order of the depth index with one accumulator,
// whatever the tile it falls in, so results do not depend on how callers cut the work.
#pragma once
#include <cstdint>

namespace fornax::flex {

inline constexpr int kMaxTileRows = 14;
inline constexpr int64_t kMaxTileDepth = 512;
inline constexpr int64_t kFewRows = 32;  // that rows_times_matrix takes

// c[i][j] (+)= sum over p of a[i][p] * b[offsets[p] + j], for i below the tile's rows.
template <class T>
struct TileCall {
  int64_t depth;
  const T* a;  // packed: a[p * rows + i]; strided: a[i * a_row + p * a_step]
  int64_t a_row = 0, a_step = 0;
  const T* b;
  const int64_t* offsets;  // depth of them, in elements
  T* c;                    // c[i * c_row + j]
  int64_t c_row;
  int64_t columns;    // a multiple of the tile's columns
  int64_t b_gap = 0;  // elements of b between the columns of a tile and those of the next
  bool accumulate;    // add to c instead of overwriting it
};

// c[i * c_row + j] += the sum of y[i * y_channel + at] * x[offsets[j] + at'] over images, rows and
// columns.
template <class T>
struct DotCall {
  int64_t images, rows, width;
  const T* y;
  int64_t y_channel, y_image, y_row;
  const T* x;
  const int64_t* offsets;
  int64_t x_image, x_row;
  T* c;
  int64_t c_row;
};

// y[r] = sum over p of a[r * row + p * column] * x[p], where row or column is 1.
template <class T>
struct VectorCall {
  int64_t rows, depth;
  const T* a;
  int64_t stride;  // the one that is not 1
  const T* x;
  T* y;
};

// c[i * c_row + j] = sum over p of a[i * a_row + p * a_step] * b[p * b_row + j].
template <class T>
struct RowsCall {
  int64_t rows, columns, depth;  // rows: at most kFewRows
  const T* a;
  int64_t a_row, a_step;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  bool far;  // b is in no cache
};

template <class T>
struct TileTable {
  using Tile = void (*)(const TileCall<T>&);
  using Dot = void (*)(const DotCall<T>&);
  int rows;       // of the largest tile; every smaller number has a tile too
  int columns;    // of the tiles in packed and strided
  int64_t depth;  // so much of as many columns stays in the first-level cache
  Tile packed[kMaxTileRows + 1];
  Tile strided[kMaxTileRows + 1];
  Tile wide[kMaxTileRows + 1];  // packed, with more columns where there are few rows
  int wide_columns[kMaxTileRows + 1];
  static constexpr int kDotRows = 4, kDotColumns = 3;
  Dot dot[kDotRows + 1][kDotColumns + 1];
  void (*rows_times_vector)(const VectorCall<T>&);     // column is 1
  void (*columns_times_vector)(const VectorCall<T>&);  // row is 1
  void (*rows_times_matrix)(const RowsCall<T>&);
};

template <class T>
const TileTable<T>& tile_table();
template <>
const TileTable<float>& tile_table();
template <>
const TileTable<double>& tile_table();

}  // namespace fornax::flex
