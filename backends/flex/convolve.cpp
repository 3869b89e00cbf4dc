// convolve and convolve_input for floats; convolve.h explains the method.
//
// Per picture and group: fill the planes, then for a block of flat plane positions and a block of
// the depth (channels times taps) run the tiles over panels of output channels, and copy what lies
// inside the result out, rounded to its dtype.  Flat positions between two lines are computed and
// dropped.  A picture that is like its planes is read where it lies.  Where there are several
// panels, what the tiles read is packed first: planes are pages apart, and the tiles of all panels
// would look up the address of each.
#include "backends/flex/convolve.h"

#include <algorithm>
#include <cstring>

#include "backends/flex/gemm.h"
#include "backends/flex/gemm_pack.h"
#include "backends/flex/gemm_tiles.h"
#include "backends/flex/pool.h"
#include "backends/flex/winograd.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr int64_t kDepthBlock = 256;  // a strip of columns stays in the first-level cache
constexpr int64_t kRowBlock = 144;    // panels of as many results stay in the second-level cache
constexpr int64_t kRunBlock = 256;    // columns that are packed at a time
constexpr int64_t kPackedPanels = 3;  // so many share packed columns

// What is computed for one pair of axis passes.
struct Pass {
  const AxisPass* rows;
  const AxisPass* columns;
  std::vector<int64_t> shifts;   // per tap: offset in the planes of a channel
  std::vector<int64_t> kernels;  // per tap: offset in the weights
  int64_t depth = 0;             // channels times taps
};

template <class T>
class Convolution : public Kernel {
 public:
  explicit Convolution(AnchorPlan plan)
      : plan_(std::move(plan)),
        sizes_(convolve_sizes(plan_)),
        adjoint_(plan_.op != Op::convolve),
        planes_(adjoint_ ? adjoint_axis(sizes_.window, 0, sizes_.result[0])
                         : window_axis(sizes_.window, 0, sizes_.picture[0]),
                adjoint_ ? adjoint_axis(sizes_.window, 1, sizes_.result[1])
                         : window_axis(sizes_.window, 1, sizes_.picture[1])),
        channels_(adjoint_ ? sizes_.outputs : sizes_.inputs),
        results_(adjoint_ ? sizes_.inputs : sizes_.outputs),
        panels_((results_ + tile_table<T>().rows - 1) / tile_table<T>().rows) {
    const int64_t* weight = plan_.inputs[1].layout.strides;
    for (const AxisPass& rows : planes_.rows.passes) {
      for (const AxisPass& columns : planes_.columns.passes) {
        Pass pass{&rows, &columns, {}, {}, 0};
        for (const AxisTap& r : rows.taps) {
          for (const AxisTap& c : columns.taps) {
            pass.shifts.push_back(planes_.offset(r, c));
            pass.kernels.push_back(r.kernel * weight[2] + c.kernel * weight[3]);
          }
        }
        pass.depth = channels_ * int64_t(pass.shifts.size());
        passes_.push_back(std::move(pass));
      }
    }
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan_.result.shape.element_count() == 0) return;
    const InputView source(plan_, 0, inputs), weight(plan_, 1, inputs);
    const int64_t per_group = results_ * channels_ * sizes_.window.size[0] * sizes_.window.size[1];
    Workspace packed(size_t(per_group * sizes_.groups) * sizeof(T));
    parallel(sizes_.groups, grain_for(per_group * 4), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; g++) pack_weights(weight, g, packed.as<T>() + g * per_group);
    });
    std::byte* result = static_cast<std::byte*>(outputs[0].buffer->data) +
                        outputs[0].offset * int64_t(size_of(plan_.result.dtype));
    const int64_t pictures = sizes_.images * sizes_.groups;
    const auto some = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        run_picture(source, i / sizes_.groups, i % sizes_.groups,
                    packed.as<T>() + i % sizes_.groups * per_group, result);
      }
    };
    // Few pictures share the threads inside each of them.
    if (pictures < 2 * thread_count()) return some(0, pictures);
    parallel(pictures, grain_for(per_group * sizes_.result[0] * sizes_.result[1]), some);
  }

 private:
  int64_t panel_row(int64_t panel) const { return panel * results_ / panels_; }

  // Per pass and depth block: the panels of the tiles.
  void pack_weights(const InputView& weight, int64_t group, T* to) const {
    const int64_t result_stride = weight.strides[adjoint_ ? 1 : 0];
    const int64_t channel_stride = weight.strides[adjoint_ ? 0 : 1];
    const int64_t first = group * sizes_.outputs * weight.strides[0];
    with_float_type(weight.type.dtype, [&](auto type) {
      const auto* data = static_cast<decltype(type)>(weight.data) + first;
      for (const Pass& pass : passes_) {
        const int64_t taps = int64_t(pass.kernels.size());
        for (int64_t p0 = 0; p0 < pass.depth; p0 += kDepthBlock) {
          const int64_t depth = std::min(kDepthBlock, pass.depth - p0);
          for (int64_t panel = 0; panel < panels_; panel++) {
            const int64_t row = panel_row(panel), rows = panel_row(panel + 1) - row;
            for (int64_t p = p0; p < p0 + depth; p++) {
              const auto* from = data + p / taps * channel_stride + pass.kernels[size_t(p % taps)] +
                                 row * result_stride;
              for (int64_t i = 0; i < rows; i++) *to++ = widen<T>(from[i * result_stride]);
            }
          }
        }
      }
    });
  }

  // The planes of one picture and group.
  struct Source {
    const T* data;
    int64_t channel;  // elements from one channel to the next
  };

  // Whether planes would be copies of the picture's channels.
  bool is_like_planes(const InputView& source) const {
    const AxisPlan &rows = planes_.rows, &columns = planes_.columns;
    return source.type.dtype == dtype_of<T> && panels_ >= kPackedPanels && rows.step == 1 &&
           columns.step == 1 && rows.low == 0 && columns.low == 0 && rows.need <= rows.length &&
           columns.need <= columns.length && source.strides[3] == 1 &&
           source.strides[2] == planes_.pitch;
  }

  void run_picture(const InputView& source, int64_t image, int64_t group, const T* weights,
                   std::byte* result) const {
    const int64_t per_channel = planes_.per_channel();
    const int64_t first = image * source.strides[0] + group * channels_ * source.strides[1];
    const bool in_place = is_like_planes(source);
    Workspace planes(in_place ? 0 : size_t(channels_ * per_channel + kPlaneSlack) * sizeof(T));
    if (!in_place) {
      std::fill_n(planes.as<T>() + channels_ * per_channel, kPlaneSlack, T(0));
      parallel(channels_, grain_for(per_channel * 4), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; c++) {
          fill_planes(planes_, source.type.dtype, element_at(source, first + c * source.strides[1]),
                      source.strides[2], source.strides[3], planes.as<T>() + c * per_channel);
        }
      });
    }
    const Source from = in_place ? Source{source.as<T>() + first, source.strides[1]}
                                 : Source{planes.as<T>(), per_channel};
    const Shape& shape = plan_.result.shape;
    const int64_t plane = shape[2] * shape[3];
    std::byte* to = result + (image * shape[1] + group * results_) * plane *
                                 int64_t(size_of(plan_.result.dtype));
    for (const Pass& pass : passes_) {
      is_direct(pass) ? run_direct(pass, from, weights, reinterpret_cast<T*>(to))
                      : run_pass(pass, from, weights, to);
      weights += results_ * pass.depth;
    }
  }

  // Results of a pass that lie one after another as their positions in the planes do: lines, or all
  // of them.
  struct Runs {
    int64_t count, length;
  };
  Runs runs_of(const Pass& pass) const {
    const int64_t width = plan_.result.shape[3];
    const bool all = planes_.pitch == width && pass.columns->count == width && pass.rows->step == 1;
    return all ? Runs{1, pass.rows->count * width} : Runs{pass.rows->count, pass.columns->count};
  }

  // Whether the tiles write into the result, which they may do once.  Overlapping tiles at the end
  // of every run are the price; what is saved, copying the sums, takes as long as a depth of ten.
  bool is_direct(const Pass& pass) const {
    if (plan_.result.dtype != dtype_of<T> || panels_ < kPackedPanels) return false;
    const auto [count, length] = runs_of(pass);
    const int64_t width = tile_table<T>().columns;
    if (pass.columns->step != 1 || pass.depth < 1 || pass.depth > kDepthBlock) return false;
    if (count < 1 || length < width) return false;
    const int64_t computed = (length + width - 1) / width * width;
    return (computed * count - pass.rows->count * planes_.pitch) * pass.depth < 10 * count * length;
  }

  void run_direct(const Pass& pass, const Source& source, const T* weights, T* to) const {
    const TileTable<T>& tiles = tile_table<T>();
    const Runs runs = runs_of(pass);
    const int64_t length = runs.length;
    const int64_t line = plan_.result.shape[3], plane = plan_.result.shape[2] * line;
    const int64_t blocks = (length + kRunBlock - 1) / kRunBlock;
    int64_t offsets[kDepthBlock];
    find_offsets(pass, source, 0, pass.depth, offsets);
    const int64_t work = length / blocks * results_ * pass.depth;
    parallel(runs.count * blocks, grain_for(work), [&](int64_t begin, int64_t end) {
      const int64_t most = kRunBlock / tiles.columns + 1;
      Workspace strips(size_t(strip_size(pass.depth) * most) * sizeof(T));
      for (int64_t i = begin; i < end; i++) {
        const int64_t run = i / blocks, first = i % blocks * length / blocks;
        const int64_t count = (i % blocks + 1) * length / blocks - first;
        pack_whole_strips(source.data + run * planes_.pitch + first, offsets, pass.depth, count,
                          strips.as<T>());
        T* out = to + (pass.rows->first + run * pass.rows->step) * line + pass.columns->first;
        const Block block{pass.depth, count, plane, false};
        add_packed(block, strips.as<T>(), weights, out + first, count - tiles.columns);
      }
    });
  }

  // Columns per block: the block's results stay in the second-level cache, and one panel alone can
  // use wide tiles.
  int64_t block_columns(int64_t tile_columns) const {
    const int64_t wanted = std::clamp<int64_t>(16384 / results_, 4 * tile_columns, 512);
    return (wanted + tile_columns - 1) / tile_columns * tile_columns;
  }

  void run_pass(const Pass& pass, const Source& source, const T* weights, std::byte* to) const {
    const TileTable<T>& tiles = tile_table<T>();
    const int64_t tile_columns =
        panels_ == 1 ? tiles.wide_columns[results_] : int64_t(tiles.columns);
    const int64_t block = block_columns(tile_columns);
    const int64_t positions = (pass.rows->count - 1) * planes_.pitch + pass.columns->count;
    const int64_t blocks = (positions + block - 1) / block;
    const bool packed = panels_ >= kPackedPanels;
    parallel(blocks, grain_for(block * results_ * pass.depth), [&](int64_t begin, int64_t end) {
      Workspace sums(size_t(results_ * block) * sizeof(T));
      Workspace strips(packed ? size_t(strip_size(kDepthBlock) * block / tile_columns) * sizeof(T)
                              : 0);
      for (int64_t b = begin; b < end; b++) {
        const int64_t first = b * block, count = std::min(block, positions - first);
        if (pass.depth == 0) std::fill_n(sums.as<T>(), results_ * block, T(0));
        for (int64_t p = 0; p < pass.depth; p += kDepthBlock) {
          const int64_t depth = std::min(kDepthBlock, pass.depth - p);
          int64_t offsets[kDepthBlock];
          find_offsets(pass, source, p, depth, offsets);
          const Block at{depth, count, block, p > 0};
          if (packed) {
            pack_strips(source.data + first, offsets, depth, count, strips.as<T>());
            add_packed(at, strips.as<T>(), weights + p * results_, sums.as<T>(), block);
          } else {
            add_in_place(at, source.data + first, offsets, weights + p * results_, sums.as<T>());
          }
        }
        copy_out(pass, first, count, sums.as<T>(), block, to);
      }
    });
  }

  // What the depth indices from p0 on read, relative to a position of the planes.
  void find_offsets(const Pass& pass, const Source& source, int64_t p0, int64_t depth,
                    int64_t* offsets) const {
    const int64_t taps = int64_t(pass.shifts.size());
    int64_t channel = p0 / taps, tap = p0 % taps;
    for (int64_t p = 0; p < depth; p++) {
      offsets[p] = channel * source.channel + pass.shifts[size_t(tap)];
      if (++tap == taps) tap = 0, channel++;
    }
  }

  // What is added to the sums of some columns.
  struct Block {
    int64_t depth, columns;
    int64_t sums_row;
    bool accumulate;
  };

  // Elements from one packed strip to the next: not a power of two, so that lines of strips side by
  // side do not fall on one place of the caches.
  static int64_t strip_size(int64_t depth) { return (depth + 1) * tile_table<T>().columns; }

  // [strip, depth, column of the strip]; columns behind the last one hold anything.
  static void pack_strips(const T* from, const int64_t* offsets, int64_t depth, int64_t columns,
                          T* to) {
    const int64_t width = tile_table<T>().columns, next = strip_size(depth);
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int64_t p = 0; p < depth; p++, to += width) {
      const T* line = from + offsets[p];
      T* out = to;
      int64_t column = 0;
      for (; width % kLine == 0 && column + width <= columns; column += width, out += next) {
        for (int64_t i = 0; i < width; i += kLine) std::memcpy(out + i, line + column + i, 64);
      }
      for (; column < columns; column += width, out += next) {
        std::copy_n(line + column, std::min(width, columns - column), out);
      }
    }
  }

  // The same with a last strip that overlaps the one before instead of being cut.
  static void pack_whole_strips(const T* from, const int64_t* offsets, int64_t depth,
                                int64_t columns, T* to) {
    const int64_t width = tile_table<T>().columns, whole = columns / width * width;
    pack_strips(from, offsets, depth, whole, to);
    if (whole == columns) return;
    pack_strips(from + columns - width, offsets, depth, width,
                to + whole / width * strip_size(depth));
  }

  // Strips begin no later than at column `last`.
  void add_packed(const Block& block, const T* strips, const T* weights, T* sums,
                  int64_t last) const {
    const TileTable<T>& tiles = tile_table<T>();
    int64_t offsets[kDepthBlock];
    for (int64_t p = 0; p < block.depth; p++) offsets[p] = p * tiles.columns;
    const int64_t some = std::max<int64_t>(1, kRowBlock / tiles.rows);
    for (int64_t panels = 0; panels < panels_; panels += some) {
      for (int64_t column = 0; column < block.columns; column += tiles.columns) {
        for (int64_t panel = panels; panel < std::min(panels + some, panels_); panel++) {
          const int64_t row = panel_row(panel), rows = panel_row(panel + 1) - row;
          tiles.packed[rows]({.depth = block.depth,
                              .a = weights + row * block.depth,
                              .b = strips + column / tiles.columns * strip_size(block.depth),
                              .offsets = offsets,
                              .c = sums + row * block.sums_row + std::min(column, last),
                              .c_row = block.sums_row,
                              .columns = tiles.columns,
                              .accumulate = block.accumulate});
        }
      }
    }
  }

  // The same where the tiles read the planes.
  void add_in_place(const Block& block, const T* planes, const int64_t* offsets, const T* weights,
                    T* sums) const {
    const TileTable<T>& tiles = tile_table<T>();
    const int64_t width = panels_ == 1 ? tiles.wide_columns[results_] : int64_t(tiles.columns);
    const int64_t columns = (block.columns + width - 1) / width * width;
    const int64_t strip = panels_ == 1 ? columns : width;
    for (int64_t column = 0; column < columns; column += strip) {
      for (int64_t panel = 0; panel < panels_; panel++) {
        const int64_t row = panel_row(panel), rows = panel_row(panel + 1) - row;
        const TileCall<T> call{.depth = block.depth,
                               .a = weights + row * block.depth,
                               .b = planes + column,
                               .offsets = offsets,
                               .c = sums + row * block.sums_row + column,
                               .c_row = block.sums_row,
                               .columns = strip,
                               .accumulate = block.accumulate};
        (panels_ == 1 ? tiles.wide : tiles.packed)[rows](call);
      }
    }
  }

  // Flat positions [first, first + count) of the planes to where they belong in the result.
  void copy_out(const Pass& pass, int64_t first, int64_t count, const T* sums, int64_t sums_row,
                std::byte* result) const {
    const int64_t width = plan_.result.shape[3], plane = plan_.result.shape[2] * width;
    const AxisPass &rows = *pass.rows, &columns = *pass.columns;
    with_float_type(plan_.result.dtype, [&](auto type) {
      using S = std::remove_const_t<std::remove_pointer_t<decltype(type)>>;
      for (int64_t m = 0; m < results_; m++) {
        const T* from = sums + m * sums_row - first;
        S* to = reinterpret_cast<S*>(result) + m * plane + columns.first;
        for (int64_t t = first / planes_.pitch; t < rows.count; t++) {
          const int64_t line = t * planes_.pitch;
          if (line >= first + count) break;
          const int64_t begin = std::max(first, line) - line;
          const int64_t end = std::min(first + count, line + columns.count) - line;
          S* out = to + (rows.first + t * rows.step) * width;
          if (columns.step == 1) {
            for (int64_t u = begin; u < end; u++) out[u] = narrow<S>(from[line + u]);
          } else {
            for (int64_t u = begin; u < end; u++) out[u * columns.step] = narrow<S>(from[line + u]);
          }
        }
      }
    });
  }

  AnchorPlan plan_;
  ConvolveSizes sizes_;
  bool adjoint_;
  Planes planes_;
  int64_t channels_, results_, panels_;  // per group: read, written, and panels of those
  std::vector<Pass> passes_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_convolve(const Group& group) {
  AnchorPlan plan = plan_of(group);
  FORNAX_CHECK(info(plan.op).family == Family::convolve && plan.inputs.size() == 2);
  if (!is_floating(plan.result.dtype)) return prepare_convolve_whole(std::move(plan));
  if (plan.op == Op::convolve_weight) {
    if (!suits_winograd(plan)) return prepare_convolve_weight(std::move(plan));
    return prepare_winograd_weight(plan, prepare_convolve_weight(plan));
  }
  if (plan.result.dtype == DType::f64) {
    return std::make_unique<Convolution<double>>(std::move(plan));
  }
  if (suits_depthwise(plan)) return prepare_depthwise(std::move(plan));
  if (!suits_winograd(plan)) return std::make_unique<Convolution<float>>(std::move(plan));
  return prepare_winograd(plan, std::make_unique<Convolution<float>>(plan));
}

}  // namespace fornax::flex
