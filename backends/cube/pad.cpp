// pad and fold: one thread per element of the result finds what of x it comes from.
#include "backends/cube/frame.h"
#include "backends/cube/kernels.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {
namespace {

// Result position p holds element (p - before) / (between + 1) of x where that is one.
struct PaddedAxis {
  int axis;  // of the nest
  bool spread;
};

std::string key_of(const std::vector<PaddedAxis>& padded) {
  std::string key;
  for (const PaddedAxis& p : padded) key += fmt::format("{}{}", p.axis, p.spread ? "s" : "");
  return key;
}

}  // namespace

std::unique_ptr<PreparedGroup> prepare_pad(Device& device, const Group& group) {
  const Anchor anchor = anchor_of(group);
  const Input &x = anchor.inputs[0], &value = anchor.inputs[1];
  const PerAxis per_axis{anchor.attributes};
  const Shape& shape = anchor.result.shape;
  auto list = std::make_unique<LaunchList>(device);
  if (shape.element_count() == 0) return list;
  std::vector<int> kinds(size_t(shape.rank()), 0);
  for (int axis = 0; axis < shape.rank(); axis++) {
    const bool plain =
        per_axis.first(axis) == 0 && per_axis.second(axis) == 0 && per_axis.third(axis) == 0;
    if (!plain) kinds[size_t(axis)] = kAlone;
  }
  const Strides strides(x.layout.strides, x.layout.strides + shape.rank());
  const Nest nest =
      collapse(shape, {strides, row_major_strides({shape.begin(), shape.end()})}, kinds);

  Frame frame;
  std::vector<int64_t> x_extents = nest.extents;
  std::vector<PaddedAxis> padded;
  std::vector<int64_t> numbers;
  int from = 0;  // axis of the shape
  for (int axis = 0; axis < nest.rank(); axis++) {
    if (nest.kinds[size_t(axis)] != kAlone) continue;
    while (kinds[size_t(from)] != kAlone) from++;
    x_extents[size_t(axis)] = x.type.shape[from];
    padded.push_back({axis, per_axis.third(from) > 0});
    numbers.insert(numbers.end(),
                   {per_axis.first(from), x.type.shape[from], per_axis.third(from) + 1});
    from++;
  }
  frame.read("x", x, x_extents, nest.strides[0]);
  frame.read("value", value, {}, {});
  frame.write("y", Place::output(0), anchor.result.dtype, nest.extents, nest.strides[1]);
  for (size_t i = 0; i < padded.size(); i++) {
    frame.number(fmt::format("before{}", i), DType::i64, numbers[i * 3]);
    frame.number(fmt::format("size{}", i), DType::i64, numbers[i * 3 + 1]);
    frame.number(fmt::format("step{}", i), DType::i64, numbers[i * 3 + 2]);
  }
  list->add(walk(device, {.name = "pad",
                          .key = key_of(padded),
                          .frame = std::move(frame),
                          .extents = nest.extents,
                          .body = [padded](Builder& k, const Framed& f, const At& at) {
                            Position from_position = at.position;
                            Value inside = k.constant(DType::bool_, true);
                            for (size_t i = 0; i < padded.size(); i++) {
                              Value& p = from_position[size_t(padded[i].axis)];
                              const DType index = p.dtype();
                              const Value before = k.cast(f.numbers[i * 3], index);
                              const Value size = k.cast(f.numbers[i * 3 + 1], index);
                              const Value step = k.cast(f.numbers[i * 3 + 2], index);
                              const Value moved = p - before;
                              inside = inside & (moved >= 0);
                              p = moved;
                              if (padded[i].spread) {
                                p = moved / step;
                                inside = inside & (p * step == moved);
                              }
                              inside = inside & (p < size);
                            }
                            const Value padding = f.views[1].load(k, {});
                            const Value y = f.views[0].load(k, from_position, inside, padding);
                            f.views[2].store(k, at.position, y);
                          }}));
  return list;
}

namespace {

// Adds up the elements whose windows hold the result's element, over the taps of window axes from
// `next` on.
void add_taps(Builder& k, const Framed& f, const std::vector<int>& axes, size_t next,
              Position& position, Value inside, kernel::Variable& sum) {
  if (next == axes.size()) {
    const View& x = f.views[0];
    const Value zero = k.constant(x.known.dtype, 0);
    const Value element = x.load(k, position, inside, zero);
    sum = sum.get() + k.cast(element, sum.get().dtype());
    return;
  }
  const size_t axis = size_t(axes[next]);
  const Value place = position[axis];
  const DType index = place.dtype();
  const auto number = [&](size_t i) { return k.cast(f.numbers[next * 4 + i], index); };
  const Value size = number(0), step = number(1), dilation = number(2), count = number(3);
  k.loop(k.constant(index, 0), size, k.constant(index, 1), [&](Value tap) {
    const Value begin = place - tap * dilation;
    const Value window = begin / step;
    const Value fits = (begin >= 0) & (window * step == begin) & (window < count);
    position[axis] = window;
    position.push_back(tap);
    add_taps(k, f, axes, next + 1, position, inside & fits, sum);
    position.pop_back();
    position[axis] = place;
  });
}

}  // namespace

std::unique_ptr<PreparedGroup> prepare_fold(Device& device, const Group& group) {
  const Anchor anchor = anchor_of(group);
  const Input& x = anchor.inputs[0];
  const Shape& shape = anchor.result.shape;
  const int rank = shape.rank(), windows = window_count(anchor.attributes);
  auto list = std::make_unique<LaunchList>(device);
  if (shape.element_count() == 0) return list;
  std::vector<int> kinds(size_t(rank), 0);
  for (int i = 0; i < windows; i++) {
    kinds[size_t(window_of(anchor.attributes, i).axis)] = kAlone;
  }
  const Strides strides(x.layout.strides, x.layout.strides + rank);
  const Nest nest =
      collapse(shape, {strides, row_major_strides({shape.begin(), shape.end()})}, kinds);
  // The nest's axis of each axis that stands alone.
  std::vector<int> nest_axis(size_t(rank), -1);
  for (int axis = 0, at = 0; at < nest.rank(); at++) {
    if (nest.kinds[size_t(at)] != kAlone) continue;
    while (kinds[size_t(axis)] != kAlone) axis++;
    nest_axis[size_t(axis++)] = at;
  }
  Frame frame;
  std::vector<int> axes;
  std::vector<int64_t> x_extents = nest.extents;
  Strides x_strides = nest.strides[0];
  for (int i = 0; i < windows; i++) {
    const WindowAxis w = window_of(anchor.attributes, i);
    axes.push_back(nest_axis[size_t(w.axis)]);
    x_extents[size_t(axes.back())] = x.type.shape[w.axis];
    x_extents.push_back(w.size);
    x_strides.push_back(x.layout.strides[rank + i]);
    frame.number(fmt::format("size{}", i), DType::i64, w.size);
    frame.number(fmt::format("step{}", i), DType::i64, w.step);
    frame.number(fmt::format("dilation{}", i), DType::i64, w.dilation);
    frame.number(fmt::format("count{}", i), DType::i64, x.type.shape[w.axis]);
  }
  frame.read("x", x, x_extents, x_strides);
  frame.write("y", Place::output(0), anchor.result.dtype, nest.extents, nest.strides[1]);
  std::string key;
  for (const int axis : axes) key += fmt::format("{}", axis);
  list->add(walk(device, {.name = "fold",
                          .key = std::move(key),
                          .frame = std::move(frame),
                          .extents = nest.extents,
                          .body = [axes](Builder& k, const Framed& f, const At& at) {
                            const DType dtype = f.views[1].known.dtype;
                            kernel::Variable sum(k.constant(kernel::compute_dtype(dtype), 0));
                            Position position = at.position;
                            add_taps(k, f, axes, 0, position, k.constant(DType::bool_, true), sum);
                            f.views[1].store(k, at.position, k.cast(sum.get(), dtype));
                          }}));
  return list;
}

}  // namespace fornax::cube
