// convolve and convolve_input; winograd.h explains the method.
//
// The weights become 16 matrices once per run.  Lines of tiles, of all pictures, are cut into
// blocks: a block's tiles are transformed, multiplied matrix by matrix, and transformed back.
#include "backends/flex/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "backends/flex/gemm.h"
#include "backends/flex/gemm_pack.h"
#include "backends/flex/gemm_tiles.h"
#include "backends/flex/memory.h"
#include "backends/flex/pool.h"
#include "backends/flex/winograd_lines.h"

namespace fornax::flex {
namespace {

constexpr int64_t kDepthBlock = 256;                 // a strip of the source stays in the L1 cache
constexpr int64_t kBlockBytes = int64_t(768) << 10;  // of a block's tiles, before and after
constexpr int64_t kLeastTiles = 48, kMostTiles = 128;
// Channels on both sides for which the products that are saved outweigh the transforms: c * k of
// them against c + k.
constexpr int64_t kWorth = 10;

constexpr int64_t kPanelsTogether = 8;

// Vectors that every processor has.
typedef float Four __attribute__((vector_size(16)));
Four load_four(const float* from) {
  Four vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

// a, (a + b + c) / 2, (a - b + c) / 2 and c.
void transform_three(Four a, Four b, Four c, Four (&to)[4]) {
  const Four outer = 0.5f * (a + c), middle = 0.5f * b;
  to[0] = a;
  to[1] = outer + middle;
  to[2] = outer - middle;
  to[3] = c;
}

// The 16 numbers of four windows; to[m] has number m of each.
void transform_windows(const float* const (&windows)[4], Four (&to)[kWinogradMatrices]) {
  Four lines[4][4];  // of a window: its columns, in the last lane anything
  for (int k = 0; k < 4; k++) {
    const Four last = load_four(windows[k] + 5);
    transform_three(load_four(windows[k]), load_four(windows[k] + 3),
                    __builtin_shufflevector(last, last, 1, 2, 3, 3), lines[k]);
  }
  for (int i = 0; i < 4; i++) {
    const Four a = lines[0][i], b = lines[1][i], c = lines[2][i], e = lines[3][i];
    const Four ac = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    const Four be = __builtin_shufflevector(b, e, 0, 4, 1, 5);
    const Four ac_last = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const Four be_last = __builtin_shufflevector(b, e, 2, 6, 3, 7);
    Four numbers[4];
    transform_three(__builtin_shufflevector(ac, be, 0, 4, 1, 5),
                    __builtin_shufflevector(ac, be, 2, 6, 3, 7),
                    __builtin_shufflevector(ac_last, be_last, 0, 4, 1, 5), numbers);
    for (int q = 0; q < 4; q++) to[4 * i + q] = numbers[q];
  }
}

class Winograd : public Kernel {
 public:
  Winograd(AnchorPlan plan, std::unique_ptr<Kernel> plain)
      : plan_(std::move(plan)),
        plain_(std::move(plain)),
        sizes_(convolve_sizes(plan_)),
        adjoint_(plan_.op != Op::convolve),
        channels_(adjoint_ ? sizes_.outputs : sizes_.inputs),
        results_(adjoint_ ? sizes_.inputs : sizes_.outputs),
        panels_((results_ + tile_table<float>().rows - 1) / tile_table<float>().rows) {
    for (int i = 0; i < 2; i++) {
      source_[i] = adjoint_ ? sizes_.result[i] : sizes_.picture[i];
      target_[i] = adjoint_ ? sizes_.picture[i] : sizes_.result[i];
      before_[i] = adjoint_ ? 2 - sizes_.window.before[i] : sizes_.window.before[i];
    }
    lines_ = (target_[0] + 1) / 2;
    tiles_ = (target_[1] + 1) / 2;
    matrix_ = results_ * channels_ + kWinogradSlack;  // not all at one place of the caches
    choose_block();
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan_.result.shape.element_count() == 0) return;
    const InputView source(plan_, 0, inputs), weight(plan_, 1, inputs);
    const Pictures pictures(source);
    const Ref<Buffer> memory =
        allocate_buffer(0, size_t(sizes_.groups * kWinogradMatrices * matrix_) * sizeof(float));
    float* weights = static_cast<float*>(memory->data);
    pack_weights(weight, weights);
    float* result = data_of<float>(outputs[0]);
    const int64_t blocks = (sizes_.images * lines_ + block_ - 1) / block_;
    const int64_t work = kWinogradMatrices * channels_ * results_ * block_ * tiles_;
    std::atomic<bool> finite = true;
    parallel(blocks * sizes_.groups, grain_for(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / blocks, first = i % blocks * block_;
        const float* matrices = weights + group * kWinogradMatrices * matrix_;
        if (!run_block(pictures, group, first, matrices, result)) finite = false;
      }
    });
    if (!finite) plain_->run(inputs, outputs);
  }

 private:
  int64_t panel_row(int64_t panel) const { return panel * results_ / panels_; }
  int64_t strips(int64_t lines) const {
    const int64_t columns = tile_table<float>().columns;
    return (lines * tiles_ + columns - 1) / columns;
  }

  // Lines per block: about as many tiles as the caches like, and few that fill no strip.
  void choose_block() {
    const int64_t bytes = kWinogradMatrices * (channels_ + results_) * int64_t(sizeof(float));
    const int64_t most = std::clamp(kBlockBytes / bytes, kLeastTiles, kMostTiles);
    block_ = 1;
    for (int64_t lines = 2; lines * tiles_ <= most; lines++) {
      if (lines * strips(block_) >= block_ * strips(lines)) block_ = lines;
    }
  }

  // [group, matrix, depth block, panel, channel, row of the panel]
  void pack_weights(const InputView& weight, float* to) const {
    const Shape& shape = weight.type.shape;
    const Layout packed = row_major(shape);
    const bool in_place = weight.strides[2] == 3 && weight.strides[3] == 1;
    Workspace copy(in_place ? 0 : size_t(shape.element_count()) * sizeof(float));
    if (!in_place) {
      copy_box(sizeof(float), shape, weight.data, weight.strides, copy.as<float>(), packed.strides);
    }
    const int64_t* strides = in_place ? weight.strides : packed.strides;
    const float* data = in_place ? weight.as<float>() : copy.as<float>();
    const int64_t tasks = (panels_ + kPanelsTogether - 1) / kPanelsTogether;
    const int64_t work = channels_ * kPanelsTogether * 200;
    parallel(sizes_.groups * tasks, grain_for(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / tasks, panel = i % tasks * kPanelsTogether;
        pack_panels({data + group * sizes_.outputs * strides[0], strides[adjoint_ ? 1 : 0],
                     strides[adjoint_ ? 0 : 1]},
                    panel, std::min(panel + kPanelsTogether, panels_),
                    to + group * kWinogradMatrices * matrix_);
      }
    });
  }

  struct Windows {
    const float* data;
    int64_t result, channel;  // strides
  };

  // Channel by channel for all these panels: in one order of the axes or the other, weights that
  // are read one after another lie side by side.
  void pack_panels(const Windows& w, int64_t begin, int64_t end, float* to) const {
    for (int64_t channel = 0; channel < channels_; channel++) {
      const int64_t p0 = channel / kDepthBlock * kDepthBlock;
      const int64_t depth = std::min(kDepthBlock, channels_ - p0);
      for (int64_t panel = begin; panel < end; panel++) {
        const int64_t row = panel_row(panel), rows = panel_row(panel + 1) - row;
        pack_windows(w.data + channel * w.channel + row * w.result, w.result, rows,
                     to + p0 * results_ + row * depth + (channel - p0) * rows);
      }
    }
  }

  // The windows of one channel and the rows of a panel, four at a time.
  void pack_windows(const float* from, int64_t result, int64_t rows, float* to) const {
    // A window that is turned round has the same numbers at other places.
    constexpr int kPlaces[2][4] = {{0, 1, 2, 3}, {3, 1, 2, 0}};
    const int(&places)[4] = kPlaces[adjoint_ ? 1 : 0];
    for (int64_t i = 0; i < rows; i += 4) {
      const float* windows[4];
      for (int64_t k = 0; k < 4; k++) windows[k] = from + std::min(i + k, rows - 1) * result;
      Four numbers[kWinogradMatrices];
      transform_windows(windows, numbers);
      for (int m = 0; m < kWinogradMatrices; m++) {
        float* out = to + (4 * places[m / 4] + places[m % 4]) * matrix_ + i;
        if (i + 4 <= rows) {
          std::memcpy(out, &numbers[m], sizeof(Four));
        } else {
          for (int k = 0; k < int(rows - i); k++) out[k] = numbers[m][k];
        }
      }
    }
  }

  // False: a result may not be finite.
  bool run_block(const Pictures& source, int64_t group, int64_t first, const float* weights,
                 float* result) const {
    const int64_t count = std::min(block_, sizes_.images * lines_ - first);
    const int64_t pitch = strips(count) * tile_table<float>().columns;
    const int64_t before = channels_ * pitch + kWinogradSlack;
    const int64_t after = results_ * pitch + kWinogradSlack;
    Workspace memory(size_t(kWinogradMatrices * (before + after)) * sizeof(float));
    float* numbers = memory.as<float>();
    float* sums = numbers + kWinogradMatrices * before;
    SourceLine from[kMostTiles];
    ResultLine to[kMostTiles];
    const Shape& shape = plan_.result.shape;
    const int64_t plane = target_[0] * target_[1];
    for (int64_t i = 0; i < count; i++) {
      const int64_t image = (first + i) / lines_, line = (first + i) % lines_;
      from[i] = {source.data + image * source.strides[0] + group * channels_ * source.strides[1],
                 2 * line - before_[0]};
      to[i] = {result + (image * shape[1] + group * results_) * plane + 2 * line * target_[1],
               std::min<int64_t>(2, target_[0] - 2 * line)};
    }
    winograd_source({.lines = {from, size_t(count)},
                     .first = 0,
                     .channel = source.strides[1],
                     .row = source.strides[2],
                     .height = source_[0],
                     .width = source_[1],
                     .before = before_[1],
                     .to = {numbers, pitch, before, channels_, tiles_}});
    for (int64_t m = 0; m < kWinogradMatrices; m++) {
      multiply(weights + m * matrix_, numbers + m * before, pitch, sums + m * after);
    }
    return winograd_result({.lines = {to, size_t(count)},
                            .channel = plane,
                            .width = target_[1],
                            .from = {sums, pitch, after, results_, tiles_}});
  }

  // One of the 16 products, of matrices whose lines are `pitch` apart.
  void multiply(const float* weights, const float* numbers, int64_t pitch, float* sums) const {
    const TileTable<float>& tiles = tile_table<float>();
    int64_t offsets[kDepthBlock];
    for (int64_t p = 0; p < kDepthBlock; p++) offsets[p] = p * pitch;
    for (int64_t p = 0; p < channels_; p += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, channels_ - p);
      for (int64_t panel = 0; panel < panels_; panel++) {
        const int64_t row = panel_row(panel), rows = panel_row(panel + 1) - row;
        tiles.packed[rows]({.depth = depth,
                            .a = weights + p * results_ + row * depth,
                            .b = numbers + p * pitch,
                            .offsets = offsets,
                            .c = sums + row * pitch,
                            .c_row = pitch,
                            .columns = pitch,
                            .accumulate = p > 0});
      }
    }
  }

  AnchorPlan plan_;
  std::unique_ptr<Kernel> plain_;
  ConvolveSizes sizes_;
  bool adjoint_;
  int64_t channels_, results_, panels_;  // per group: read, written, and panels of those
  int64_t source_[2], target_[2], before_[2];
  int64_t lines_, tiles_;  // lines of tiles per picture, tiles per line
  int64_t matrix_, block_ = 1;
};

}  // namespace

Pictures::Pictures(const InputView& operand)
    : in_place(operand.strides[3] == 1 || operand.type.shape[3] == 1),
      memory(in_place ? 0 : size_t(operand.type.shape.element_count()) * sizeof(float)) {
  const Layout packed = row_major(operand.type.shape);
  std::copy_n(in_place ? operand.strides : packed.strides, 4, strides);
  data = in_place ? operand.as<float>() : memory.as<float>();
  if (in_place) return;
  copy_box(sizeof(float), operand.type.shape, operand.data, operand.strides, memory.as<float>(),
           packed.strides);
}

bool suits_winograd(const AnchorPlan& plan) {
  if (plan.result.dtype != DType::f32) return false;
  const ConvolveSizes sizes = convolve_sizes(plan);
  for (int i = 0; i < 2; i++) {
    const Window2d& w = sizes.window;
    if (w.size[i] != 3 || w.stride[i] != 1 || w.dilation[i] != 1) return false;
    if (w.before[i] > 2 || sizes.result[i] < 4) return false;
  }
  return sizes.inputs * sizes.outputs >= kWorth * (sizes.inputs + sizes.outputs);
}

std::unique_ptr<Kernel> prepare_winograd(AnchorPlan plan, std::unique_ptr<Kernel> plain) {
  return std::make_unique<Winograd>(std::move(plan), std::move(plain));
}

}  // namespace fornax::flex
