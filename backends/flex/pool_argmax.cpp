// pool_argmax: where each window's first largest element lies in its plane; NaN is the largest.
// A window that lies in the padding altogether gives 0.
#include <algorithm>
#include <limits>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/index.h"
#include "backends/flex/pool.h"
#include "backends/flex/pool_pairs.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

// Results t with 0 <= t * stride + place < length.
struct Span {
  int64_t begin, end;
};
Span inside(int64_t place, int64_t stride, int64_t length, int64_t count) {
  const int64_t begin = place < 0 ? (-place + stride - 1) / stride : 0;
  const int64_t room = length - 1 - place;
  const int64_t end = room < 0 ? 0 : room / stride + 1;
  return {std::min(begin, count), std::min(end, count)};
}

struct Pool : Kernel {
  explicit Pool(AnchorPlan p) : plan(std::move(p)), window(plan.attributes) {
    const Shape &x = plan.inputs[0].type.shape, &y = plan.result.shape;
    rows = y[2], width = y[3], height = x[2], length = x[3];
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan.result.shape.element_count() == 0) return;
    const InputView x(plan, 0, inputs);
    const int64_t channels = plan.result.shape[1], planes = plan.result.shape[0] * channels;
    const bool pairs = by_pairs(x);
    const int64_t work = rows * width * window.size[0] * window.size[1];
    with_type(x.type.dtype, [&](auto type) {
      using T = decltype(type);
      using Order = std::conditional_t<std::is_class_v<T>, float, T>;
      parallel(planes, 20000 / work + 1, [&](int64_t begin, int64_t end) {
        Workspace memory(size_t(width) * sizeof(Order));
        for (int64_t i = begin; i < end; i++) {
          const T* plane = x.as<T>() + i / channels * x.strides[0] + i % channels * x.strides[1];
          int64_t* to = data_of<int64_t>(outputs[0]) + i * rows * width;
          for (int64_t row = 0; row < rows; row++) {
            if constexpr (std::is_same_v<T, float>) {
              if (pairs) {
                const float* top = plane + 2 * row * x.strides[2];
                pool_pairs(top, top + x.strides[2], width, 2 * row * length, length,
                           to + row * width);
                continue;
              }
            }
            Span done{0, 0};
            if constexpr (std::is_same_v<T, float>) {
              if (x.strides[3] == 1) done = pool_middle(plane, x.strides[2], row, to + row * width);
            }
            pool_row(plane, x.strides, row, {0, done.begin}, memory.as<Order>(), to + row * width);
            pool_row(plane, x.strides, row, {done.end, width}, memory.as<Order>(),
                     to + row * width);
          }
        }
      });
    });
  }

  // Whether every window is a whole 2x2, two apart, and rows lie without gaps.
  bool by_pairs(const InputView& x) const {
    for (int i = 0; i < 2; i++) {
      if (window.size[i] != 2 || window.stride[i] != 2 || window.dilation[i] != 1 ||
          window.before[i] != 0) {
        return false;
      }
    }
    return x.strides[3] == 1 && 2 * rows <= height && 2 * width <= length &&
           height * length < (int64_t(1) << 31);
  }

  // The windows of a line that lie inside the picture from left to right, many at a time; returns
  // which ones they are.
  Span pool_middle(const float* plane, int64_t row_stride, int64_t row, int64_t* to) const {
    const int64_t stride = window.stride[1], places = window.size[0] * window.size[1];
    constexpr int64_t kMostPlaces = 64;
    if (stride > 2 || places > kMostPlaces || height * length >= int64_t(1) << 31) return {0, 0};
    // With stride 2 a vector also reads what is right of each element.
    const int64_t last = (window.size[1] - 1) * window.dilation[1] - window.before[1];
    Span span = inside(last + stride - 1, stride, length, width);
    span.begin = inside(-window.before[1], stride, length, width).begin;
    if (span.end <= span.begin) return {0, 0};
    PoolTap taps[kMostPlaces];
    size_t count = 0;
    for (int64_t kh = 0; kh < window.size[0]; kh++) {
      const int64_t ih = row * window.stride[0] + kh * window.dilation[0] - window.before[0];
      if (ih < 0 || ih >= height) continue;
      for (int64_t kw = 0; kw < window.size[1]; kw++) {
        const int64_t place =
            kw * window.dilation[1] - window.before[1] + span.begin * window.stride[1];
        taps[count++] = {plane + ih * row_stride + place, ih * length + place};
      }
    }
    if (count == 0) return {0, 0};
    const bool done = pool_line({taps, count}, stride, span.end - span.begin, to + span.begin);
    return done ? span : Span{0, 0};
  }

  // Some of a line of results, tap by tap in row-major order.  best holds the largest elements so
  // far and to their places, -1 where there is none yet.
  template <class T, class Order>
  void pool_row(const T* plane, const int64_t* strides, int64_t row, Span some, Order* best,
                int64_t* to) const {
    std::fill(to + some.begin, to + some.end, int64_t(-1));
    std::fill(best + some.begin, best + some.end, Order(0));
    for (int64_t kh = 0; kh < window.size[0]; kh++) {
      const int64_t ih = row * window.stride[0] + kh * window.dilation[0] - window.before[0];
      if (ih < 0 || ih >= height) continue;
      for (int64_t kw = 0; kw < window.size[1]; kw++) {
        const int64_t place = kw * window.dilation[1] - window.before[1];
        Span span = inside(place, window.stride[1], length, width);
        span.begin = std::max(span.begin, some.begin), span.end = std::min(span.end, some.end);
        const T* from = plane + ih * strides[2] + place * strides[3];
        const int64_t step = window.stride[1] * strides[3], flat = ih * length + place;
        for (int64_t t = span.begin; t < span.end; t++) {
          const Order value = widen<Order>(from[t * step]);
          const bool larger = value > best[t] || (value != value && best[t] == best[t]);
          const bool take = larger || to[t] < 0;
          best[t] = take ? value : best[t];
          to[t] = take ? flat + t * window.stride[1] : to[t];
        }
      }
    }
    for (int64_t t = some.begin; t < some.end; t++) to[t] = std::max(to[t], int64_t(0));
  }

  AnchorPlan plan;
  Window2d window;
  int64_t rows, width, height, length;
};

}  // namespace

std::unique_ptr<Kernel> prepare_pool(const Group& group) {
  AnchorPlan plan = plan_of(group);
  FORNAX_CHECK(plan.op == Op::pool_argmax && plan.inputs.size() == 1);
  return std::make_unique<Pool>(std::move(plan));
}

}  // namespace fornax::flex
