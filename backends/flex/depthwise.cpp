// Convolutions of f32 where every channel is on its own: a line of results is the sum of shifted
// lines of the source.  A few lines at a time are copied with their padding, and stay in the
// first-level cache while the windows pass over them.
#include <hwy/cache_control.h>

#include <algorithm>
#include <span>

#include "backends/flex/convolve.h"
#include "backends/flex/gemm.h"
#include "backends/flex/gemm_pack.h"
#include "backends/flex/pipeline.h"
#include "backends/flex/pool.h"
#include "backends/flex/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/depthwise.cpp"
#include <hwy/foreach_target.h>  // after targets.h, which chooses them
// clang-format off
#include <hwy/highway.h>
// clang-format on

#ifndef FORNAX_DEPTHWISE_ONCE
#define FORNAX_DEPTHWISE_ONCE
namespace fornax::flex {

// A place of the window, on one line: result t reads from[t * stride].
struct LineTap {
  const float* from;
  float weight;
};

}  // namespace fornax::flex
#endif

HWY_BEFORE_NAMESPACE();
namespace fornax::flex::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;

// Every second element is the even half of a pair.
template <int kStride>
HWY_INLINE V load_apart(const float* from) {
  const Floats d;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kStride == 2) {
    V even, odd;
    hn::LoadInterleaved2(d, from, even, odd);
    return even;
  }
#endif
  return hn::LoadU(d, from);
}

// kVectors vectors of results from t on.
template <int kStride, bool kStream, int kVectors>
HWY_INLINE void sum_taps(std::span<const LineTap> taps, int64_t t, float* to) {
  const Floats d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  V sums[kVectors];
  FORNAX_UNROLL for (int v = 0; v < kVectors; v++) sums[v] = hn::Zero(d);
  for (const LineTap& tap : taps) {
    const V weight = hn::Set(d, tap.weight);
    const float* from = tap.from + t * kStride;
    FORNAX_UNROLL for (int v = 0; v < kVectors; v++) {
      sums[v] = hn::MulAdd(weight, load_apart<kStride>(from + v * lanes * kStride), sums[v]);
    }
  }
  FORNAX_UNROLL for (int v = 0; v < kVectors; v++) {
    kStream ? hn::Stream(sums[v], d, to + v * lanes) : hn::StoreU(sums[v], d, to + v * lanes);
  }
}

template <int kStride, bool kStream>
HWY_INLINE void sum_line(std::span<const LineTap> taps, int64_t count, float* to) {
  const int64_t lanes = int64_t(hn::Lanes(Floats()));
  int64_t t = 0;
  for (; t + 4 * lanes <= count; t += 4 * lanes) sum_taps<kStride, kStream, 4>(taps, t, to + t);
  for (; t + lanes <= count; t += lanes) sum_taps<kStride, kStream, 1>(taps, t, to + t);
  if (t == count) return;
  float rest[hn::MaxLanes(Floats())];
  sum_taps<kStride, false, 1>(taps, t, rest);
  std::copy_n(rest, count - t, to + t);
}

// `streamed`: past the caches, where the line is aligned to vectors.
void line_here(std::span<const LineTap> taps, int64_t stride, int64_t count, bool streamed,
               float* to) {
  const bool aligned = reinterpret_cast<uintptr_t>(to) % (hn::Lanes(Floats()) * sizeof(float)) == 0;
  if (streamed && aligned) {
    stride == 1 ? sum_line<1, true>(taps, count, to) : sum_line<2, true>(taps, count, to);
  } else {
    stride == 1 ? sum_line<1, false>(taps, count, to) : sum_line<2, false>(taps, count, to);
  }
}

}  // namespace fornax::flex::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fornax::flex {
namespace {

HWY_EXPORT(line_here);

constexpr int64_t kMostPlaces = 64;     // of a window
constexpr int64_t kLineSlack = 2 * 16;  // what vectors may read behind a line

class Depthwise : public Kernel {
 public:
  explicit Depthwise(AnchorPlan plan) : plan_(std::move(plan)), sizes_(convolve_sizes(plan_)) {
    const Window2d& w = sizes_.window;
    adjoint_ = plan_.op != Op::convolve;
    for (int i = 0; i < 2; i++) {
      source_[i] = adjoint_ ? sizes_.result[i] : sizes_.picture[i];
      target_[i] = adjoint_ ? sizes_.picture[i] : sizes_.result[i];
      before_[i] = adjoint_ ? w.dilation[i] * (w.size[i] - 1) - w.before[i] : w.before[i];
    }
    ring_ = w.dilation[0] * (w.size[0] - 1) + 1;
    const int64_t read =
        (target_[1] - 1) * w.stride[1] + w.dilation[1] * (w.size[1] - 1) + 1 + kLineSlack;
    pitch_ = std::max(read, before_[1] + source_[1]) + 15;
    pitch_ = pitch_ / 16 * 16;
    const int64_t bytes = plan_.result.shape.element_count() * int64_t(sizeof(float));
    streamed_ = stores_of(bytes) == Stores::streamed;
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan_.result.shape.element_count() == 0) return;
    const InputView source(plan_, 0, inputs), weight(plan_, 1, inputs);
    float* result = data_of<float>(outputs[0]);
    const int64_t plane = target_[0] * target_[1], places = places_of_window();
    parallel(
        sizes_.images * sizes_.groups, grain_for(plane * places), [&](int64_t begin, int64_t end) {
          // The lines of the ring, and one of zeros.
          Workspace memory(size_t((ring_ + 1) * pitch_) * sizeof(float));
          std::fill_n(memory.as<float>(), (ring_ + 1) * pitch_, 0.0f);
          for (int64_t i = begin; i < end; i++) {
            const int64_t image = i / sizes_.groups, group = i % sizes_.groups;
            run_plane(source.as<float>() + image * source.strides[0] + group * source.strides[1],
                      source.strides, weight.as<float>() + group * weight.strides[0],
                      weight.strides, memory.as<float>(), result + i * plane);
          }
        });
  }

 private:
  int64_t places_of_window() const { return sizes_.window.size[0] * sizes_.window.size[1]; }

  void run_plane(const float* source, const int64_t* strides, const float* weight,
                 const int64_t* weight_strides, float* ring, float* to) const {
    const Window2d& w = sizes_.window;
    const float* zeros = ring + ring_ * pitch_;
    LineTap taps[kMostPlaces];
    for (int64_t k = 0; k < places_of_window(); k++) {
      const int64_t at = adjoint_ ? places_of_window() - 1 - k : k;
      taps[k].weight =
          weight[at / w.size[1] * weight_strides[2] + at % w.size[1] * weight_strides[3]];
    }
    int64_t first = -before_[0], copied = 0;  // lines of the source
    // Line `first + i` of the source is, or was, line `slot + i` of the ring, which goes round.
    int64_t slot = (first % ring_ + ring_) % ring_;
    const auto at = [&](int64_t i) {
      return ring + (slot + i < ring_ ? slot + i : slot + i - ring_) * pitch_;
    };
    for (int64_t row = 0; row < target_[0]; row++) {
      copied = std::max(copied, first);
      for (; copied < std::min(first + ring_, source_[0]); copied++) {
        copy_line(source + copied * strides[2], strides[3], at(copied - first) + before_[1]);
      }
      LineTap* tap = taps;
      for (int64_t kh = 0; kh < w.size[0]; kh++) {
        const int64_t i = kh * w.dilation[0];
        const bool inside = first + i >= 0 && first + i < source_[0];
        const float* line = inside ? at(i) : zeros;
        for (int64_t kw = 0; kw < w.size[1]; kw++, tap++) tap->from = line + kw * w.dilation[1];
      }
      first += w.stride[0];
      for (slot += w.stride[0]; slot >= ring_;) slot -= ring_;
      HWY_DYNAMIC_DISPATCH(line_here)
      ({taps, size_t(places_of_window())}, w.stride[1], target_[1], streamed_,
       to + row * target_[1]);
    }
  }

  void copy_line(const float* from, int64_t step, float* to) const {
    if (step == 1) {
      std::copy_n(from, source_[1], to);
    } else {
      for (int64_t i = 0; i < source_[1]; i++) to[i] = from[i * step];
    }
  }

  AnchorPlan plan_;
  ConvolveSizes sizes_;
  bool adjoint_;
  int64_t source_[2], target_[2], before_[2];
  int64_t ring_;   // lines that a window touches and those between
  int64_t pitch_;  // elements per line of the ring
  bool streamed_;
};

}  // namespace

bool suits_depthwise(const AnchorPlan& plan) {
  const ConvolveSizes sizes = convolve_sizes(plan);
  const Window2d& w = sizes.window;
  if (plan.result.dtype != DType::f32 || sizes.inputs != 1 || sizes.outputs != 1) return false;
  if (w.size[0] * w.size[1] > kMostPlaces) return false;
  for (int i = 0; i < 2; i++) {
    if (w.stride[i] > (plan.op == Op::convolve ? 2 : 1)) return false;
    if (plan.op != Op::convolve && w.before[i] > w.dilation[i] * (w.size[i] - 1)) return false;
  }
  return true;
}

std::unique_ptr<Kernel> prepare_depthwise(AnchorPlan plan) {
  return std::make_unique<Depthwise>(std::move(plan));
}

}  // namespace fornax::flex
#endif  // HWY_ONCE
