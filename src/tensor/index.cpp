// Indexing, gathering and scattering.  Assigning through at() makes a new value and rebinds the
// handle, so that the right side sees the old one whatever it overlaps.
#include <fornax/ops.h>

#include <algorithm>

#include "tensor/compose.h"
#include "tensor/indexing.h"

namespace fornax {
namespace {

std::span<const Index> given(const Index (&items)[kMaxIndexes]) {
  size_t count = 0;
  while (count < size_t(kMaxIndexes) && items[count].kind() != Index::Kind::absent) count++;
  return {items, count};
}

Tensor basic_part(const Tensor& x, const ParsedIndex& parsed) {
  const Tensor region = parsed.whole(x.shape()) ? x : record(Op::slice, {&x}, parsed.slices);
  return reshaped(region, parsed.basic);
}

Tensor advanced_part(const Tensor& basic, const ParsedIndex& parsed) {
  if (parsed.advanced.empty()) return basic;
  const MergedAxes m = merge(parsed);
  const Tensor together = m.order.empty() ? basic : permuted(basic, m.order);
  return take_along(reshaped(together, m.merged), m.positions, m.axis);
}

// ── Values that go into a tensor ─────────────────────────────────────────────────────────────────
void check_into(const Tensor& x, bool floating, std::string_view what) {
  if (floating && !is_floating(x.dtype())) {
    fail(ErrorKind::dtype, "{}: {} cannot go into {}; cast one", Call::name_or("at"), what,
         text_of(node_of(x).type));
  }
}

// The operand in the dtype of x and the given shape.
Tensor value_for(const Tensor& x, const Operand& value, const Shape& shape) {
  if (value.is_number()) {
    check_into(x, value.number().kind() == Scalar::Kind::floating, "a float");
    return constant(x.device(), {x.dtype(), shape}, scalar_as(x.dtype(), value.number()));
  }
  const Tensor& tensor = value.tensor();
  check_into(x, is_floating(tensor.dtype()), text_of(node_of(tensor).type));
  Tensor converted = fornax::converted(tensor, x.dtype());
  while (converted.rank() > shape.rank() && converted.shape()[0] == 1) {
    converted = reshaped(converted, without(converted.shape(), {0}));
  }
  return expanded(converted, shape);
}

Tensor scattered(const Tensor& x, int axis, const Tensor& index, const Tensor& values,
                 ScatterMode mode) {
  return record(Op::scatter, {&x, &index, &values}, ScatterSettings::pack(axis, mode));
}

Tensor scatter_operand(const Tensor& x, int64_t axis, const Tensor& index, const Operand& values,
                       ScatterMode mode) {
  return scattered(x, normal_axis(axis, x), index, value_for(x, values, index.shape()), mode);
}

// ── Assigning ────────────────────────────────────────────────────────────────────────────────────
// The only axis on which `parsed` leaves something of x out, or -1 where there are more.
int partial_axis(const Shape& shape, const ParsedIndex& parsed) {
  int partial = -1;
  for (int axis = 0; axis < shape.rank(); axis++) {
    if (parsed.region[axis] == shape[axis]) continue;
    if (partial >= 0) return -1;
    partial = axis;
  }
  return partial;
}

// The parts of x before and after the region, with `values` in between.
Tensor joined(const Tensor& x, const Tensor& values, int axis, int64_t start, int64_t count) {
  const int64_t end = start + count, size = x.shape()[axis];
  Tensor parts[3];
  std::vector<const Tensor*> inputs;
  if (start > 0) inputs.push_back(&(parts[0] = sliced(x, axis, 0, start)));
  inputs.push_back(&values);
  if (end < size) inputs.push_back(&(parts[2] = sliced(x, axis, end, size - end)));
  return record(Op::cat, inputs, {axis});
}

// x with the region that `parsed` describes replaced by `values`, which have the region's shape.
Tensor replaced(const Tensor& x, const ParsedIndex& parsed, Tensor values) {
  if (parsed.region.element_count() == 0) return x;
  const PerAxis per_axis{parsed.slices};
  Attributes backward, padding;
  for (int axis = 0; axis < x.rank(); axis++) {
    const int64_t count = per_axis.second(axis), step = per_axis.third(axis);
    int64_t first = per_axis.first(axis), last = first + (count - 1) * step;
    if (step < 0) backward.push_back(axis);
    if (step < 0) std::swap(first, last);
    padding.insert(padding.end(), {first, x.shape()[axis] - 1 - last, std::abs(step) - 1});
  }
  if (!backward.empty()) values = values.flip(Axes(std::span<const int64_t>(backward)));
  if (parsed.region == x.shape()) return values;
  const int partial = partial_axis(x.shape(), parsed);
  if (partial >= 0 && parsed.ascending()) {
    return joined(x, values, partial, per_axis.first(partial), per_axis.second(partial));
  }
  const Tensor everywhere = constant(x.device(), {DType::bool_, parsed.region}, true);
  return where(padded(everywhere, padding, false), padded(values, padding, 0), x);
}

// The basic part with `values`, of the result's shape, scattered into its advanced axes.
Tensor scattered_into(const Tensor& basic, const MergedAxes& m, const Tensor& values,
                      ScatterMode mode) {
  const Tensor base = reshaped(m.order.empty() ? basic : permuted(basic, m.order), m.merged);
  Shape wide = m.merged, column;
  wide[m.axis] = m.positions.element_count();
  for (int i = 0; i < wide.rank(); i++) column.push_back(i == m.axis ? wide[i] : 1);
  const Tensor index = expanded(reshaped(m.positions, column), wide);
  const Tensor changed =
      reshaped(scattered(base, m.axis, index, reshaped(values, wide), mode), m.permuted);
  return m.order.empty() ? changed : permuted(changed, inverse_of(m.order));
}

// A lone mask and a number need no positions: nothing waits.
bool is_masked_fill(std::span<const Index> items, const Operand& value) {
  return value.is_number() && items.size() == 1 && items[0].kind() == Index::Kind::tensor &&
         is_boolean(items[0].tensor().dtype());
}

Tensor mask_like(const Tensor& mask, const Tensor& x) {
  Shape shape = mask.shape();
  bool fits = shape.rank() <= x.rank();
  for (int i = 0; fits && i < shape.rank(); i++) fits = shape[i] == x.shape()[i];
  if (!fits) {
    fail(ErrorKind::index, "{}: the mask {} does not have the sizes of {} from axis 0 on",
         Call::name_or("at"), text_of(node_of(mask).type), text_of(node_of(x).type));
  }
  while (shape.rank() < x.rank()) shape.push_back(1);
  return reshaped(mask, shape);
}

// How old and new elements make up what at() leaves.  `combine` serves regions, where each element
// is named once; `mode` and `scatter_value` serve tensors that may name one several times.
struct Update {
  Tensor (*combine)(const Operand& old, const Operand& value) = nullptr;  // null: the value
  ScatterMode mode = ScatterMode::assign;
  Tensor (*scatter_value)(const Operand& value) = nullptr;  // null: the value
};
constexpr Update kAssign;
constexpr Update kAdd{add, ScatterMode::add, nullptr};
constexpr Update kSubtract{sub, ScatterMode::add, neg};
constexpr Update kMultiply{mul, ScatterMode::multiply, nullptr};
constexpr Update kDivide{div, ScatterMode::multiply, reciprocal};

Tensor updated(const Tensor& x, std::span<const Index> items, const Operand& value,
               const Update& update) {
  const auto combined = [&](const Tensor& old, const Tensor& values) {
    return update.combine ? converted(update.combine(old, values), x.dtype()) : values;
  };
  if (is_masked_fill(items, value)) {
    return where(mask_like(items[0].tensor(), x), combined(x, value_for(x, value, {})), x);
  }
  const ParsedIndex parsed = parse(x, items);
  const Tensor old = basic_part(x, parsed);
  if (parsed.advanced.empty()) {
    const Tensor values = combined(old, value_for(x, value, parsed.basic));
    return replaced(x, parsed, reshaped(values, parsed.region));
  }
  const MergedAxes m = merge(parsed);
  Tensor values = value_for(x, value, m.result);
  if (update.scatter_value) values = update.scatter_value(values);
  return replaced(x, parsed, reshaped(scattered_into(old, m, values, update.mode), parsed.region));
}

}  // namespace

// ── x(...) and x.at(...) ─────────────────────────────────────────────────────────────────────────
Tensor Tensor::operator()(Index a, Index b, Index c, Index d, Index e, Index f, Index g,
                          Index h) const {
  Call call("index", a.site());
  const Index items[kMaxIndexes] = {a, b, c, d, e, f, g, h};
  const ParsedIndex parsed = parse(*this, given(items));
  return advanced_part(basic_part(*this, parsed), parsed);
}

Indexed Tensor::at(Index a, Index b, Index c, Index d, Index e, Index f, Index g, Index h) {
  return Indexed(*this, {a, b, c, d, e, f, g, h});
}

Indexed::Indexed(Tensor& target, const Index (&items)[kMaxIndexes]) : target_(&target) {
  std::copy(std::begin(items), std::end(items), items_);
}

void Indexed::operator=(const Operand& value) {
  Call call("at", items_[0].site());
  *target_ = updated(*target_, given(items_), value, kAssign);
}
void Indexed::operator=(const Indexed& other) {
  Call call("at", items_[0].site());
  *this = Operand(Tensor(other));
}
void Indexed::operator+=(const Operand& value) {
  Call call("at", items_[0].site());
  *target_ = updated(*target_, given(items_), value, kAdd);
}
void Indexed::operator-=(const Operand& value) {
  Call call("at", items_[0].site());
  *target_ = updated(*target_, given(items_), value, kSubtract);
}
void Indexed::operator*=(const Operand& value) {
  Call call("at", items_[0].site());
  *target_ = updated(*target_, given(items_), value, kMultiply);
}
void Indexed::operator/=(const Operand& value) {
  Call call("at", items_[0].site());
  check_into(*target_, true, "a quotient");
  *target_ = updated(*target_, given(items_), value, kDivide);
}

Indexed::operator Tensor() const {
  Call call("at", items_[0].site());
  const ParsedIndex parsed = parse(*target_, given(items_));
  return advanced_part(basic_part(*target_, parsed), parsed);
}

// ── Gathering and scattering ─────────────────────────────────────────────────────────────────────
Tensor Tensor::gather(int64_t axis, const Tensor& index, Site site) const {
  Call call("gather", site);
  return gathered(*this, normal_axis(axis, *this), index);
}

Tensor placed_along(const Tensor& values, const Tensor& index, int axis, int64_t size) {
  Shape along;
  for (int i = 0; i < index.rank(); i++) along.push_back(i == axis ? size : 1);
  const Tensor positions = arange(size, {.dtype = index.dtype(), .device = index.device()});
  return where(equal(reshaped(positions, along), index), values, 0);
}

Tensor Tensor::take(const Tensor& index, int64_t axis, Site site) const {
  Call call("take", site);
  return take_along(*this, index, normal_axis(axis, *this));
}

Tensor embedding(const Tensor& ids, const Tensor& weight, Site site) {
  Call call("embedding", site);
  if (weight.rank() != 2) {
    fail(ErrorKind::shape, "embedding: the weight must be [count, width], got {}",
         text_of(node_of(weight).type));
  }
  return take_along(weight, ids, 0);
}

Tensor Tensor::scatter(int64_t axis, const Tensor& index, const Operand& values) const {
  Call call("scatter", values.site());
  return scatter_operand(*this, axis, index, values, ScatterMode::assign);
}
Tensor Tensor::scatter_add(int64_t axis, const Tensor& index, const Operand& values) const {
  Call call("scatter_add", values.site());
  return scatter_operand(*this, axis, index, values, ScatterMode::add);
}
Tensor Tensor::scatter_max(int64_t axis, const Tensor& index, const Operand& values) const {
  Call call("scatter_max", values.site());
  return scatter_operand(*this, axis, index, values, ScatterMode::maximum);
}
Tensor Tensor::scatter_min(int64_t axis, const Tensor& index, const Operand& values) const {
  Call call("scatter_min", values.site());
  return scatter_operand(*this, axis, index, values, ScatterMode::minimum);
}

Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value) const {
  Call call("masked_fill", value.site());
  const Shape shape = value.is_number() ? Shape() : value.tensor().shape();
  return where(mask, value_for(*this, value, shape), *this);
}

Tensor Tensor::nonzero(Site site) const {
  Call call("nonzero", site);
  Tensor flat;
  {
    Untracked untracked;
    flat = true_positions(converted(*this, DType::bool_));
  }
  const std::vector<int64_t> found = flat.to_vector<int64_t>();
  const size_t width = size_t(rank());
  std::vector<int64_t> positions(found.size() * width);
  for (size_t i = 0; i < found.size(); i++) {
    int64_t rest = found[i];
    for (int axis = rank() - 1; axis >= 0; axis--) {
      positions[i * width + size_t(axis)] = rest % shape()[axis];
      rest /= shape()[axis];
    }
  }
  return from_host(positions.data(), {DType::i64, {int64_t(found.size()), rank()}}, device());
}

}  // namespace fornax
