#include "backends/cube/frame.h"

#include "base/error.h"

namespace fornax::cube {
namespace {

constexpr int kThreads = 256;

// The stride of an axis of one position says nothing.
Strides that_matter(const std::vector<int64_t>& extents, Strides strides) {
  for (size_t axis = 0; axis < extents.size(); axis++) {
    if (extents[axis] <= 1 && strides[axis] != 1) strides[axis] = 0;
  }
  return strides;
}

}  // namespace

Anchor anchor_of(const Group& group) {
  const Step& step = group.graph.steps[size_t(group.anchor)];
  Anchor anchor{step.op, step.attributes, step.type, {}};
  for (const int number : step.inputs) {
    const Step& input = group.graph.steps[size_t(number)];
    anchor.inputs.push_back(
        {Place::input(number), input.type, group.layouts[size_t(number)], input.op == Op::full});
  }
  return anchor;
}

std::string FrameClass::key() const {
  std::string key;
  for (const Seen& view : views) key += " " + key_of(view.known);
  key += fmt::format(" r{}", extents);
  for (const auto& [name, dtype] : numbers) key += fmt::format(" {}", name_of(dtype));
  return key;
}

Framed declare_frame(Builder& k, const FrameClass& frame) {
  Framed framed;
  for (const FrameClass::Seen& view : frame.views) {
    framed.views.push_back(declare_view(k, view.name, view.known, view.written, frame.index));
  }
  framed.extents = declare_extents(k, frame.extents, frame.index);
  for (const auto& [name, dtype] : frame.numbers) {
    framed.numbers.push_back(k.number(name, dtype, {.most = INT64_MAX}));
  }
  return framed;
}

void Frame::read(std::string name, const Input& input, std::vector<int64_t> extents,
                 Strides strides, int alignment) {
  strides = that_matter(extents, std::move(strides));
  ViewClass known = view_class(input.type.dtype, strides);
  known.number = input.number;
  known.alignment = input.number ? 1 : alignment;
  views_.push_back(
      {{std::move(name), known, false}, input.place, std::move(extents), std::move(strides)});
}
void Frame::read(std::string name, Place place, DType dtype, std::vector<int64_t> extents,
                 Strides strides) {
  read(std::move(name), Input{place, {dtype, {}}, {}, false}, std::move(extents),
       std::move(strides));
}
void Frame::write(std::string name, Place place, DType dtype, std::vector<int64_t> extents,
                  Strides strides, int alignment, bool aliased) {
  strides = that_matter(extents, std::move(strides));
  ViewClass known = view_class(dtype, strides);
  known.alignment = alignment;
  known.aliased = aliased;
  views_.push_back({{std::move(name), known, true}, place, std::move(extents), std::move(strides)});
}
void Frame::number(std::string name, DType dtype, int64_t value) {
  numbers_.emplace_back(std::move(name), dtype);
  values_.push_back(value);
}

FrameClass Frame::described(const std::vector<int64_t>& extents) const {
  FrameClass frame;
  std::vector<Span> spans;
  for (const Entry& entry : views_) {
    frame.views.push_back(entry.seen);
    spans.push_back(span_of(entry.extents, entry.strides));
  }
  frame.index = index_dtype(product(extents), spans);
  frame.extents = int(extents.size());
  frame.numbers = numbers_;
  return frame;
}

Arguments Frame::arguments(const std::vector<int64_t>& extents) const {
  const DType index = described(extents).index;
  Arguments arguments;
  for (const Entry& entry : views_) {
    pass_view(arguments, entry.place, entry.seen.known, entry.extents, entry.strides, index);
  }
  pass_extents(arguments, extents, index);
  for (size_t i = 0; i < values_.size(); i++) arguments.number(numbers_[i].second, values_[i]);
  return arguments;
}

Launch walk(Device& device, Walk walk) {
  const FrameClass known = walk.frame.described(walk.extents);
  const int64_t count = product(walk.extents);
  const Vectors vectors{known.index, walk.lanes, count % walk.lanes == 0};
  Arguments arguments = walk.frame.arguments(walk.extents);
  pass_vectors(arguments, vectors, count);
  std::string key = fmt::format("{} {} {}{}", walk.name, walk.key, key_of(vectors), known.key());
  auto build = [known, vectors, name = walk.name, body = std::move(walk.body)] {
    Builder k(name, {.threads = kThreads});
    const Framed framed = declare_frame(k, known);
    for_vectors(k, vectors, [&](std::span<const Value> elements, int lanes) {
      body(k, framed, {position_of(k, framed.extents, elements[0]), elements[0], lanes});
    });
    return k.finish();
  };
  return Launch(device, {std::move(key), std::move(build)}, grid_of(vectors, count, kThreads),
                std::move(arguments), std::move(walk.complaint));
}

}  // namespace fornax::cube
