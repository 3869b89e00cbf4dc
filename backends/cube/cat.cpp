// cat: few elements are copied by one launch, in which each thread finds the part that its elements
// come from; many by a launch for each part.
#include <algorithm>

#include "backends/cube/elementwise.h"
#include "backends/cube/frame.h"
#include "backends/cube/kernels.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::cube {
namespace {

constexpr int64_t kFewElements = 1 << 22;  // what takes little longer than a launch
constexpr size_t kMostParts = 8;           // of one launch

// Parts that follow one another in a result, by one launch.
class Joined {
 public:
  // Requires: there are parts.  The first one begins at `first`.
  Joined(Device& device, std::vector<Input> parts, const Type& result, int axis, int64_t first)
      : device_(device), parts_(std::move(parts)), dtype_(result.dtype), numbers_{first} {
    std::vector<Strides> strides = {row_major_strides({result.shape.begin(), result.shape.end()})};
    int64_t length = 0;
    for (const Input& part : parts_) {
      strides.emplace_back(part.layout.strides, part.layout.strides + result.shape.rank());
      lengths_.push_back(part.type.shape[axis]);
      numbers_.push_back(length += lengths_.back());
    }
    Shape domain = result.shape;
    domain[axis] = length;
    std::vector<int> kinds(size_t(domain.rank()), 0);
    kinds[size_t(axis)] = kAlone;
    nest_ = collapse(domain, std::move(strides), kinds);
    axis_ = size_t(std::find(nest_.kinds.begin(), nest_.kinds.end(), kAlone) - nest_.kinds.begin());
    whole_ = result.shape[axis];
  }

  std::unique_ptr<PreparedGroup> prepare() const {
    const int lanes = best_lanes();
    if (lanes == 1) return make(1);
    std::vector<VectorGroup::Operand> operands;
    for (size_t i = 0; i < parts_.size(); i++) {
      if (in_vectors(i, lanes)) operands.push_back({parts_[i].place, dtype_, 0});
    }
    return std::make_unique<VectorGroup>(lanes, std::move(operands),
                                         [self = *this](int n) { return self.make(n); });
  }

 private:
  // Side by side in the result.
  int best_lanes() const {
    const Strides& strides = nest_.strides[0];
    if (strides.back() != 1) return 1;
    std::vector<int64_t> numbers = {nest_.extents.back()};
    numbers.insert(numbers.end(), strides.begin(), strides.end() - 1);
    if (axis_ + 1 == nest_.extents.size()) {
      numbers.insert(numbers.end(), numbers_.begin(), numbers_.end());
    }
    return common_power(numbers, 16 / int(size_of(dtype_)));
  }
  bool in_vectors(size_t part, int lanes) const {
    const Strides& strides = nest_.strides[part + 1];
    return !parts_[part].number && strides.back() == 1 &&
           common_power({strides.begin(), strides.end() - 1}, lanes) == lanes;
  }

  std::unique_ptr<PreparedGroup> make(int lanes) const {
    Frame frame;
    std::vector<int64_t> extents = nest_.extents;
    extents[axis_] = whole_;
    frame.write("y", Place::output(0), dtype_, extents, nest_.strides[0], lanes);
    for (size_t i = 0; i < parts_.size(); i++) {
      extents[axis_] = lengths_[i];
      frame.read(fmt::format("x{}", i), parts_[i], extents, nest_.strides[i + 1],
                 in_vectors(i, lanes) ? lanes : 1);
    }
    frame.number("first", DType::i64, numbers_[0]);
    for (size_t i = 1; i < numbers_.size(); i++) {
      frame.number(fmt::format("end{}", i - 1), DType::i64, numbers_[i]);
    }
    auto list = std::make_unique<LaunchList>(device_);
    list->add(walk(device_, {.name = "cat",
                             .key = fmt::format("{}", axis_),
                             .frame = std::move(frame),
                             .extents = nest_.extents,
                             .lanes = lanes,
                             .body = [axis = axis_](Builder& k, const Framed& f, const At& at) {
                               copy(k, f, at, axis);
                             }}));
    return list;
  }

  static Value loaded(Builder& k, const View& x, Position position, int lanes) {
    if (x.number) return widen(k, x.number, lanes);
    if (x.known.alignment >= lanes) return x.load_vector(k, position, lanes);
    std::vector<Value> elements;
    const Value first = position.back();
    for (int lane = 0; lane < lanes; lane++) {
      position.back() = first + lane;
      elements.push_back(x.load(k, position));
    }
    return k.pack(elements);
  }

  static void copy(Builder& k, const Framed& f, const At& at, size_t axis) {
    const Value place = at.position[axis];
    const auto number = [&](size_t i) { return k.cast(f.numbers[i], place.dtype()); };
    const size_t parts = f.views.size() - 1;
    for (size_t i = 0; i < parts; i++) {
      const auto put = [&] {
        Position from = at.position, to = at.position;
        if (i > 0) from[axis] = place - number(i);
        to[axis] = place + number(0);
        f.views[0].store(k, to, loaded(k, f.views[i + 1], from, at.lanes));
      };
      const Value before_end = place < number(i + 1);
      if (parts == 1) {
        put();
      } else if (i == 0) {
        k.when(before_end, put);
      } else if (i + 1 == parts) {
        k.when(place >= number(i), put);
      } else {
        k.when((place >= number(i)) & before_end, put);
      }
    }
  }

  Device& device_;
  std::vector<Input> parts_;
  DType dtype_;
  std::vector<int64_t> lengths_;  // along the axis
  std::vector<int64_t> numbers_;  // where they begin in the result; the end of each from there on
  int64_t whole_ = 0;             // the result's length
  Nest nest_;                     // of the result and the parts
  size_t axis_ = 0;               // of the nest
};

std::unique_ptr<PreparedGroup> copy_each(Device& device, const Anchor& anchor, int axis) {
  const Shape& shape = anchor.result.shape;
  const Strides strides = row_major_strides({shape.begin(), shape.end()});
  auto sequence = std::make_unique<Sequence>();
  int64_t begin = 0;
  for (const Input& part : anchor.inputs) {
    const Shape& own = part.type.shape;
    const CopySide from{part.place, 0, strides_over(own, own, part.layout), part.number};
    const CopySide to{Place::output(0), begin * strides[size_t(axis)], strides, false};
    sequence->add(prepare_copy(device, from, to, anchor.result.dtype, own));
    begin += own[axis];
  }
  return sequence;
}

}  // namespace

std::unique_ptr<PreparedGroup> prepare_cat(Device& device, const Group& group) {
  const Anchor anchor = anchor_of(group);
  const int axis = axis_of(anchor.attributes);
  if (anchor.result.shape.element_count() > kFewElements) return copy_each(device, anchor, axis);
  auto sequence = std::make_unique<Sequence>();
  std::vector<Input> parts;
  int64_t begin = 0, end = 0;
  const auto add = [&] {
    if (parts.empty()) return;
    const Joined joined(device, std::exchange(parts, {}), anchor.result, axis, begin);
    sequence->add(joined.prepare());
    begin = end;
  };
  for (const Input& part : anchor.inputs) {
    if (part.type.shape.element_count() == 0) continue;
    parts.push_back(part);
    end += part.type.shape[axis];
    if (parts.size() == kMostParts) add();
  }
  add();
  return sequence;
}

}  // namespace fornax::cube
