// convolve and convolve_input; winograd.h explains the method.
//
// Lines of tiles, of all pictures, are cut into blocks, and results into parts of some panels.  Of
// the larger operand, tiles or weights, each block or part is transformed when it is multiplied,
// matrix by matrix; the smaller one as a whole before that.
#include "backends/flex/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

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

constexpr int64_t kPanelsTogether = 2;  // whose transformed weights stay in the L2 cache

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
    few_tiles_ = sizes_.images * lines_ * tiles_ < results_;
    choose_block();
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan_.result.shape.element_count() == 0) return;
    const InputView source(plan_, 0, inputs), weight(plan_, 1, inputs);
    const Packed pictures = Packed::lines(source), windows = Packed::windows(weight);
    float* result = data_of<float>(outputs[0]);
    bool finite = true;
    for (int64_t group = 0; group < sizes_.groups; group++) {
      finite &= few_tiles_ ? run_parts(pictures, windows, group, result)
                           : run_blocks(pictures, windows, group, result);
    }
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

  // Panels [begin, end) and their results [row, row + rows).
  struct Part {
    int64_t begin, end, row, rows;
  };
  Part part_of(int64_t begin, int64_t end) const {
    return {begin, end, panel_row(begin), panel_row(end) - panel_row(begin)};
  }
  // Elements of one of the 16 matrices of weights; they do not fall on one place of the caches.
  int64_t matrix_size(const Part& part) const { return part.rows * channels_ + kWinogradSlack; }

  // The weights of all results are transformed, then blocks of lines take turns.
  bool run_blocks(const Packed& source, const Packed& windows, int64_t group, float* result) const {
    const Part all = part_of(0, panels_);
    const Ref<Buffer> memory =
        allocate_buffer(0, size_t(kWinogradMatrices * matrix_size(all)) * sizeof(float));
    float* weights = static_cast<float*>(memory->data);
    const int64_t tasks = (panels_ + kPanelsTogether - 1) / kPanelsTogether;
    parallel(tasks, grain_for(channels_ * kPanelsTogether * 200), [&](int64_t begin, int64_t end) {
      pack_weights(windows, group, all, begin * kPanelsTogether,
                   std::min(end * kPanelsTogether, panels_), weights);
    });
    const int64_t lines = sizes_.images * lines_, blocks = (lines + block_ - 1) / block_;
    const int64_t work = kWinogradMatrices * channels_ * results_ * block_ * tiles_;
    std::atomic<bool> finite = true;
    parallel(blocks, grain_for(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * block_, count = std::min(block_, lines - first);
        const int64_t pitch = strips(count) * tile_table<float>().columns;
        const int64_t matrix = channels_ * pitch + kWinogradSlack;
        Workspace numbers(size_t(kWinogradMatrices * matrix) * sizeof(float));
        const TileMatrices<float> tiles{numbers.as<float>(), pitch, matrix, channels_, tiles_};
        transform(source, group, first, count, 0, tiles);
        if (!multiply(all, weights, tiles, group, first, count, result)) finite = false;
      }
    });
    return finite;
  }

  // The tiles of all lines are transformed, then parts of the weights take turns.
  bool run_parts(const Packed& source, const Packed& windows, int64_t group, float* result) const {
    const int64_t lines = sizes_.images * lines_;
    // Every channel may be written by another thread.
    const int64_t pitch = strips(lines) * tile_table<float>().columns + kWinogradSlack;
    const int64_t matrix = channels_ * pitch + kWinogradSlack;
    const Ref<Buffer> memory =
        allocate_buffer(0, size_t(kWinogradMatrices * matrix) * sizeof(float));
    const TileMatrices<float> tiles{static_cast<float*>(memory->data), pitch, matrix, channels_,
                                    tiles_};
    parallel(channels_, grain_for(lines * tiles_ * 16), [&](int64_t begin, int64_t end) {
      transform(source, group, 0, lines, begin, tiles.some(begin, end));
    });
    const int64_t parts = (panels_ + kPanelsTogether - 1) / kPanelsTogether;
    const int64_t work = kWinogradMatrices * channels_ * results_ / parts * lines * tiles_;
    std::atomic<bool> finite = true;
    parallel(parts, grain_for(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const Part part = part_of(i * panels_ / parts, (i + 1) * panels_ / parts);
        Workspace weights(size_t(kWinogradMatrices * matrix_size(part)) * sizeof(float));
        pack_weights(windows, group, part, part.begin, part.end, weights.as<float>());
        if (!multiply(part, weights.as<float>(), tiles, group, 0, lines, result)) finite = false;
      }
    });
    return finite;
  }

  // Panels [begin, end) of a part: [matrix, depth block, panel, channel, row of the panel].
  // Channel by channel for all of them: in one order of the axes or the other, weights that are
  // read one after another lie side by side.
  void pack_weights(const Packed& windows, int64_t group, const Part& part, int64_t begin,
                    int64_t end, float* to) const {
    const float* first = windows.data + group * sizes_.outputs * windows.strides[0];
    const int64_t result = windows.strides[adjoint_ ? 1 : 0];
    // A window that is turned round has the same numbers at other places.
    constexpr int kTurned[4] = {3, 1, 2, 0};
    int64_t places[kWinogradMatrices];
    for (int m = 0; m < kWinogradMatrices; m++) {
      const int place = adjoint_ ? 4 * kTurned[m / 4] + kTurned[m % 4] : m;
      places[m] = place * matrix_size(part);
    }
    for (int64_t channel = 0; channel < channels_; channel++) {
      const int64_t p0 = channel / kDepthBlock * kDepthBlock;
      const int64_t depth = std::min(kDepthBlock, channels_ - p0);
      const float* from = first + channel * windows.strides[adjoint_ ? 0 : 1];
      for (int64_t panel = begin; panel < end; panel++) {
        const int64_t row = panel_row(panel), rows = panel_row(panel + 1) - row;
        pack_windows(from + row * result, result, rows, places,
                     to + p0 * part.rows + (row - part.row) * depth + (channel - p0) * rows);
      }
    }
  }

  // The windows of one channel and the rows of a panel, four at a time.
  static void pack_windows(const float* from, int64_t result, int64_t rows,
                           const int64_t (&places)[kWinogradMatrices], float* to) {
    for (int64_t i = 0; i < rows; i += 4) {
      const float* windows[4];
      for (int64_t k = 0; k < 4; k++) windows[k] = from + std::min(i + k, rows - 1) * result;
      Four numbers[kWinogradMatrices];
      transform_windows(windows, numbers);
      for (int m = 0; m < kWinogradMatrices; m++) {
        float* out = to + places[m] + i;
        if (i + 4 <= rows) {
          std::memcpy(out, &numbers[m], sizeof(Four));
        } else {
          for (int k = 0; k < int(rows - i); k++) out[k] = numbers[m][k];
        }
      }
    }
  }

  // Tiles of lines [first, first + count) and of channels from `channel` on.
  void transform(const Packed& source, int64_t group, int64_t first, int64_t count, int64_t channel,
                 const TileMatrices<float>& to) const {
    std::vector<SourceLine> lines(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; i++) {
      const int64_t image = (first + i) / lines_, line = (first + i) % lines_;
      lines[size_t(i)] = {
          source.data + image * source.strides[0] + group * channels_ * source.strides[1],
          2 * line - before_[0]};
    }
    winograd_source({.lines = lines,
                     .first = channel,
                     .channel = source.strides[1],
                     .row = source.strides[2],
                     .height = source_[0],
                     .width = source_[1],
                     .before = before_[1],
                     .to = to});
  }

  // The results of a part in lines [first, first + count).  False: one may not be finite.
  bool multiply(const Part& part, const float* weights, const TileMatrices<float>& tiles,
                int64_t group, int64_t first, int64_t count, float* result) const {
    const int64_t pitch = strips(count) * tile_table<float>().columns;
    const int64_t matrix = part.rows * pitch + kWinogradSlack;
    Workspace sums(size_t(kWinogradMatrices * matrix) * sizeof(float));
    for (int64_t m = 0; m < kWinogradMatrices; m++) {
      add_products(part, weights + m * matrix_size(part), tiles.data + m * tiles.matrix,
                   tiles.pitch, sums.as<float>() + m * matrix, pitch);
    }
    std::vector<ResultLine> lines(static_cast<size_t>(count));
    const int64_t plane = target_[0] * target_[1], channels = plan_.result.shape[1];
    for (int64_t i = 0; i < count; i++) {
      const int64_t image = (first + i) / lines_, line = (first + i) % lines_;
      lines[size_t(i)] = {
          result + (image * channels + group * results_ + part.row) * plane + 2 * line * target_[1],
          std::min<int64_t>(2, target_[0] - 2 * line)};
    }
    return winograd_result({.lines = lines,
                            .channel = plane,
                            .width = target_[1],
                            .from = {sums.as<float>(), pitch, matrix, part.rows, tiles_}});
  }

  // One of the 16 products.
  void add_products(const Part& part, const float* weights, const float* numbers, int64_t pitch,
                    float* sums, int64_t sums_pitch) const {
    const TileTable<float>& tiles = tile_table<float>();
    int64_t offsets[kDepthBlock];
    for (int64_t p = 0; p < kDepthBlock; p++) offsets[p] = p * pitch;
    for (int64_t p = 0; p < channels_; p += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, channels_ - p);
      for (int64_t panel = part.begin; panel < part.end; panel++) {
        const int64_t row = panel_row(panel) - part.row;
        const int64_t rows = panel_row(panel + 1) - panel_row(panel);
        tiles.packed[rows]({.depth = depth,
                            .a = weights + p * part.rows + row * depth,
                            .b = numbers + p * pitch,
                            .offsets = offsets,
                            .c = sums + row * sums_pitch,
                            .c_row = sums_pitch,
                            .columns = sums_pitch,
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
  bool few_tiles_;         // fewer numbers than the weights have
  int64_t block_ = 1;      // lines
};

}  // namespace

Packed::Packed(const InputView& operand, bool in_place)
    : memory(in_place ? 0 : size_t(operand.type.shape.element_count()) * sizeof(float)) {
  const Layout packed = row_major(operand.type.shape);
  std::copy_n(in_place ? operand.strides : packed.strides, 4, strides);
  data = in_place ? operand.as<float>() : memory.as<float>();
  if (in_place) return;
  copy_box(sizeof(float), operand.type.shape, operand.data, operand.strides, memory.as<float>(),
           packed.strides);
}

Packed Packed::lines(const InputView& operand) {
  return {operand, operand.strides[3] == 1 || operand.type.shape[3] == 1};
}
Packed Packed::windows(const InputView& weight) {
  return {weight, weight.strides[2] == 3 && weight.strides[3] == 1};
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
