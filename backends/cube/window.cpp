#include "backends/cube/window.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/number.h"

namespace fornax::cube {
namespace {

constexpr kernel::Facts kAny{.most = INT64_MAX};

std::vector<int64_t> extents_of(const Source& source) {
  return {source.shape.begin(), source.shape.end()};
}

}  // namespace

Value Window::place(int axis, Value number, Value tap) const {
  return number * stride[axis].size + tap * dilation[axis] - before[axis];
}

Window declare_window(Builder& k, DType index) {
  Window window;
  for (int axis = 0; axis < 2; axis++) {
    const std::string suffix = std::to_string(axis);
    window.size[axis] = k.number("size" + suffix, index, kAny);
    window.before[axis] = k.number("before" + suffix, index, kAny);
    window.dilation[axis] = k.number("dilation" + suffix, index, kAny);
    window.stride[axis] = declare_extent(k, "stride" + suffix, index);
  }
  return window;
}

void pass_window(Arguments& arguments, const Window2d& window, DType index) {
  for (int axis = 0; axis < 2; axis++) {
    arguments.number(index, window.size[axis]);
    arguments.number(index, window.before[axis]);
    arguments.number(index, window.dilation[axis]);
    pass_extent(arguments, window.stride[axis], index);
  }
}

Value within(Value place, Value size) { return (place >= 0) & (place < size); }

Pictures::Pictures(Device& device, ScratchSequence& sequence, const Group& group) {
  const Step& step = group.graph.steps[size_t(group.anchor)];
  for (int i = 0; i < int(step.inputs.size()); i++) {
    sources.push_back(source_of(device, sequence, group, i));
  }
  const Shape& shape = step.type.shape;
  sources.push_back(
      {Place::output(0), step.type.dtype, shape, row_major_strides({shape.begin(), shape.end()})});
  std::vector<Span> spans;
  int64_t most = 0;
  for (const Source& source : sources) {
    known.push_back(view_class(source.dtype, source.strides));
    spans.push_back(span_of(extents_of(source), source.strides));
    most = std::max(most, source.shape.element_count());
  }
  index = index_dtype(most, spans);
}

std::string Pictures::key() const {
  std::string key(name_of(index));
  for (const ViewClass& view : known) key += " " + key_of(view);
  return key;
}

std::vector<View> Pictures::declare(Builder& k, bool with_result) const {
  std::vector<View> views;
  for (size_t i = 0; i < sources.size(); i++) {
    const bool written = i + 1 == sources.size();
    if (written && !with_result) break;
    const std::string name = written ? "y" : fmt::format("x{}", i);
    views.push_back(declare_view(k, name, known[i], written, index));
  }
  return views;
}

void Pictures::pass(Arguments& arguments, bool with_result) const {
  for (size_t i = 0; i < sources.size() - size_t(!with_result); i++) {
    pass_view(arguments, sources[i].place, known[i], extents_of(sources[i]), sources[i].strides,
              index);
  }
}

}  // namespace fornax::cube
