// pool_argmax: a thread looks for the largest element of one window.
#include <algorithm>

#include "backends/cube/kernels.h"
#include "backends/cube/window.h"
#include "base/error.h"

namespace fornax::cube {
namespace {

using kernel::Variable;

constexpr int kThreads = 256;
constexpr kernel::Facts kAny{.most = INT64_MAX};

kernel::Kernel build(const Pictures& pictures) {
  Builder k("pool_argmax", {.threads = kThreads});
  const DType index = pictures.index;
  const std::vector<View> views = pictures.declare(k);
  const std::vector<Extent> extents = declare_extents(k, 4, index);
  const Window window = declare_window(k, index);
  const Value height = k.number("height", index, kAny), width = k.number("width", index, kAny);
  const Value count = k.number("count", index, kAny);
  const Value thread = thread_number(k, index), zero = k.constant(index, 0);
  const DType computed = kernel::compute_dtype(pictures.sources[0].dtype);
  k.when(thread < count, [&] {
    const Position at = position_of(k, extents, thread);
    Variable largest(k.constant(computed, 0)), best(k.constant(index, -1));
    k.loop(zero, window.size[0], 1, [&](Value tap) {
      const Value h = window.place(0, at[2], tap);
      k.loop(zero, window.size[1], 1, [&](Value side) {
        const Value v = window.place(1, at[3], side);
        const Value inside = within(h, height) & within(v, width);
        const Value from = views[0].index(k, {at[0], at[1], h, v});
        const Value x = k.cast(k.load(views[0].memory, from, inside, 0), computed);
        // The first NaN is the largest of all.
        const Value known = ~is_nan(largest);
        const Value beats = known & (is_nan(x) | (x > largest.get()));
        const Value taken = inside & ((best.get() < 0) | beats);
        best = select(taken, h * width + v, best);
        largest = select(taken, x, largest);
      });
    });
    k.store(views[1].memory, views[1].index(k, at), best);
  });
  return k.finish();
}

// A group that fails when it runs: what is wrong is the caller's data, not the group.
class Refusal : public PreparedGroup {
 public:
  explicit Refusal(std::string words) : words_(std::move(words)) {}
  void run(std::span<const Argument>, std::span<const Argument>) const override {
    fail(ErrorKind::value, "{}", words_);
  }

 private:
  const std::string words_;
};

// Whether window `number` along `axis`, over `length` elements, has one of them.
bool has_element(const Window2d& w, int axis, int64_t number, int64_t length) {
  for (int64_t tap = 0; tap < w.size[axis]; tap++) {
    const int64_t place = number * w.stride[axis] - w.before[axis] + tap * w.dilation[axis];
    if (place >= 0 && place < length) return true;
  }
  return false;
}
// The first window along `axis` without an element; `count` where all have some.
int64_t first_empty(const Window2d& w, int axis, int64_t count, int64_t length) {
  for (int64_t number = 0; number < count; number++) {
    if (!has_element(w, axis, number, length)) return number;
  }
  return count;
}

}  // namespace

std::unique_ptr<PreparedGroup> prepare_pool_argmax(Device& device, const Group& group) {
  const Step& step = group.graph.steps[size_t(group.anchor)];
  auto sequence = std::make_unique<ScratchSequence>(device, group);
  const Shape& result = step.type.shape;
  if (result.element_count() == 0) return sequence;
  const Pictures pictures(device, *sequence, group);
  const Shape& x = pictures.sources[0].shape;
  const Window2d window(step.attributes);
  const int64_t row = first_empty(window, 0, result[2], x[2]);
  const int64_t column = first_empty(window, 1, result[3], x[3]);
  if (row < result[2] || column < result[3]) {
    // In row-major order; the first row has all columns.
    const bool in_row = row == 0 || column == result[3];
    return std::make_unique<Refusal>(fmt::format(
        "pool_argmax: window [{},{}] over {} holds padding only; use less", in_row ? row : 0,
        in_row ? 0 : column, text_of(Type{pictures.sources[0].dtype, x})));
  }
  Arguments arguments;
  pictures.pass(arguments);
  pass_extents(arguments, {result.begin(), result.end()}, pictures.index);
  pass_window(arguments, window, pictures.index);
  for (const int64_t number : {x[2], x[3], result.element_count()}) {
    arguments.number(pictures.index, number);
  }
  sequence->add(Launch(device,
                       {"pool_argmax " + pictures.key(), [pictures] { return build(pictures); }},
                       blocks_for(result.element_count(), kThreads), std::move(arguments)));
  return sequence;
}

}  // namespace fornax::cube
