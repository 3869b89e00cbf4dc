// How row programs lie in blocks: by shapes alone, so that results do not depend on what else is in
// a group.
//
// Pure functions.
#pragma once
#include <algorithm>
#include <bit>

#include "graph/attributes.h"

namespace fornax::cube {

inline constexpr int kMostVector = 4;       // elements that a thread holds side by side
inline constexpr int kMostVectors = 16;     // of a row that one thread holds in registers
inline constexpr int kWantedVectors = 8;    // enough loads under way to hide the memory's latency
inline constexpr int kColumnThreads = 256;  // by columns

inline int power_above(int64_t n) { return int(std::bit_ceil(uint64_t(std::max<int64_t>(n, 1)))); }

// By rows: threads of a row, rows of a block, vectors of `lanes` elements of a thread, and whether
// it holds all of its row at once.
struct RowShape {
  int across, down, each;
  bool single;
};
// Not `whole`: of a row's innermost axes alone, around which others are walked.
RowShape shape_of_rows(int64_t length, int lanes, bool whole);

// How many rows of a matrix make a part of its columns, where they are reduced by parts: a multiple
// of kPartUnit.  0: they are not, and do not stand beside reductions of rows.
inline constexpr int kPartUnit = 8;
int64_t rows_of_part(int64_t rows, int64_t columns, int processors);
// Whether the reductions over `axes` of `domain` may have columns beside them.
bool may_have_columns(const Shape& domain, const Attributes& axes, int processors);

}  // namespace fornax::cube
