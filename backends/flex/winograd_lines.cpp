#include "backends/flex/winograd_lines.h"

#include <algorithm>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/winograd_lines.cpp"
#include <hwy/foreach_target.h>  // after targets.h, which chooses them
// clang-format off
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fornax::flex::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;

inline int64_t lanes() { return int64_t(hn::Lanes(Floats())); }
inline int64_t whole_vectors(int64_t count) { return (count + lanes() - 1) / lanes() * lanes(); }

HWY_INLINE void load_pairs(const float* from, V& even, V& odd) {
#if HWY_TARGET == HWY_SCALAR
  even = hn::LoadU(Floats(), from);
  odd = hn::LoadU(Floats(), from + 1);
#else
  hn::LoadInterleaved2(Floats(), from, even, odd);
#endif
}

HWY_INLINE void store_pairs(V even, V odd, float* to) {
#if HWY_TARGET == HWY_SCALAR
  hn::StoreU(even, Floats(), to);
  hn::StoreU(odd, Floats(), to + 1);
#else
  hn::StoreInterleaved2(even, odd, Floats(), to);
#endif
}

// Up to `count` elements, 0 behind them.
HWY_INLINE V load_some(const float* from, int64_t count) {
  if (count >= lanes()) return hn::LoadU(Floats(), from);
  return hn::MaskedLoad(hn::FirstN(Floats(), size_t(count)), Floats(), from);
}

// Lines of the source, combined with each other; columns are combined later.
struct Combined {
  float* data;
  int64_t pitch;
};

// One vector of each line.
HWY_INLINE void combine_source(const float* const* from, int64_t at, int64_t count, float* to,
                               int64_t pitch) {
  const Floats d;
  const V a = load_some(from[0] + at, count), b = load_some(from[1] + at, count);
  const V c = load_some(from[2] + at, count), e = load_some(from[3] + at, count);
  hn::StoreU(hn::Sub(a, c), d, to + at);
  hn::StoreU(hn::Add(b, c), d, to + pitch + at);
  hn::StoreU(hn::Sub(c, b), d, to + 2 * pitch + at);
  hn::StoreU(hn::Sub(b, e), d, to + 3 * pitch + at);
}

HWY_INLINE void source_tiles(const Combined& lines, int64_t tiles, int64_t matrix, float* to) {
  const Floats d;
  for (int64_t j = 0; j < tiles; j += lanes()) {
    FORNAX_UNROLL for (int i = 0; i < 4; i++) {
      const float* from = lines.data + i * lines.pitch + 2 * j;
      V even, odd, next_even, next_odd;
      load_pairs(from, even, odd);
      load_pairs(from + 2, next_even, next_odd);
      float* out = to + 4 * i * matrix + j;
      hn::StoreU(hn::Sub(even, next_even), d, out);
      hn::StoreU(hn::Add(odd, next_even), d, out + matrix);
      hn::StoreU(hn::Sub(next_even, odd), d, out + 2 * matrix);
      hn::StoreU(hn::Sub(odd, next_odd), d, out + 3 * matrix);
    }
  }
}

void source_here(const SourceCall& call) {
  const TileMatrices<float>& to = call.to;
  // What a line of tiles reads, whole vectors of it, and where vectors of the picture may end.
  const int64_t pitch =
      std::max(2 * whole_vectors(to.tiles) + 2, call.before + whole_vectors(call.width)) + lanes();
  Workspace memory(size_t(4 * pitch + call.width) * sizeof(float));
  const Combined combined{memory.as<float>(), pitch};
  float* zeros = combined.data + 4 * pitch;
  std::fill_n(combined.data, 4 * pitch + call.width, 0.0f);
  for (int64_t channel = 0; channel < to.channels; channel++) {
    float* out = to.data + channel * to.pitch;
    const int64_t offset = (call.first + channel) * call.channel;
    for (const SourceLine& line : call.lines) {
      const float* from[4];
      for (int64_t i = 0; i < 4; i++) {
        const bool inside = line.line + i >= 0 && line.line + i < call.height;
        from[i] = inside ? line.picture + offset + (line.line + i) * call.row : zeros;
      }
      for (int64_t at = 0; at < call.width; at += lanes()) {
        combine_source(from, at, call.width - at, combined.data + call.before, pitch);
      }
      source_tiles(combined, to.tiles, to.matrix, out);
      out += to.tiles;
    }
  }
}

// The results of a vector of tiles.
HWY_INLINE void result_tiles(const float* from, int64_t matrix, V (&top)[2], V (&bottom)[2]) {
  const Floats d;
  V upper[4], lower[4];
  FORNAX_UNROLL for (int q = 0; q < 4; q++) {
    const float* column = from + q * matrix;
    const V a = hn::LoadU(d, column), b = hn::LoadU(d, column + 4 * matrix);
    const V c = hn::LoadU(d, column + 8 * matrix), e = hn::LoadU(d, column + 12 * matrix);
    upper[q] = hn::Add(hn::Add(a, b), c);
    lower[q] = hn::Sub(hn::Sub(b, c), e);
  }
  top[0] = hn::Add(hn::Add(upper[0], upper[1]), upper[2]);
  top[1] = hn::Sub(hn::Sub(upper[1], upper[2]), upper[3]);
  bottom[0] = hn::Add(hn::Add(lower[0], lower[1]), lower[2]);
  bottom[1] = hn::Sub(hn::Sub(lower[1], lower[2]), lower[3]);
}

// The first `count` of the interleaved elements.
HWY_INLINE void store_some_pairs(const V (&pair)[2], int64_t count, float* to) {
  if (count >= 2 * lanes()) return store_pairs(pair[0], pair[1], to);
  float all[2 * hn::MaxLanes(Floats())];
  store_pairs(pair[0], pair[1], all);
  std::copy_n(all, count, to);
}

bool result_here(const ResultCall& call) {
  const Floats d;
  const TileMatrices<const float>& from = call.from;
  V wrong = hn::Zero(d);  // stays 0 while all numbers are finite
  for (int64_t channel = 0; channel < from.channels; channel++) {
    const float* numbers = from.data + channel * from.pitch;
    for (const ResultLine& line : call.lines) {
      float* to = line.picture + channel * call.channel;
      for (int64_t j = 0; j < from.tiles; j += lanes()) {
        V top[2], bottom[2];
        result_tiles(numbers + j, from.matrix, top, bottom);
        V sum = hn::Add(hn::Add(top[0], top[1]), hn::Add(bottom[0], bottom[1]));
        if (from.tiles - j < lanes()) {
          sum = hn::IfThenElseZero(hn::FirstN(d, size_t(from.tiles - j)), sum);
        }
        wrong = hn::MulAdd(sum, hn::Zero(d), wrong);
        const int64_t count = call.width - 2 * j;
        store_some_pairs(top, count, to + 2 * j);
        if (line.count > 1) store_some_pairs(bottom, count, to + call.width + 2 * j);
      }
      numbers += from.tiles;
    }
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

HWY_INLINE void gradient_tiles(const Combined& lines, int64_t tiles, int64_t matrix, float* to) {
  const Floats d;
  for (int64_t j = 0; j < tiles; j += lanes()) {
    V even[2], odd[2];
    load_pairs(lines.data + 2 * j, even[0], odd[0]);
    load_pairs(lines.data + lines.pitch + 2 * j, even[1], odd[1]);
    const V left[4] = {even[0], hn::Add(even[0], even[1]), hn::Sub(even[0], even[1]),
                       hn::Neg(even[1])};
    const V right[4] = {odd[0], hn::Add(odd[0], odd[1]), hn::Sub(odd[0], odd[1]), hn::Neg(odd[1])};
    FORNAX_UNROLL for (int i = 0; i < 4; i++) {
      float* out = to + 4 * i * matrix + j;
      hn::StoreU(left[i], d, out);
      hn::StoreU(hn::Add(left[i], right[i]), d, out + matrix);
      hn::StoreU(hn::Sub(left[i], right[i]), d, out + 2 * matrix);
      hn::StoreU(hn::Neg(right[i]), d, out + 3 * matrix);
    }
  }
}

void gradient_here(const GradientCall& call) {
  const Floats d;
  const TileMatrices<float>& to = call.to;
  const int64_t pitch = std::max(2 * whole_vectors(to.tiles), whole_vectors(call.width));
  Workspace memory(size_t(2 * pitch + call.width) * sizeof(float));
  const Combined lines{memory.as<float>(), pitch};
  float* zeros = lines.data + 2 * pitch;
  std::fill_n(lines.data, 2 * pitch + call.width, 0.0f);
  for (int64_t channel = 0; channel < to.channels; channel++) {
    float* out = to.data + channel * to.pitch;
    for (const GradientLine& line : call.lines) {
      const float* first = line.picture + (call.first + channel) * call.channel;
      const float* second = line.count > 1 ? first + call.row : zeros;
      for (int64_t at = 0; at < call.width; at += lanes()) {
        const int64_t count = call.width - at;
        hn::StoreU(load_some(first + at, count), d, lines.data + at);
        hn::StoreU(load_some(second + at, count), d, lines.data + pitch + at);
      }
      gradient_tiles(lines, to.tiles, to.matrix, out);
      out += to.tiles;
    }
  }
}

}  // namespace fornax::flex::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fornax::flex {

HWY_EXPORT(source_here);
HWY_EXPORT(result_here);
HWY_EXPORT(gradient_here);

void winograd_source(const SourceCall& call) { HWY_DYNAMIC_DISPATCH(source_here)(call); }
bool winograd_result(const ResultCall& call) { return HWY_DYNAMIC_DISPATCH(result_here)(call); }
void winograd_gradient(const GradientCall& call) { HWY_DYNAMIC_DISPATCH(gradient_here)(call); }

}  // namespace fornax::flex
#endif  // HWY_ONCE
