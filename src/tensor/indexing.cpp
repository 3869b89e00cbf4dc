// Resolving indexes: NumPy's rules.
#include "tensor/indexing.h"

#include <algorithm>

#include "tensor/compose.h"

namespace fornax {
namespace {

struct Parser {
  const Tensor& x;
  ParsedIndex parsed;
  int axis = 0;    // of x, the next to be indexed
  int groups = 0;  // runs of neighbouring advanced indexes
  bool in_group = false;
  bool has_tensors = false;

  int64_t size() const { return x.shape()[axis]; }

  void add_slice(int64_t start, int64_t count, int64_t step) {
    parsed.slices.insert(parsed.slices.end(), {start, count, step});
    parsed.region.push_back(count);
    axis++;
  }
  void keep(int count) {
    for (int i = 0; i < count; i++) {
      parsed.basic.push_back(size());
      add_slice(0, size(), 1);
    }
  }
  // Positions stand among the advanced indexes where there are any, as in NumPy.
  void mark(bool advanced) {
    if (advanced && !in_group) groups++;
    in_group = advanced;
  }

  void add(const Index& item, int left_over) {
    switch (item.kind()) {
      case Index::Kind::position:
        position(item.position());
        break;
      case Index::Kind::slice:
        range(item.range());
        break;
      case Index::Kind::ellipsis:
        mark(false);
        keep(left_over);
        break;
      case Index::Kind::new_axis:
        mark(false);
        parsed.basic.push_back(1);
        break;
      case Index::Kind::tensor:
        mark(true);
        is_boolean(item.tensor().dtype()) ? mask(item.tensor()) : integers(item.tensor());
        break;
      case Index::Kind::absent:
        break;
    }
  }

  void position(int64_t given) {
    mark(has_tensors);
    const int64_t at = given < 0 ? given + size() : given;
    if (at < 0 || at >= size()) {
      fail(ErrorKind::index, "{}: position {} is outside axis {} of {}, which has {} elements",
           Call::name_or("index"), given, axis, text_of(node_of(x).type), size());
    }
    add_slice(at, 1, 1);
  }

  void range(const Slice& slice) {
    mark(false);
    if (slice.step == 0) {
      fail(ErrorKind::value, "{}: the step of a slice must not be 0", Call::name_or("index"));
    }
    // Longer steps pick the same element, the first, and would overflow further on.
    const int64_t longest = std::max<int64_t>(size(), 1);
    const int64_t step = std::clamp(slice.step, -longest, longest);
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size() : size() - 1;
    const auto bound = [&](const std::optional<int64_t>& given, int64_t otherwise) {
      if (!given) return otherwise;
      return std::clamp(*given < 0 ? *given + size() : *given, low, high);
    };
    const int64_t start = bound(slice.start, step > 0 ? low : high);
    const int64_t stop = bound(slice.stop, step > 0 ? high : low);
    const int64_t span = step > 0 ? stop - start : start - stop;
    const int64_t count = span <= 0 ? 0 : (span - 1) / std::abs(step) + 1;
    parsed.basic.push_back(count);
    add_slice(count > 0 ? start : 0, count, count > 1 ? step : 1);
  }

  void integers(const Tensor& index) {
    if (!is_integer(index.dtype())) {
      fail(ErrorKind::dtype, "{}: index tensors must be integers or bool, got {}; cast it to i64",
           Call::name_or("index"), text_of(node_of(index).type));
    }
    parsed.advanced.push_back({index, parsed.basic.rank(), 1, false});
    keep(1);
  }

  void mask(const Tensor& mask) {
    bool fits = mask.rank() > 0;
    for (int i = 0; fits && i < mask.rank(); i++) fits = mask.shape()[i] == x.shape()[axis + i];
    if (!fits) {
      fail(ErrorKind::index, "{}: the mask {} does not have the sizes of {} from axis {} on",
           Call::name_or("index"), text_of(node_of(mask).type), text_of(node_of(x).type), axis);
    }
    parsed.advanced.push_back({true_positions(mask), parsed.basic.rank(), mask.rank(), true});
    keep(mask.rank());
  }
};

int axes_of(const Index& item) {
  switch (item.kind()) {
    case Index::Kind::position:
    case Index::Kind::slice:
      return 1;
    case Index::Kind::tensor:
      return is_boolean(item.tensor().dtype()) ? item.tensor().rank() : 1;
    default:
      return 0;
  }
}

// Positions within the axis' `size` elements, negative ones counted from the end.
Tensor wrapped(const Tensor& index, int64_t size) {
  if (!is_signed(index.dtype())) return index;
  const Tensor wide = converted(index, DType::i64);
  return where(wide < 0, wide + size, wide);
}

// One position in the merged axes for several indexes.  A row-major sum would hide that one of them
// is out of range, so such positions are moved behind the end, where gather refuses them.
Tensor combined(const ParsedIndex& parsed, const Shape& sizes, int64_t total) {
  Tensor sum, outside;
  int64_t stride = total;
  for (size_t i = 0; i < parsed.advanced.size(); i++) {
    const AdvancedIndex& item = parsed.advanced[i];
    const int64_t size = sizes[int(i)];
    stride /= std::max<int64_t>(size, 1);
    const Tensor index =
        item.in_range ? item.index : converted(wrapped(item.index, size), DType::i64);
    const Tensor term = stride == 1 ? index : index * stride;
    sum = sum.defined() ? sum + term : term;
    if (item.in_range) continue;
    const Tensor bad = (index < 0) | (index >= size);
    outside = outside.defined() ? outside | bad : bad;
  }
  return outside.defined() ? where(outside, total, sum) : sum;
}

}  // namespace

bool ParsedIndex::ascending() const {
  const PerAxis per_axis{slices};
  for (int axis = 0; axis < region.rank(); axis++) {
    if (per_axis.third(axis) != 1) return false;
  }
  return true;
}

ParsedIndex parse(const Tensor& x, std::span<const Index> items) {
  int used = 0, ellipses = 0;
  bool has_tensors = false;
  for (const Index& item : items) {
    used += axes_of(item);
    ellipses += item.kind() == Index::Kind::ellipsis;
    has_tensors |= item.kind() == Index::Kind::tensor;
  }
  if (ellipses > 1) fail(ErrorKind::index, "{}: more than one ellipsis", Call::name_or("index"));
  if (used > x.rank()) {
    fail(ErrorKind::index, "{}: {} axes are indexed, {} has {}", Call::name_or("index"), used,
         text_of(node_of(x).type), x.rank());
  }
  Parser parser{.x = x, .parsed = {}, .has_tensors = has_tensors};
  for (const Index& item : items) parser.add(item, x.rank() - used);
  parser.keep(x.rank() - parser.axis);
  parser.parsed.separated = parser.groups > 1;
  return std::move(parser.parsed);
}

MergedAxes merge(const ParsedIndex& parsed) {
  MergedAxes m;
  const Shape& basic = parsed.basic;
  std::vector<bool> advanced(size_t(basic.rank()), false);
  Attributes picked;  // the axes that go
  Shape sizes;        // of each index' axes together
  int64_t total = 1;
  for (const AdvancedIndex& item : parsed.advanced) {
    int64_t size = 1;
    for (int axis = item.axis; axis < item.axis + item.axes; axis++) {
      advanced[size_t(axis)] = true;
      picked.push_back(axis);
      size *= basic[axis];
    }
    sizes.push_back(size);
    total *= size;
  }
  m.axis = parsed.separated ? 0 : parsed.advanced[0].axis;
  for (int axis = 0; axis < basic.rank(); axis++) {
    if (!advanced[size_t(axis)]) m.order.push_back(axis);
  }
  m.order.insert(m.order.begin() + m.axis, picked.begin(), picked.end());
  for (int64_t axis : m.order) m.permuted.push_back(basic[int(axis)]);
  if (std::is_sorted(m.order.begin(), m.order.end())) m.order.clear();
  m.merged = m.permuted;
  for (size_t i = 1; i < picked.size(); i++) m.merged.erase(m.axis);
  m.merged[m.axis] = total;
  m.positions = parsed.advanced.size() == 1 && parsed.advanced[0].in_range
                    ? parsed.advanced[0].index
                : parsed.advanced.size() == 1 ? wrapped(parsed.advanced[0].index, total)
                                              : combined(parsed, sizes, total);
  m.result = m.merged;
  m.result.erase(m.axis);
  const Shape shape = m.positions.shape();
  for (int i = 0; i < shape.rank(); i++) m.result.insert(m.axis + i, shape[i]);
  return m;
}

Tensor take_along(const Tensor& x, const Tensor& index, int axis) {
  Shape column, wide = x.shape(), result = x.shape();
  const int64_t count = index.element_count();
  for (int i = 0; i < x.rank(); i++) column.push_back(i == axis ? count : 1);
  wide[axis] = count;
  result.erase(axis);
  for (int i = 0; i < index.rank(); i++) result.insert(axis + i, index.shape()[i]);
  return reshaped(gathered(x, axis, expanded(reshaped(index, column), wide)), result);
}

Tensor true_positions(const Tensor& mask) {
  std::vector<uint8_t> values;
  {
    Untracked untracked;
    values = converted(mask, DType::bool_).to_vector<uint8_t>();
  }
  std::vector<int64_t> found;
  for (size_t i = 0; i < values.size(); i++) {
    if (values[i]) found.push_back(int64_t(i));
  }
  return from_host(found.data(), {DType::i64, {int64_t(found.size())}}, mask.device());
}

}  // namespace fornax
