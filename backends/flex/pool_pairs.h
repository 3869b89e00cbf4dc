// The usual pool: windows of 2x2, two apart, over f32 rows without gaps, many at a time.
#pragma once
#include <cstdint>

namespace fornax::flex {

// to[t] = the flat position of the first largest of top[2t], top[2t + 1], bottom[2t], bottom[2t +
// 1]; NaN is the largest.  top[0] has the position `flat`, bottom[0] `flat + length`. Requires:
// positions fit 31 bits.
void pool_pairs(const float* top, const float* bottom, int64_t count, int64_t flat, int64_t length,
                int64_t* to);

}  // namespace fornax::flex
