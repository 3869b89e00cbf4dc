// Convolutions and their gradients where groups have few channels, directly: a thread sums up one
// element of the result.  Those of a weight's gradient are few and long, so that a block shares
// each.  All others are products of matrices (convolve_tiles.cpp).
#include "backends/cube/convolve.h"

#include "backends/cube/kernels.h"
#include "base/error.h"

namespace fornax::cube {
namespace {

using kernel::Variable;

constexpr int kThreads = 256;
constexpr kernel::Facts kAny{.most = INT64_MAX};

// Sums of products in the dtype that the operands are computed in.
class Sum {
 public:
  Sum(Builder& k, DType dtype) : k_(k), computed_(kernel::compute_dtype(dtype)) {
    sum_.emplace_back(k.constant(computed_, 0));
  }
  // The product of two elements that exist where `mask` holds.
  void add(const View& a, const Position& a_at, const View& b, const Position& b_at, Value mask) {
    const Value x = load(a, a_at, mask), y = load(b, b_at, mask);
    sum_[0] = is_floating(computed_) ? fma(x, y, sum_[0]) : sum_[0].get() + x * y;
  }
  Value get() const { return sum_[0]; }

 private:
  Value load(const View& view, const Position& at, Value mask) {
    return k_.cast(k_.load(view.memory, view.index(k_, at), mask, 0), computed_);
  }
  Builder& k_;
  const DType computed_;
  std::vector<Variable> sum_;
};

class ConvolveKernel {
 public:
  ConvolveKernel(Op o, const Pictures& p)
      : op_(o), pictures_(p), k_(std::string(info(o).name), {.threads = kThreads}) {}

  kernel::Kernel build() {
    views_ = pictures_.declare(k_);
    extents_ = declare_extents(k_, 4, index());
    window_ = declare_window(k_, index());
    inputs_ = declare_extent(k_, "inputs", index());
    outputs_ = declare_extent(k_, "outputs", index());
    heights_ = k_.number("heights", index(), kAny);
    widths_ = k_.number("widths", index(), kAny);
    if (op_ == Op::convolve_weight) {
      weight();
      return k_.finish();
    }
    const Value count = k_.number("count", index(), kAny);
    const Value thread = thread_number(k_, index());
    k_.when(thread < count, [&] {
      const Position at = position_of(k_, extents_, thread);
      Sum sum(k_, pictures_.sources[0].dtype);
      op_ == Op::convolve ? output(at, sum) : input(at, sum);
      k_.store(views_[2].memory, views_[2].index(k_, at), sum.get());
    });
    return k_.finish();
  }

 private:
  DType index() const { return pictures_.index; }
  Value zero() { return k_.constant(index(), 0); }
  void loop(Value count, FunctionRef<void(Value)> body) { k_.loop(zero(), count, 1, body); }

  // y[n, o, oh, ow] from x and weight.
  void output(const Position& at, Sum& sum) {
    const Value first = divide(k_, outputs_, at[1]) * inputs_.size;
    loop(inputs_.size, [&](Value c) {
      loop(window_.size[0], [&](Value tap) {
        const Value h = window_.place(0, at[2], tap);
        loop(window_.size[1], [&](Value side) {
          const Value v = window_.place(1, at[3], side);
          sum.add(views_[0], {at[0], first + c, h, v}, views_[1], {at[1], c, tap, side},
                  within(h, heights_) & within(v, widths_));
        });
      });
    });
  }

  // The window along `axis` whose tap `tap` is element `place`, and whether there is one.
  std::pair<Value, Value> window_at(int axis, Value place, Value tap, Value count) {
    const Value start = place + window_.before[axis] - tap * window_.dilation[axis];
    const Value number = divide(k_, window_.stride[axis], select(start >= 0, start, zero()));
    const Value exact = number * window_.stride[axis].size == start;
    return {number, exact & (number < count)};
  }

  // dx[n, c, h, w] from dy and weight.
  void input(const Position& at, Sum& sum) {
    const Value group = divide(k_, inputs_, at[1]), c = at[1] - group * inputs_.size;
    const Value first = group * outputs_.size;
    loop(outputs_.size, [&](Value o) {
      loop(window_.size[0], [&](Value tap) {
        const auto down = window_at(0, at[2], tap, heights_);
        loop(window_.size[1], [&](Value side) {
          const auto across = window_at(1, at[3], side, widths_);
          sum.add(views_[0], {at[0], first + o, down.first, across.first}, views_[1],
                  {first + o, c, tap, side}, down.second & across.second);
        });
      });
    });
  }

  // dweight[o, c, kh, kw] from x and dy: the threads of a block share out dy's pictures.
  void weight() {
    const std::vector<Extent> shared_out = {declare_extent(k_, "batch", index()),
                                            declare_extent(k_, "rows", index()),
                                            declare_extent(k_, "columns", index())};
    const Value count = k_.number("count", index(), kAny);  // of elements of dy per channel
    const Position at = position_of(k_, extents_, k_.cast(k_.block(), index()));
    const Value channel = divide(k_, outputs_, at[0]) * inputs_.size + at[1];
    Sum sum(k_, pictures_.sources[0].dtype);
    k_.loop(k_.cast(k_.thread(), index()), count, k_.threads(), [&](Value element) {
      const Position from = position_of(k_, shared_out, element);
      const Value h = window_.place(0, from[1], at[2]), v = window_.place(1, from[2], at[3]);
      sum.add(views_[0], {from[0], channel, h, v}, views_[1], {from[0], at[0], from[1], from[2]},
              within(h, heights_) & within(v, widths_));
    });
    const Value sums = k_.shared(sum.get().dtype(), kThreads);
    k_.store(sums, k_.thread(), sum.get());
    for (int rest = kThreads / 2; rest > 0; rest /= 2) {
      k_.barrier();
      k_.when(k_.thread() < rest, [&] {
        k_.store(sums, k_.thread(), k_.load(sums, k_.thread()) + k_.load(sums, k_.thread() + rest));
      });
    }
    k_.when(k_.thread() == 0,
            [&] { k_.store(views_[2].memory, views_[2].index(k_, at), k_.load(sums, 0)); });
  }

  const Op op_;
  const Pictures& pictures_;
  Builder k_;
  std::vector<View> views_;
  std::vector<Extent> extents_;  // of the result
  Window window_;
  Extent inputs_, outputs_;  // channels of one group of the weight
  Value heights_, widths_;   // of operand 0
};

}  // namespace

std::unique_ptr<PreparedGroup> prepare_convolve(Device& device, const Group& group) {
  const Step& step = group.graph.steps[size_t(group.anchor)];
  auto sequence = std::make_unique<ScratchSequence>(device, group);
  const int64_t count = step.type.shape.element_count();
  if (count == 0) return sequence;
  const Convolution whole{step.op, Pictures(device, *sequence, group), Window2d(step.attributes)};
  if (tiles_take(whole)) {
    add_tiles(device, *sequence, whole);
    return sequence;
  }
  const Pictures& pictures = whole.pictures;
  const Window2d& window = whole.window;
  const Shape &first = pictures.sources[0].shape, &second = pictures.sources[1].shape;
  const bool of_weight = step.op == Op::convolve_weight;
  const Shape& weight = whole.weight();
  Arguments arguments;
  pictures.pass(arguments);
  pass_extents(arguments, {step.type.shape.begin(), step.type.shape.end()}, pictures.index);
  pass_window(arguments, window, pictures.index);
  pass_extent(arguments, weight[1], pictures.index);
  pass_extent(arguments, weight[0] / window.groups, pictures.index);
  arguments.number(pictures.index, first[2]);
  arguments.number(pictures.index, first[3]);
  if (of_weight) {
    for (const int axis : {0, 2, 3}) pass_extent(arguments, second[axis], pictures.index);
    arguments.number(pictures.index, second[0] * second[2] * second[3]);
  } else {
    arguments.number(pictures.index, count);
  }
  const Op op = step.op;
  KernelRecipe recipe{fmt::format("{} {}", info(op).name, pictures.key()), [op, pictures] {
                        return ConvolveKernel{op, pictures}.build();
                      }};
  sequence->add(Launch(device, std::move(recipe), blocks_for(count, of_weight ? 1 : kThreads),
                       std::move(arguments)));
  return sequence;
}

}  // namespace fornax::cube
