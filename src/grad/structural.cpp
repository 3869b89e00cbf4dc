// Gradient rules of ops that move data: leaves, views, and ops that index.
#include "grad/rules.h"
#include "tensor/compose.h"

namespace fornax {
namespace {

Tensor zeros_of(const Type& type, const Tensor& like) { return constant(like.device(), type, 0); }

Tensor scatter_of(const Tensor& base, const Tensor& index, const Tensor& values, int axis,
                  ScatterMode mode) {
  return record(Op::scatter, {&base, &index, &values}, ScatterSettings::pack(axis, mode));
}

Tensor gather_of(const Tensor& x, const Tensor& index, int axis) {
  return record(Op::gather, {&x, &index}, {axis});
}

Tensor pad_of(const Tensor& x, Attributes padding) {
  const Tensor zero = constant(x.device(), {x.dtype(), {}}, 0);
  return record(Op::pad, {&x, &zero}, std::move(padding));
}

Tensor slice_of(const Tensor& x, Attributes ranges) {
  return record(Op::slice, {&x}, std::move(ranges));
}

}  // namespace

void grad_leaf(Backward&) {}
void grad_full(Backward&) {}
void grad_arange(Backward&) {}
void grad_random_bits(Backward&) {}
void grad_cast(Backward& b) { b.set(0, b.dy); }
void grad_detach(Backward& b) { b.set(0, b.dy); }
void grad_reshape(Backward& b) { b.set(0, b.dy.reshape(b.input_type(0).shape)); }
void grad_expand(Backward& b) { b.set(0, b.dy); }  // the engine sums over what was repeated

void grad_permute(Backward& b) { b.set(0, permuted(b.dy, inverse_of(b.attributes()))); }

namespace {

// The axis of which a slice takes some elements that lie side by side, and all of all other axes;
// -1: it is no such slice.
int sliced_axis(const PerAxis& range, const Shape& shape) {
  int found = -1;
  for (int axis = 0; axis < shape.rank(); axis++) {
    const int64_t count = range.second(axis);
    if (count > 1 && range.third(axis) != 1) return -1;
    if (count == shape[axis]) continue;
    if (found >= 0 || count == 0) return -1;
    found = axis;
  }
  return found;
}

}  // namespace

void grad_slice(Backward& b) {
  const Shape& shape = b.input_type(0).shape;
  const PerAxis range{b.attributes()};
  const int only = sliced_axis(range, shape);
  if (only >= 0) return b.set_part({only, range.first(only), b.dy});
  Attributes flips, padding;
  bool flipped = false;
  for (int axis = 0; axis < shape.rank(); axis++) {
    int64_t start = range.first(axis);
    const int64_t count = range.second(axis), step = range.third(axis);
    const bool backward = step < 0 && count > 1;
    if (backward) start += (count - 1) * step;
    flipped |= backward;
    for (int64_t n : {backward ? count - 1 : 0, count, int64_t(backward ? -1 : 1)}) {
      flips.push_back(n);
    }
    const int64_t between = count > 1 ? std::abs(step) - 1 : 0;
    const int64_t covered = count > 0 ? (count - 1) * (between + 1) + 1 : 0;
    const int64_t before = count > 0 ? start : 0;
    for (int64_t n : {before, shape[axis] - before - covered, between}) padding.push_back(n);
  }
  const Tensor forward = flipped ? slice_of(b.dy, std::move(flips)) : b.dy;
  b.set(0, pad_of(forward, std::move(padding)));
}

void grad_unfold(Backward& b) {
  Attributes windows = b.attributes();
  for (int i = 0; i < window_count(windows); i++) {
    const size_t at = size_t(i) * kWindowFields;
    windows[at + 4] = b.input_type(0).shape[int(windows[at])];
  }
  b.set(0, record(Op::fold, {&b.dy}, std::move(windows)));
}

void grad_fold(Backward& b) { b.set(0, record(Op::unfold, {&b.dy}, b.attributes())); }

void grad_pad(Backward& b) {
  const Shape& shape = b.input_type(0).shape;
  const PerAxis padding{b.attributes()};
  Attributes uncrop, ranges;
  bool crops = false;
  for (int axis = 0; axis < shape.rank(); axis++) {
    const int64_t before = padding.first(axis), after = padding.second(axis);
    crops |= before < 0 || after < 0;
    for (int64_t n : {std::max<int64_t>(-before, 0), std::max<int64_t>(-after, 0), int64_t(0)}) {
      uncrop.push_back(n);
    }
    for (int64_t n : {std::max<int64_t>(before, 0), shape[axis], padding.third(axis) + 1}) {
      ranges.push_back(n);
    }
    if (shape[axis] == 0) ranges[ranges.size() - 3] = 0;
  }
  const Tensor whole = crops ? pad_of(b.dy, std::move(uncrop)) : b.dy;
  const Tensor dx = slice_of(whole, std::move(ranges));
  b.set(0, dx);
  if (b.wants(1)) b.set(1, b.dy.sum() - dx.sum());
}

void grad_cat(Backward& b) {
  const int axis = axis_of(b.attributes());
  int64_t start = 0;
  for (int i = 0; i < int(b.gradients().size()); i++) {
    const int64_t length = b.input_type(i).shape[axis];
    if (b.wants(i)) b.set(i, b.dy.narrow(axis, start, length));
    start += length;
  }
}

void grad_gather(Backward& b) {
  const int along = axis_of(b.attributes());
  if (b.dy.shape()[along] == 1) {
    b.set(0, placed_along(b.dy, b.input(1), along, b.input_type(0).shape[along]));
    return;
  }
  const Tensor zeros = zeros_of({b.dy.dtype(), b.input_type(0).shape}, b.dy);
  b.set(0, scatter_of(zeros, b.input(1), b.dy, along, ScatterMode::add));
}

namespace {

// Row-major numbers of the index's elements, i64.
Tensor positions_of(const Tensor& index) {
  return arange(index.element_count(), {.dtype = DType::i64, .device = index.device()})
      .reshape(index.shape());
}

void grad_scatter_assign(Backward& b, int axis) {
  const Tensor& index = b.input(1);
  const Tensor zeros = zeros_of({b.dy.dtype(), index.shape()}, b.dy);
  if (b.wants(0)) b.set(0, scatter_of(b.dy, index, zeros, axis, ScatterMode::assign));
  if (!b.wants(2)) return;
  // Of several values for one place only the one that was kept gets its gradient.
  const Tensor positions = positions_of(index);
  const Tensor none_yet = zeros_of({DType::i64, b.input_type(0).shape}, b.dy);
  const Tensor kept = scatter_of(none_yet, index, positions, axis, ScatterMode::assign);
  const Tensor is_kept = gather_of(kept, index, axis) == positions;
  b.set(2, where(is_kept, gather_of(b.dy, index, axis), 0));
}

void grad_scatter_multiply(Backward& b, int axis) {
  const Tensor &base = b.input(0), &index = b.input(1), &values = b.input(2);
  if (b.wants(0)) {
    const Tensor ones = constant(b.dy.device(), {base.dtype(), base.shape()}, 1);
    b.set(0, b.dy * scatter_of(ones, index, values, axis, ScatterMode::multiply));
  }
  if (b.wants(2)) b.set(2, gather_of(b.dy * b.y, index, axis) / values);
}

// max and min: all that equal the result share its gradient.
void grad_scatter_extreme(Backward& b, int axis) {
  const Tensor &base = b.input(0), &index = b.input(1), &values = b.input(2);
  const DType dtype = b.dy.dtype();
  const Tensor base_wins = (base == b.y).cast(dtype);
  const Tensor value_wins = (gather_of(b.y, index, axis) == values).cast(dtype);
  const Tensor winners = scatter_of(base_wins, index, value_wins, axis, ScatterMode::add);
  const Tensor share = b.dy / winners;
  if (b.wants(0)) b.set(0, share * base_wins);
  if (b.wants(2)) b.set(2, gather_of(share, index, axis) * value_wins);
}

}  // namespace

void grad_scatter(Backward& b) {
  const ScatterSettings settings(b.attributes());
  switch (settings.mode) {
    case ScatterMode::add:
      if (b.wants(0)) b.set(0, b.dy);
      if (b.wants(2)) b.set(2, gather_of(b.dy, b.input(1), settings.axis));
      return;
    case ScatterMode::assign:
      return grad_scatter_assign(b, settings.axis);
    case ScatterMode::multiply:
      return grad_scatter_multiply(b, settings.axis);
    case ScatterMode::minimum:
    case ScatterMode::maximum:
      return grad_scatter_extreme(b, settings.axis);
  }
}

}  // namespace fornax
