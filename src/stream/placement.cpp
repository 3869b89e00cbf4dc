#include "stream/placement.h"

#include "graph/attributes.h"
#include "stream/alike.h"

namespace fornax {
namespace {

// What has more elements keeps its lines: elements that are written one by one, far apart, cost
// more than a copy then.
constexpr int64_t kFewElements = 1 << 20;
constexpr int64_t kAlignment = 16;  // bytes, of products: their kernels store vectors

class Placer {
 public:
  Placer(const Segment& segment, const Grouping& grouping, const Storage& storage,
         const Backend& backend)
      : segment_(segment),
        grouping_(grouping),
        storage_(storage),
        backend_(backend),
        leaves_(int(segment.leaves.size())) {
    const size_t count = segment.nodes.size();
    result_ = {std::vector<Placement>(count), std::vector<bool>(count)};
    readers_.assign(count, 0);
    for (const SegmentNode& x : segment.nodes) {
      for (const int input : x.inputs) {
        if (input >= leaves_) readers_[size_t(input - leaves_)]++;
      }
    }
  }

  Placements run() {
    for (int n = 0; n < int(segment_.nodes.size()); n++) {
      if (node(n).op == Op::reshape) place_for_reshape(n);
      if (node(n).op == Op::cat) place_in_cat(n);
    }
    return std::move(result_);
  }

 private:
  const SegmentNode& node(int n) const { return segment_.nodes[size_t(n)]; }
  const Type& type_of(int input) const { return segment_.type_of(input); }

  // A reshape of what is permuted needs a copy, unless the permuted value lies row-major.
  void place_for_reshape(int reshape) {
    const SegmentNode& x = node(reshape);
    const int from = x.inputs[0];
    Layout layout = row_major(type_of(from).shape), plain;
    const int n = source_of(from, layout);
    if (n < 0 || is_contiguous(node(n).type.shape, layout)) return;
    if (view_layout(x.op, x.attributes, type_of(from), plain_layout(from), x.type, plain)) return;
    result_.of[size_t(n)] = {true, -1, layout};
  }

  void place_in_cat(int cat) {
    const SegmentNode& x = node(cat);
    if (!storage_.stored[size_t(cat)] || x.type.shape.element_count() == 0) return;
    const int axis = axis_of(x.attributes);
    Layout layout = row_major(x.type.shape);
    const int64_t stride = layout.strides[axis];
    std::vector<std::pair<int, Layout>> parts;
    for (const int input : x.inputs) {
      Layout own = layout;
      const int n = source_of(input, own);
      if (n < 0) return;
      parts.emplace_back(n, own);
      layout.offset += type_of(input).shape[axis] * stride;
    }
    for (const auto& [n, own] : parts) result_.of[size_t(n)] = {true, cat, own};
    result_.assembled[size_t(cat)] = true;
  }

  // The node whose value `input` shows, if nobody else can read it and it can be written anywhere;
  // `layout`, of the input, becomes that of the node.  -1: there is none.
  int source_of(int input, Layout& layout) const {
    while (input >= leaves_) {
      const int n = input - leaves_;
      const SegmentNode& x = node(n);
      if (readers_[size_t(n)] != 1 || x.outlives) return -1;
      if (!is_view(x.op)) return may_place(n, layout) ? n : -1;
      input = x.inputs[0];
      if (x.op == Op::permute) {
        Layout moved;
        moved.offset = layout.offset;
        for (int axis = 0; axis < x.type.shape.rank(); axis++) {
          moved.strides[x.attributes[size_t(axis)]] = layout.strides[axis];
        }
        layout = moved;
      } else if (same_but_for_ones(x.type.shape, type_of(input).shape)) {
        Type type = x.type;
        match_axes(x.type.shape, type_of(input).shape, type, layout);
      } else {
        return -1;
      }
    }
    return -1;
  }

  bool may_place(int n, const Layout& layout) const {
    const Draft& draft = grouping_.draft(grouping_.group_of(n + leaves_));
    const Shape& shape = node(n).type.shape;
    int last = shape.rank() - 1;
    while (last > 0 && shape[last] == 1) last--;
    const bool lines = last < 0 || layout.strides[last] == 1;
    if (!storage_.stored[size_t(n)] || !(lines || shape.element_count() <= kFewElements) ||
        !same_but_for_ones(shape, grouping_.shape_in_group(n))) {
      return false;
    }
    const Op anchor = draft.anchor < 0 ? Op::copy : node(draft.anchor).op;
    if (!backend_.writes_anywhere(anchor)) return false;
    const int64_t offset = layout.offset * int64_t(size_of(node(n).type.dtype));
    return anchor != Op::matmul || (offset % kAlignment == 0 && stays_as_it_is(draft));
  }

  // Whether a product is computed alike wherever its result lies.  Products of a batch by one
  // matrix are one product only if their results lie side by side, and a batch of many axes may
  // have a kernel only if they can be joined.
  bool stays_as_it_is(const Draft& product) const {
    const SegmentNode& x = node(product.anchor);
    if (!same_but_for_ones(x.type.shape, product.result)) return false;
    int batch = 0;
    for (int axis = 0; axis < product.result.rank() - 2; axis++) batch += product.result[axis] != 1;
    if (batch > 2) return false;
    int right = x.inputs[1];
    while (right >= leaves_ && is_view(node(right - leaves_).op)) {
      if (node(right - leaves_).op == Op::expand) return false;
      right = node(right - leaves_).inputs[0];
    }
    return true;
  }

  // How `input`, a view that source_of() followed, lies if what it shows lies row-major.
  Layout plain_layout(int input) const {
    const SegmentNode& x = node(input - leaves_);
    if (!is_view(x.op)) return row_major(x.type.shape);
    Layout layout;
    view_layout(x.op, x.attributes, type_of(x.inputs[0]), plain_layout(x.inputs[0]), x.type,
                layout);
    return layout;
  }

  const Segment& segment_;
  const Grouping& grouping_;
  const Storage& storage_;
  const Backend& backend_;
  const int leaves_;
  Placements result_;
  std::vector<int> readers_;  // per node
};

}  // namespace

Placements choose_placements(const Segment& segment, const Grouping& grouping,
                             const Storage& storage, const Backend& backend) {
  return Placer(segment, grouping, storage, backend).run();
}

}  // namespace fornax
