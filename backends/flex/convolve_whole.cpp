// The three convolutions on whole numbers: exact modulo the width of the type, by plain loops.
#include <algorithm>

#include "backends/flex/convolve.h"
#include "backends/flex/gemm.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

// A strided array of [., ., ., .].
template <class T>
struct Array {
  T* data;
  const int64_t* strides;
  T& at(int64_t i, int64_t j, int64_t k, int64_t l) const {
    return data[i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3]];
  }
};

template <class T>
struct Operands {
  Array<T> x, weight, y;
  Op op;
  const ConvolveSizes& sizes;

  // Adds what output channel o and input channel c of a group have to do with each other in a
  // picture.
  void add(int64_t image, int64_t group, int64_t o, int64_t c) const {
    using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, T>;
    const Window2d& w = sizes.window;
    const int64_t output = group * sizes.outputs + o, input = group * sizes.inputs + c;
    for (int64_t kh = 0; kh < w.size[0]; kh++) {
      for (int64_t kw = 0; kw < w.size[1]; kw++) {
        T& factor = weight.at(output, c, kh, kw);
        for (int64_t oh = 0; oh < sizes.result[0]; oh++) {
          const int64_t ih = oh * w.stride[0] + kh * w.dilation[0] - w.before[0];
          if (ih < 0 || ih >= sizes.picture[0]) continue;
          for (int64_t ow = 0; ow < sizes.result[1]; ow++) {
            const int64_t iw = ow * w.stride[1] + kw * w.dilation[1] - w.before[1];
            if (iw < 0 || iw >= sizes.picture[1]) continue;
            T& from = x.at(image, input, ih, iw);
            T& to = y.at(image, output, oh, ow);
            if (op == Op::convolve) {
              to = T(to + Wide(from) * factor);
            } else if (op == Op::convolve_input) {
              from = T(from + Wide(to) * factor);
            } else {
              factor = T(factor + Wide(to) * from);
            }
          }
        }
      }
    }
  }

  // Every result element belongs to one pair of the two channel-like axes that tasks run over.
  void run() const {
    const bool forward = op == Op::convolve, weights = op == Op::convolve_weight;
    const int64_t outer = weights ? sizes.outputs : sizes.images;
    const int64_t inner = forward ? sizes.outputs : sizes.inputs;
    const int64_t summed = weights ? sizes.images : forward ? sizes.inputs : sizes.outputs;
    const int64_t work =
        summed * sizes.result[0] * sizes.result[1] * sizes.window.size[0] * sizes.window.size[1];
    parallel(outer * inner * sizes.groups, grain_for(work * 16), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        const int64_t group = task % sizes.groups, pair = task / sizes.groups;
        const int64_t a = pair / inner, b = pair % inner;
        for (int64_t s = 0; s < summed; s++) {
          if (forward) {
            add(a, group, b, s);
          } else if (weights) {
            add(s, group, a, b);
          } else {
            add(a, group, s, b);
          }
        }
      }
    });
  }
};

struct WholeConvolution : Kernel {
  explicit WholeConvolution(AnchorPlan p) : plan(std::move(p)), sizes(convolve_sizes(plan)) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const InputView first(plan, 0, inputs), second(plan, 1, inputs);
    const Layout layout = row_major(plan.result.shape);
    with_bytes(size_of(plan.result.dtype), [&](auto type) {
      using T = decltype(type);
      T* to = data_of<T>(outputs[0]);
      std::fill_n(to, plan.result.shape.element_count(), T(0));
      // Only the result is written to; the operands are not const for the sake of one loop.
      const Array<T> result{to, layout.strides};
      const Array<T> a{const_cast<T*>(first.as<T>()), first.strides};
      const Array<T> b{const_cast<T*>(second.as<T>()), second.strides};
      if (plan.op == Op::convolve) return Operands<T>{a, b, result, plan.op, sizes}.run();
      if (plan.op == Op::convolve_input) return Operands<T>{result, b, a, plan.op, sizes}.run();
      Operands<T>{a, result, b, plan.op, sizes}.run();
    });
  }

  AnchorPlan plan;
  ConvolveSizes sizes;
};

}  // namespace

std::unique_ptr<Kernel> prepare_convolve_whole(AnchorPlan plan) {
  return std::make_unique<WholeConvolution>(std::move(plan));
}

}  // namespace fornax::flex
