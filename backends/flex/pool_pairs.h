// Pools of f32 rows without gaps, a vector of windows at a time; those of 2x2, two apart, apart.
// Pure functions over the caller's memory; safe from any thread.
#pragma once
#include <cstdint>
#include <span>

namespace fornax::flex {

// to[t] = the flat position of the first largest of top[2t], top[2t + 1], bottom[2t], bottom[2t +
// 1]; NaN is the largest.  top[0] has the position `flat`, bottom[0] `flat + length`. Requires:
// positions fit 31 bits.
void pool_pairs(const float* top, const float* bottom, int64_t count, int64_t flat, int64_t length,
                int64_t* to);

// Where one place of the windows reads: window t the element from[t * stride], whose position is
// flat + t * stride.
struct PoolTap {
  const float* from;
  int64_t flat;
};
// to[t] = the position of the first largest element of window t, in the order of the taps; NaN is
// the largest.  False where there are too few windows for a vector: nothing is written then.
// Requires: there is a tap, the stride is 1 or 2, positions fit 31 bits; with stride 2 one element
// behind the last may be read.
bool pool_line(std::span<const PoolTap> taps, int64_t stride, int64_t count, int64_t* to);

}  // namespace fornax::flex
