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

// Copies of lines with their padding, which stay in the first-level cache.  All lines of a channel
// are copied before the first is read: what has just been stored cannot be loaded at another
// alignment without a wait.
struct Lines {
  float* data;
  int64_t pitch;
  float* at(int64_t line) const { return data + line * pitch; }
};

// Whole vectors: what is behind `count` becomes 0.
HWY_INLINE void copy_line(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += lanes()) {
    hn::StoreU(load_some(from + i, count - i), Floats(), to + i);
  }
}

// The numbers of a vector of tiles, whose lines are `pitch` apart.
HWY_INLINE void source_tiles(const float* from, int64_t pitch, int64_t matrix, float* to) {
  const Floats d;
  V columns[4][4];
  FORNAX_UNROLL for (int i = 0; i < 4; i++) {
    V even, odd, next_even, next_odd;
    load_pairs(from + i * pitch, even, odd);
    load_pairs(from + i * pitch + 2, next_even, next_odd);
    columns[0][i] = hn::Sub(even, next_even);
    columns[1][i] = hn::Add(odd, next_even);
    columns[2][i] = hn::Sub(next_even, odd);
    columns[3][i] = hn::Sub(odd, next_odd);
  }
  FORNAX_UNROLL for (int q = 0; q < 4; q++) {
    const V(&column)[4] = columns[q];
    hn::StoreU(hn::Sub(column[0], column[2]), d, to + q * matrix);
    hn::StoreU(hn::Add(column[1], column[2]), d, to + (4 + q) * matrix);
    hn::StoreU(hn::Sub(column[2], column[1]), d, to + (8 + q) * matrix);
    hn::StoreU(hn::Sub(column[1], column[3]), d, to + (12 + q) * matrix);
  }
}

// Copies what line number l of the tiles reads and no line before it has read; returns where it
// begins among the copies, of which `copied` exist.
HWY_INLINE int64_t copy_source(const SourceCall& call, size_t l, int64_t offset, const Lines& lines,
                               int64_t& copied) {
  const SourceLine& line = call.lines[l];
  const bool goes_on =
      l > 0 && call.lines[l - 1].picture == line.picture && call.lines[l - 1].line + 2 == line.line;
  const int64_t first = goes_on ? copied - 2 : copied;
  for (int64_t i = goes_on ? 2 : 0; i < 4; i++, copied++) {
    const int64_t at = line.line + i;
    float* to = lines.at(copied) + call.before;
    if (at >= 0 && at < call.height) {
      copy_line(line.picture + offset + at * call.row, call.width, to);
    } else {
      std::fill_n(to, whole_vectors(call.width), 0.0f);
    }
  }
  return first;
}

void source_here(const SourceCall& call) {
  const TileMatrices<float>& to = call.to;
  // What a line of tiles reads, whole vectors of it, and where vectors of the picture may end.
  const int64_t pitch =
      std::max(2 * whole_vectors(to.tiles) + 2, call.before + whole_vectors(call.width)) + lanes();
  const int64_t count = int64_t(call.lines.size());
  Workspace memory(size_t(4 * count * pitch) * sizeof(float) + size_t(count) * sizeof(int64_t));
  int64_t* begins = memory.as<int64_t>();
  const Lines lines{reinterpret_cast<float*>(begins + count), pitch};
  std::fill_n(lines.data, 4 * count * pitch, 0.0f);
  for (int64_t channel = 0; channel < to.channels; channel++) {
    const int64_t offset = (call.first + channel) * call.channel;
    int64_t copied = 0;
    for (size_t l = 0; l < call.lines.size(); l++) {
      begins[l] = copy_source(call, l, offset, lines, copied);
    }
    float* out = to.data + channel * to.pitch;
    for (int64_t l = 0; l < count; l++, out += to.tiles) {
      for (int64_t j = 0; j < to.tiles; j += lanes()) {
        source_tiles(lines.at(begins[l]) + 2 * j, pitch, to.matrix, out + j);
      }
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

// The first `count` of the interleaved elements; where there is `room`, anything behind them.
HWY_INLINE void store_some_pairs(const V (&pair)[2], int64_t count, bool room, float* to) {
  if (room || count >= 2 * lanes()) return store_pairs(pair[0], pair[1], to);
  float all[2 * hn::MaxLanes(Floats())];
  store_pairs(pair[0], pair[1], all);
  std::copy_n(all, count, to);
}

// Vectors of tiles from right to left: what a vector writes beyond its line, the lines below
// overwrite where they are still to come.
bool result_here(const ResultCall& call) {
  const Floats d;
  const TileMatrices<const float>& from = call.from;
  const int64_t last = whole_vectors(from.tiles) - lanes();
  V wrong = hn::Zero(d);  // stays 0 while all numbers are finite
  for (int64_t channel = 0; channel < from.channels; channel++) {
    const float* numbers = from.data + channel * from.pitch;
    for (size_t l = 0; l < call.lines.size(); l++, numbers += from.tiles) {
      const ResultLine& line = call.lines[l];
      const bool wide = call.width >= 2 * lanes(), two = line.count > 1;
      const bool goes_on =
          l + 1 < call.lines.size() && call.lines[l + 1].picture == line.picture + 2 * call.width;
      float* to = line.picture + channel * call.channel;
      for (int64_t j = last; j >= 0; j -= lanes()) {
        V top[2], bottom[2];
        result_tiles(numbers + j, from.matrix, top, bottom);
        V sum = hn::Add(hn::Add(top[0], top[1]), hn::Add(bottom[0], bottom[1]));
        if (j == last) {
          sum = hn::IfThenElseZero(hn::FirstN(d, size_t(from.tiles - j)), sum);
        }
        wrong = hn::MulAdd(sum, hn::Zero(d), wrong);
        const int64_t count = call.width - 2 * j;
        store_some_pairs(top, count, wide && two, to + 2 * j);
        if (two) store_some_pairs(bottom, count, wide && goes_on, to + call.width + 2 * j);
      }
    }
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

HWY_INLINE void gradient_tiles(const float* from, int64_t pitch, int64_t matrix, float* to) {
  const Floats d;
  V even[2], odd[2];
  load_pairs(from, even[0], odd[0]);
  load_pairs(from + pitch, even[1], odd[1]);
  const V left[4] = {even[0], hn::Add(even[0], even[1]), hn::Sub(even[0], even[1]),
                     hn::Neg(even[1])};
  const V right[4] = {odd[0], hn::Add(odd[0], odd[1]), hn::Sub(odd[0], odd[1]), hn::Neg(odd[1])};
  FORNAX_UNROLL for (int i = 0; i < 4; i++) {
    float* out = to + 4 * i * matrix;
    hn::StoreU(left[i], d, out);
    hn::StoreU(hn::Add(left[i], right[i]), d, out + matrix);
    hn::StoreU(hn::Sub(left[i], right[i]), d, out + 2 * matrix);
    hn::StoreU(hn::Neg(right[i]), d, out + 3 * matrix);
  }
}

void gradient_here(const GradientCall& call) {
  const TileMatrices<float>& to = call.to;
  const int64_t pitch = std::max(2 * whole_vectors(to.tiles), whole_vectors(call.width));
  const int64_t count = int64_t(call.lines.size());
  Workspace memory(size_t(2 * count * pitch) * sizeof(float));
  const Lines lines{memory.as<float>(), pitch};
  std::fill_n(lines.data, 2 * count * pitch, 0.0f);
  for (int64_t channel = 0; channel < to.channels; channel++) {
    const int64_t offset = (call.first + channel) * call.channel;
    for (int64_t l = 0; l < count; l++) {
      const GradientLine& line = call.lines[size_t(l)];
      for (int64_t i = 0; i < line.count; i++) {
        copy_line(line.picture + offset + i * call.row, call.width, lines.at(2 * l + i));
      }
    }
    float* out = to.data + channel * to.pitch;
    for (int64_t l = 0; l < count; l++, out += to.tiles) {
      for (int64_t j = 0; j < to.tiles; j += lanes()) {
        gradient_tiles(lines.at(2 * l) + 2 * j, pitch, to.matrix, out + j);
      }
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
