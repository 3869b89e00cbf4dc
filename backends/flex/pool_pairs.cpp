#include "backends/flex/pool_pairs.h"

#include <algorithm>

#include "backends/flex/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/pool_pairs.cpp"
#include <hwy/foreach_target.h>  // after targets.h, which chooses them
// clang-format off
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fornax::flex::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Places = hn::RebindToSigned<Floats>;

// Keeps the larger of best and value, and its offset; what came first keeps its place in a tie.
HWY_INLINE void take_larger(hn::Vec<Floats> value, hn::Vec<Places> offset, hn::Vec<Floats>& best,
                            hn::Vec<Places>& best_offset) {
  const auto newly_nan = hn::AndNot(hn::IsNaN(best), hn::IsNaN(value));
  const auto larger = hn::Or(hn::Gt(value, best), newly_nan);
  best = hn::IfThenElse(larger, value, best);
  best_offset = hn::IfThenElse(hn::RebindMask(Places(), larger), offset, best_offset);
}

HWY_INLINE void load_pairs(const float* from, hn::Vec<Floats>& even, hn::Vec<Floats>& odd) {
#if HWY_TARGET == HWY_SCALAR
  even = hn::LoadU(Floats(), from);
  odd = hn::LoadU(Floats(), from + 1);
#else
  hn::LoadInterleaved2(Floats(), from, even, odd);
#endif
}

HWY_INLINE void store_wide(hn::Vec<Places> places, int64_t* to) {
#if HWY_TARGET == HWY_SCALAR
  *to = hn::GetLane(places);
#else
  const hn::Half<Places> half;
  const hn::Rebind<int64_t, hn::Half<Places>> wide;
  hn::StoreU(hn::PromoteTo(wide, hn::LowerHalf(half, places)), wide, to);
  hn::StoreU(hn::PromoteTo(wide, hn::UpperHalf(half, places)), wide, to + hn::Lanes(wide));
#endif
}

// One vector of results.
HWY_INLINE void pool_vector(const float* top, const float* bottom, int64_t flat, int64_t length,
                            int64_t* to) {
  const Places places;
  hn::Vec<Floats> best, right, below, corner;
  load_pairs(top, best, right);
  load_pairs(bottom, below, corner);
  auto offset = hn::Zero(places);
  take_larger(right, hn::Set(places, 1), best, offset);
  take_larger(below, hn::Set(places, int32_t(length)), best, offset);
  take_larger(corner, hn::Set(places, int32_t(length + 1)), best, offset);
  const auto steps = hn::Iota(places, 0);
  const auto first = hn::Add(hn::Set(places, int32_t(flat)), hn::Add(steps, steps));
  store_wide(hn::Add(first, offset), to);
}

void pool_pairs_here(const float* top, const float* bottom, int64_t count, int64_t flat,
                     int64_t length, int64_t* to) {
  const int64_t lanes = int64_t(hn::Lanes(Floats()));
  if (count < lanes) {  // through a copy, so that nothing outside the rows is touched
    float rows[2][2 * hn::MaxLanes(Floats())] = {};
    int64_t places[hn::MaxLanes(Floats())];
    std::copy_n(top, 2 * count, rows[0]);
    std::copy_n(bottom, 2 * count, rows[1]);
    pool_vector(rows[0], rows[1], flat, length, places);
    std::copy_n(places, count, to);
    return;
  }
  for (int64_t t = 0; t < count; t += lanes) {
    const int64_t at = std::min(t, count - lanes);  // the last vector may overlap the one before
    pool_vector(top + 2 * at, bottom + 2 * at, flat + 2 * at, length, to + at);
  }
}

// Elements of one vector of windows, `kStride` apart.
template <int kStride>
HWY_INLINE hn::Vec<Floats> load_apart(const float* from) {
  if constexpr (kStride == 1) return hn::LoadU(Floats(), from);
  hn::Vec<Floats> even, odd;
  load_pairs(from, even, odd);
  return even;
}

template <int kStride>
HWY_INLINE void pool_windows(std::span<const PoolTap> taps, int64_t t, int64_t* to) {
  const Places places;
  hn::Vec<Floats> best = load_apart<kStride>(taps[0].from + t * kStride);
  auto flat = hn::Set(places, int32_t(taps[0].flat));
  for (size_t k = 1; k < taps.size(); k++) {
    take_larger(load_apart<kStride>(taps[k].from + t * kStride),
                hn::Set(places, int32_t(taps[k].flat)), best, flat);
  }
  const auto steps = hn::Iota(places, int32_t(t));
  store_wide(hn::Add(flat, kStride == 1 ? steps : hn::Add(steps, steps)), to + t);
}

bool pool_line_here(std::span<const PoolTap> taps, int64_t stride, int64_t count, int64_t* to) {
  const int64_t lanes = int64_t(hn::Lanes(Floats()));
  if (count < lanes) return false;
  for (int64_t t = 0; t < count; t += lanes) {
    const int64_t at = std::min(t, count - lanes);  // the last vector may overlap the one before
    stride == 1 ? pool_windows<1>(taps, at, to) : pool_windows<2>(taps, at, to);
  }
  return true;
}

}  // namespace fornax::flex::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fornax::flex {

HWY_EXPORT(pool_pairs_here);
HWY_EXPORT(pool_line_here);

void pool_pairs(const float* top, const float* bottom, int64_t count, int64_t flat, int64_t length,
                int64_t* to) {
  HWY_DYNAMIC_DISPATCH(pool_pairs_here)(top, bottom, count, flat, length, to);
}

bool pool_line(std::span<const PoolTap> taps, int64_t stride, int64_t count, int64_t* to) {
  return HWY_DYNAMIC_DISPATCH(pool_line_here)(taps, stride, count, to);
}

}  // namespace fornax::flex
#endif
