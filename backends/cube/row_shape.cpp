#include "backends/cube/row_shape.h"

#include <algorithm>

#include "backends/cube/shape_class.h"

namespace fornax::cube {
namespace {

constexpr int kThreads = 128;  // of a block that has no need of more
constexpr int kMostThreads = 1024;

// Of matrices whose columns are reduced by parts.  Longer rows would need more registers than there
// are, as a thread holds its elements of a row and what each column has gathered; for fewer rows
// there would be too few blocks, or parts that are hardly smaller than what they are of.
constexpr int64_t kShortestRow = 128, kLongestRow = 8192;
constexpr int kFewestRows = 12;   // for each processor and row of a block
constexpr int kMostOfPart = 128;  // rows

// Rows that take several warps anyway take so many that a thread's elements leave registers for
// what columns gather.
constexpr int64_t kManyElements = 2048;
constexpr int kFewElements = 16;

}  // namespace

RowShape shape_of_rows(int64_t length, int lanes, bool whole) {
  const int64_t vectors = ceiling(length, lanes);
  const bool many = length >= kManyElements && length <= kLongestRow;
  const int64_t wanted = many ? kFewElements / lanes : kWantedVectors;
  const int enough = power_above(ceiling(vectors, wanted));
  int across = std::min(std::max(enough, std::min(32, power_above(vectors))), kMostThreads);
  const bool single = whole && vectors <= int64_t(across) * kMostVectors;
  if (!single) across = std::min(across, kColumnThreads);
  const int each = single ? int(ceiling(vectors, across)) : kWantedVectors;
  return {across, std::max(across, kThreads) / across, std::max(each, 1), single};
}

int64_t rows_of_part(int64_t rows, int64_t columns, int processors) {
  if (columns < kShortestRow || columns > kLongestRow) return 0;
  const RowShape shape = shape_of_rows(columns, common_power({columns}, kMostVector), true);
  if (rows < int64_t(kFewestRows) * processors * shape.down) return 0;
  const int64_t share = ceiling(rows, int64_t(2) * processors * shape.down);
  return std::min<int64_t>(ceiling(share, kPartUnit) * kPartUnit, kMostOfPart);
}

bool may_have_columns(const Shape& domain, const Attributes& axes, int processors) {
  int64_t rows = 1, columns = 1;
  for (int axis = 0; axis < domain.rank(); axis++) {
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!reduced && domain[axis] != 1 && columns != 1) return false;
    (reduced ? columns : rows) *= domain[axis];
  }
  return rows_of_part(rows, columns, processors) > 0;
}

}  // namespace fornax::cube
