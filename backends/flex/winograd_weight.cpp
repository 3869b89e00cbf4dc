// convolve_weight; winograd.h explains the method.
//
// The gradient of the 16 matrices that a window becomes is a product each: of the results'
// gradients by the source's tiles, over all tiles.  Pictures are taken by chunks, whose size
// depends on the shapes alone.
#include <algorithm>
#include <atomic>

#include "backends/flex/gemm.h"
#include "backends/flex/gemm_pack.h"
#include "backends/flex/memory.h"
#include "backends/flex/pool.h"
#include "backends/flex/winograd.h"
#include "backends/flex/winograd_lines.h"

namespace fornax::flex {
namespace {

constexpr int64_t kChunkBytes = int64_t(8) << 20;  // of transformed tiles
constexpr int64_t kColumns = 64;                   // windows that are transformed back at a time

// The nine numbers of each of `count` windows from their 16; windows lie one after another.
void transform_back(const float* from, int64_t matrix, int64_t count, float* to) {
  float columns[12][kColumns], window[9][kColumns];
  for (int i = 0; i < 4; i++) {
    const float *a = from + 4 * i * matrix, *b = a + matrix, *c = b + matrix, *e = c + matrix;
    for (int64_t t = 0; t < count; t++) {
      columns[3 * i][t] = a[t] + 0.5f * (b[t] + c[t]);
      columns[3 * i + 1][t] = 0.5f * (b[t] - c[t]);
      columns[3 * i + 2][t] = 0.5f * (b[t] + c[t]) + e[t];
    }
  }
  for (int j = 0; j < 3; j++) {
    const float *a = columns[j], *b = columns[3 + j], *c = columns[6 + j], *e = columns[9 + j];
    for (int64_t t = 0; t < count; t++) {
      window[j][t] = a[t] + 0.5f * (b[t] + c[t]);
      window[3 + j][t] = 0.5f * (b[t] - c[t]);
      window[6 + j][t] = 0.5f * (b[t] + c[t]) + e[t];
    }
  }
  for (int64_t t = 0; t < count; t++) {
    for (int k = 0; k < 9; k++) to[9 * t + k] = window[k][t];
  }
}

class WinogradWeight : public Kernel {
 public:
  WinogradWeight(AnchorPlan plan, std::unique_ptr<Kernel> plain)
      : plan_(std::move(plan)), plain_(std::move(plain)), sizes_(convolve_sizes(plan_)) {
    lines_ = (sizes_.result[0] + 1) / 2;
    tiles_ = (sizes_.result[1] + 1) / 2;
    matrix_ = sizes_.outputs * sizes_.inputs;
    const int64_t bytes = kWinogradMatrices * (sizes_.inputs + sizes_.outputs) * lines_ * tiles_ *
                          int64_t(sizeof(float));
    chunk_ = std::max<int64_t>(1, kChunkBytes / bytes);
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const InputView x(plan_, 0, inputs), dy(plan_, 1, inputs);
    if (plan_.result.shape.element_count() == 0) return;
    float* to = data_of<float>(outputs[0]);
    if (sizes_.images == 0) return void(std::fill_n(to, matrix_ * sizes_.groups * 9, 0.0f));
    const Packed pictures = Packed::lines(x), gradients = Packed::lines(dy);
    const Ref<Buffer> memory =
        allocate_buffer(0, size_t(kWinogradMatrices * matrix_) * sizeof(float));
    float* sums = static_cast<float*>(memory->data);
    bool finite = true;
    for (int64_t group = 0; group < sizes_.groups; group++) {
      for (int64_t image = 0; image < sizes_.images; image += chunk_) {
        add_chunk(pictures, gradients, group, image, std::min(chunk_, sizes_.images - image), sums);
      }
      finite &= write_back(sums, to + group * matrix_ * 9);
    }
    if (!finite) plain_->run(inputs, outputs);
  }

 private:
  // Adds to the sums what `count` pictures give; the first ones overwrite them.
  void add_chunk(const Packed& x, const Packed& dy, int64_t group, int64_t first, int64_t count,
                 float* sums) const {
    const int64_t depth = count * lines_ * tiles_;
    // Every channel may be written by another thread.
    const int64_t pitch = (depth + 15) / 16 * 16 + kWinogradSlack;
    const int64_t channels = sizes_.inputs + sizes_.outputs, matrix = channels * pitch + 16;
    const Ref<Buffer> memory =
        allocate_buffer(0, size_t(kWinogradMatrices * matrix) * sizeof(float));
    const TileMatrices<float> all{static_cast<float*>(memory->data), pitch, matrix, channels,
                                  tiles_};
    transform(x, dy, group, first, count, all);
    parallel(kWinogradMatrices, grain_for(matrix_ * depth), [&](int64_t begin, int64_t end) {
      Workspace more(first == 0 ? 0 : size_t(matrix_) * sizeof(float));
      for (int64_t m = begin; m < end; m++) {
        const float* source = all.data + m * matrix;
        const Matrix left{source + sizes_.inputs * pitch, DType::f32, pitch, 1};
        const Matrix right{source, DType::f32, 1, pitch};
        float* to = first == 0 ? sums + m * matrix_ : more.as<float>();
        gemm<float>({sizes_.outputs, sizes_.inputs, depth}, left, right, to);
        if (first == 0) continue;
        for (int64_t i = 0; i < matrix_; i++) sums[m * matrix_ + i] += to[i];
      }
    });
  }

  // Channels of x, then those of dy.
  void transform(const Packed& x, const Packed& dy, int64_t group, int64_t first, int64_t count,
                 const TileMatrices<float>& all) const {
    std::vector<SourceLine> from;
    std::vector<GradientLine> gradients;
    const Window2d& w = sizes_.window;
    for (int64_t i = 0; i < count * lines_; i++) {
      const int64_t image = first + i / lines_, line = 2 * (i % lines_);
      from.push_back({x.data + image * x.strides[0] + group * sizes_.inputs * x.strides[1],
                      line - w.before[0]});
      gradients.push_back({dy.data + image * dy.strides[0] +
                               group * sizes_.outputs * dy.strides[1] + line * dy.strides[2],
                           std::min<int64_t>(2, sizes_.result[0] - line)});
    }
    const int64_t work = count * lines_ * tiles_ * 16;
    parallel(all.channels, grain_for(work), [&](int64_t begin, int64_t end) {
      const int64_t split = std::clamp(sizes_.inputs, begin, end);
      winograd_source({.lines = from,
                       .first = begin,
                       .channel = x.strides[1],
                       .row = x.strides[2],
                       .height = sizes_.picture[0],
                       .width = sizes_.picture[1],
                       .before = w.before[1],
                       .to = all.some(begin, split)});
      winograd_gradient({.lines = gradients,
                         .first = split - sizes_.inputs,
                         .channel = dy.strides[1],
                         .row = dy.strides[2],
                         .width = sizes_.result[1],
                         .to = all.some(split, end)});
    });
  }

  // False: some number is not finite.
  bool write_back(const float* sums, float* to) const {
    std::atomic<bool> finite = true;
    parallel(sizes_.outputs, grain_for(sizes_.inputs * 40), [&](int64_t begin, int64_t end) {
      int wrong = 0;
      for (int64_t i = begin * sizes_.inputs; i < end * sizes_.inputs; i += kColumns) {
        const int64_t count = std::min(kColumns, end * sizes_.inputs - i);
        transform_back(sums + i, matrix_, count, to + 9 * i);
        for (int64_t k = 9 * i; k < 9 * (i + count); k++) wrong |= to[k] - to[k] != 0;
      }
      if (wrong != 0) finite = false;
    });
    return finite;
  }

  AnchorPlan plan_;
  std::unique_ptr<Kernel> plain_;
  ConvolveSizes sizes_;
  int64_t lines_, tiles_;  // lines of tiles per picture, tiles per line
  int64_t matrix_, chunk_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_winograd_weight(AnchorPlan plan, std::unique_ptr<Kernel> plain) {
  return std::make_unique<WinogradWeight>(std::move(plan), std::move(plain));
}

}  // namespace fornax::flex
