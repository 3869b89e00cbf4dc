// convolve_weight for floats: dot products of dy with shifted planes of x, over pictures.  Where
// lines are short these are a matrix product of dy with what each place of the window sees, written
// out for some pictures at a time: dot products of a few numbers are mostly overhead.
//
// The batch is cut into parts by its size alone.  Each part sums its pictures in order into memory
// of its own; the parts are then added in pairs, so the result does not depend on the thread count.
#include <algorithm>

#include "backends/flex/convolve.h"
#include "backends/flex/gemm.h"
#include "backends/flex/gemm_pack.h"
#include "backends/flex/gemm_tiles.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

constexpr int64_t kParts = 16;
constexpr int64_t kPartsBytes = int64_t(16) << 20;   // of all parts together
constexpr int64_t kChunkBytes = int64_t(256) << 10;  // of pictures that are summed in one go
constexpr int64_t kShortLine = 32;                   // elements; shorter ones go to a product
constexpr int64_t kLeastSide = 16;                   // rows and columns that are worth one
constexpr int64_t kSeenBytes = int64_t(4) << 20;     // of what is written out for it

// dy with lines that can be read in place, or a copy of it.
template <class T>
struct Lines {
  const T* data;
  int64_t image, channel, row;
};

template <class T>
class WeightGradient : public Kernel {
 public:
  explicit WeightGradient(AnchorPlan plan)
      : plan_(std::move(plan)),
        sizes_(convolve_sizes(plan_)),
        planes_(window_axis(sizes_.window, 0, sizes_.picture[0]),
                window_axis(sizes_.window, 1, sizes_.picture[1])) {
    count_ = plan_.result.shape.element_count();
    for (const AxisTap& r : planes_.rows.passes[0].taps) {
      for (const AxisTap& c : planes_.columns.passes[0].taps) {
        shifts_.push_back(planes_.offset(r, c));
      }
    }
    const int64_t picture = (sizes_.inputs * planes_.per_channel() +
                             sizes_.outputs * sizes_.result[0] * sizes_.result[1]) *
                            int64_t(sizeof(T));
    const int64_t columns = sizes_.inputs * int64_t(shifts_.size());
    product_ = sizes_.result[1] < kShortLine && std::min(sizes_.outputs, columns) >= kLeastSide;
    if (product_) {
      const int64_t seen = columns * sizes_.result[0] * sizes_.result[1] * int64_t(sizeof(T));
      chunk_ = std::clamp<int64_t>(kSeenBytes / std::max<int64_t>(seen, 1), 1,
                                   std::max<int64_t>(sizes_.images, 1));
      parts_ = 1;
      return;
    }
    chunk_ = std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(picture, 1), 1, 16);
    const int64_t fit = kPartsBytes / (std::max<int64_t>(count_, 1) * int64_t(sizeof(T)));
    parts_ = std::clamp<int64_t>(std::min(fit, sizes_.images), 1, kParts);
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (count_ == 0) return;
    const InputView x(plan_, 0, inputs), dy(plan_, 1, inputs);
    Workspace memory(size_t(parts_ * count_) * sizeof(T));
    T* sums = memory.as<T>();
    const auto some = [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; part++) run_part(x, dy, part, sums + part * count_);
    };
    // Few parts share the threads inside each of them.
    if (parts_ < 2 * thread_count()) {
      some(0, parts_);
    } else {
      parallel(parts_, grain_for(count_ * sizes_.result[0] * sizes_.result[1]), some);
    }
    for (int64_t step = 1; step < parts_; step *= 2) {
      for (int64_t part = 0; part + step < parts_; part += 2 * step) {
        T* to = sums + part * count_;
        const T* from = to + step * count_;
        for (int64_t i = 0; i < count_; i++) to[i] += from[i];
      }
    }
    with_float_type(plan_.result.dtype, [&](auto type) {
      using S = std::remove_const_t<std::remove_pointer_t<decltype(type)>>;
      S* to = data_of<S>(outputs[0]);
      for (int64_t i = 0; i < count_; i++) to[i] = narrow<S>(sums[i]);
    });
  }

 private:
  void run_part(const InputView& x, const InputView& dy, int64_t part, T* sums) const {
    if (!product_ || sizes_.images == 0) std::fill_n(sums, count_, T(0));
    const int64_t first = part * sizes_.images / parts_;
    const int64_t end = (part + 1) * sizes_.images / parts_;
    const int64_t per_image = sizes_.inputs * planes_.per_channel();
    Workspace planes(size_t(chunk_ * per_image) * sizeof(T));
    for (int64_t image = first; image < end; image += chunk_) {
      const int64_t images = std::min(chunk_, end - image);
      for (int64_t g = 0; g < sizes_.groups; g++) {
        fill_chunk(x, image, images, g, planes.as<T>());
        T* to = sums + g * sizes_.outputs * sizes_.inputs * int64_t(shifts_.size());
        if (product_) {
          add_product(dy, image, images, g, planes.as<T>(), to, image == first);
        } else {
          add_chunk(dy, image, images, g, planes.as<T>(), to);
        }
      }
    }
  }

  // [image, channel, phase, line, column]
  void fill_chunk(const InputView& x, int64_t first, int64_t images, int64_t group, T* to) const {
    const int64_t per_channel = planes_.per_channel();
    parallel(images * sizes_.inputs, grain_for(per_channel * 4), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t image = first + i / sizes_.inputs;
        const int64_t channel = group * sizes_.inputs + i % sizes_.inputs;
        fill_planes(planes_, x.type.dtype,
                    element_at(x, image * x.strides[0] + channel * x.strides[1]), x.strides[2],
                    x.strides[3], to + i * per_channel);
      }
    });
  }

  // dy of some pictures and one group as lines of T.
  Lines<T> lines_of(const InputView& dy, int64_t first, int64_t images, int64_t group,
                    T* copy) const {
    const int64_t start = first * dy.strides[0] + group * sizes_.outputs * dy.strides[1];
    if (copy == nullptr) {
      return {dy.as<T>() + start, dy.strides[0], dy.strides[1], dy.strides[2]};
    }
    const int64_t rows = sizes_.result[0], width = sizes_.result[1];
    with_float_type(dy.type.dtype, [&](auto type) {
      const auto* from = static_cast<decltype(type)>(dy.data) + start;
      T* to = copy;
      for (int64_t image = 0; image < images; image++) {
        for (int64_t o = 0; o < sizes_.outputs; o++) {
          for (int64_t r = 0; r < rows; r++, to += width) {
            const auto* line = from + image * dy.strides[0] + o * dy.strides[1] + r * dy.strides[2];
            for (int64_t c = 0; c < width; c++) to[c] = widen<T>(line[c * dy.strides[3]]);
          }
        }
      }
    });
    return {copy, sizes_.outputs * rows * width, rows * width, width};
  }

  void add_chunk(const InputView& dy, int64_t first, int64_t images, int64_t group, const T* planes,
                 T* sums) const {
    const int64_t rows = sizes_.result[0], width = sizes_.result[1];
    const bool in_place = dy.type.dtype == dtype_of<T> && (dy.strides[3] == 1 || width == 1);
    Workspace memory(in_place ? 0 : size_t(images * sizes_.outputs * rows * width) * sizeof(T));
    const Lines<T> lines = lines_of(dy, first, images, group, in_place ? nullptr : memory.as<T>());
    constexpr int64_t kRows = TileTable<T>::kDotRows, kColumns = TileTable<T>::kDotColumns;
    const int64_t taps = int64_t(shifts_.size()), columns = sizes_.inputs * taps;
    const int64_t panels = (sizes_.outputs + kRows - 1) / kRows;
    const int64_t work = kRows * columns * images * rows * width;
    parallel(panels, grain_for(work), [&](int64_t begin, int64_t end) {
      for (int64_t j = 0; j < columns; j += kColumns) {
        const int64_t some = std::min(kColumns, columns - j);
        int64_t offsets[kColumns];
        for (int64_t i = 0; i < some; i++) {
          offsets[i] = (j + i) / taps * planes_.per_channel() + shifts_[size_t((j + i) % taps)];
        }
        for (int64_t panel = begin; panel < end; panel++) {
          const int64_t o = panel * kRows, height = std::min(kRows, sizes_.outputs - o);
          const DotCall<T> call{images,        rows,
                                width,         lines.data + o * lines.channel,
                                lines.channel, lines.image,
                                lines.row,     planes,
                                offsets,       sizes_.inputs * planes_.per_channel(),
                                planes_.pitch, sums + o * columns + j,
                                columns};
          tile_table<T>().dot[height][some](call);
        }
      }
    });
  }

  // The same as add_chunk(); where it is `fresh`, nothing has been summed so far.
  void add_product(const InputView& dy, int64_t first, int64_t images, int64_t group,
                   const T* planes, T* sums, bool fresh) const {
    const int64_t rows = sizes_.result[0], width = sizes_.result[1], places = rows * width;
    const int64_t taps = int64_t(shifts_.size()), columns = sizes_.inputs * taps;
    const int64_t depth = images * places, outputs = sizes_.outputs;
    Workspace seen(size_t(columns * depth) * sizeof(T));
    parallel(columns, grain_for(depth * 4), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; j++) {
        const T* from = planes + j / taps * planes_.per_channel() + shifts_[size_t(j % taps)];
        T* to = seen.as<T>() + j * depth;
        for (int64_t image = 0; image < images; image++) {
          const T* line = from + image * sizes_.inputs * planes_.per_channel();
          for (int64_t r = 0; r < rows; r++, line += planes_.pitch, to += width) {
            std::copy_n(line, width, to);
          }
        }
      }
    });
    Workspace lines(size_t(outputs * depth) * sizeof(T));
    copy_by_channel(dy, first, images, group, lines.as<T>());
    const Matrix left{lines.as<T>(), dtype_of<T>, depth, 1};
    const Matrix right{seen.as<T>(), dtype_of<T>, 1, depth};
    if (fresh) return gemm<T>({outputs, columns, depth}, left, right, sums);
    Workspace more(size_t(outputs * columns) * sizeof(T));
    gemm<T>({outputs, columns, depth}, left, right, more.as<T>());
    for (int64_t i = 0; i < outputs * columns; i++) sums[i] += more.as<T>()[i];
  }

  // [channel, image, line, column] of dy.
  void copy_by_channel(const InputView& dy, int64_t first, int64_t images, int64_t group,
                       T* to) const {
    const int64_t rows = sizes_.result[0], width = sizes_.result[1];
    const int64_t start = first * dy.strides[0] + group * sizes_.outputs * dy.strides[1];
    with_float_type(dy.type.dtype, [&](auto type) {
      const auto* from = static_cast<decltype(type)>(dy.data) + start;
      for (int64_t o = 0; o < sizes_.outputs; o++) {
        for (int64_t line = 0; line < images * rows; line++, to += width) {
          const auto* row =
              from + line / rows * dy.strides[0] + o * dy.strides[1] + line % rows * dy.strides[2];
          for (int64_t c = 0; c < width; c++) to[c] = widen<T>(row[c * dy.strides[3]]);
        }
      }
    });
  }

  AnchorPlan plan_;
  ConvolveSizes sizes_;
  Planes planes_;
  bool product_;
  std::vector<int64_t> shifts_;  // per tap: offset in the planes of a channel
  int64_t count_, chunk_, parts_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_convolve_weight(AnchorPlan plan) {
  if (plan.result.dtype == DType::f64) {
    return std::make_unique<WeightGradient<double>>(std::move(plan));
  }
  return std::make_unique<WeightGradient<float>>(std::move(plan));
}

}  // namespace fornax::flex
