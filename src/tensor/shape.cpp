// Ops that change shape or order, and joining.  Most are views; the rest record one index op.
#include <fornax/ops.h>

#include <algorithm>

#include "tensor/compose.h"

namespace fornax {
namespace {

[[noreturn]] void cannot_hold(const Tensor& x, const Shape& shape) {
  fail(ErrorKind::shape, "{}: {} has {} elements, which {} cannot hold", Call::name_or("reshape"),
       text_of(node_of(x).type), x.element_count(), text_of(shape));
}

// `shape` with its -1 replaced by what the element count of x leaves for it.
Shape inferred(const Tensor& x, Shape shape) {
  int unknown = -1;
  int64_t known = 1;
  for (int axis = 0; axis < shape.rank(); axis++) {
    if (shape[axis] != -1) {
      if (shape[axis] < 0 || __builtin_mul_overflow(known, shape[axis], &known)) {
        cannot_hold(x, shape);
      }
    } else if (unknown >= 0) {
      fail(ErrorKind::shape, "{}: {} has two sizes of -1; only one can be inferred",
           Call::name_or("reshape"), text_of(shape));
    } else {
      unknown = axis;
    }
  }
  if (unknown >= 0) {
    const int64_t count = x.element_count();
    if (known == 0 || count % known != 0) cannot_hold(x, shape);
    shape[unknown] = count / known;
  }
  return shape;
}

void check_part_size(int64_t size, const char* what) {
  if (size < 1) {
    fail(ErrorKind::value, "{}: the {} must be at least 1, got {}", Call::name_or("split"), what,
         size);
  }
}

std::vector<Tensor> parts_of(const Tensor& x, int64_t size, int axis) {
  std::vector<Tensor> parts;
  const int64_t length = x.shape()[axis];
  if (length == 0) parts.push_back(x);
  for (int64_t start = 0; start < length; start += size) {
    parts.push_back(sliced(x, axis, start, std::min(size, length - start)));
  }
  return parts;
}

// Repeats along at most kAxesPerPass axes; neighbours that are not repeated are merged, so that the
// detour through [.., count, size ..] stays within kMaxRank.
constexpr int kAxesPerPass = 3;
Tensor repeated(const Tensor& x, const Shape& counts) {
  Shape split{1}, wide{1}, result = x.shape();
  for (int axis = 0; axis < x.rank(); axis++) {
    const int64_t size = x.shape()[axis];
    if (counts[axis] != 1) {
      split.push_back(1);
      wide.push_back(counts[axis]);
      split.push_back(size);
      wide.push_back(size);
      result[axis] *= counts[axis];
    } else {
      split[split.rank() - 1] *= size;
      wide[wide.rank() - 1] *= size;
    }
  }
  return reshaped(expanded(reshaped(x, split), wide), result);
}

// Where column - row is at least `diagonal`: bool over the last two axes.
Tensor upper_mask(const Tensor& x, int64_t diagonal) {
  if (x.rank() < 2) {
    fail(ErrorKind::shape, "{}: needs at least 2 axes, got {}", Call::name_or("triu"),
         text_of(node_of(x).type));
  }
  const int64_t rows = x.shape(-2), columns = x.shape(-1);
  const Tensor row = reshaped(positions(x.device(), rows, diagonal), {rows, 1});
  return positions(x.device(), columns) >= row;
}

}  // namespace

void check_numbers(std::initializer_list<int64_t> numbers, int64_t most) {
  for (const int64_t number : numbers) {
    if (number > most || number < -most) {
      fail(ErrorKind::value, "{}: {} is too large; the most is {}", Call::name_or("pad"), number,
           most);
    }
  }
}

Tensor padded(const Tensor& x, Attributes before_after_between, Scalar value) {
  const Tensor filler = number_like(x, value);
  return record(Op::pad, {&x, &filler}, std::move(before_after_between));
}

Tensor Tensor::reshape(Shape shape, Site site) const {
  Call call("reshape", site);
  return reshaped(*this, inferred(*this, shape));
}

Tensor Tensor::flatten(int64_t first, int64_t last, Site site) const {
  Call call("flatten", site);
  if (rank() == 0) return reshaped(*this, {1});
  const int begin = normal_axis(first, *this), end = normal_axis(last, *this);
  if (begin > end) {
    fail(ErrorKind::index, "flatten: the first axis {} stands behind the last {} of {}", first,
         last, text_of(node_of(*this).type));
  }
  Shape merged;
  for (int axis = 0; axis < rank(); axis++) {
    if (axis > begin && axis <= end) {
      merged[begin] *= shape()[axis];
    } else {
      merged.push_back(shape()[axis]);
    }
  }
  return reshaped(*this, merged);
}

Tensor Tensor::squeeze(Axes axes, Site site) const {
  Call call("squeeze", site);
  Attributes dropped;
  for (int64_t axis : normal_axes(axes, *this)) {
    if (shape()[int(axis)] == 1) {
      dropped.push_back(axis);
    } else if (!axes.all()) {
      fail(ErrorKind::shape, "squeeze: axis {} of {} has size {}, only size 1 can go", axis,
           text_of(node_of(*this).type), shape()[int(axis)]);
    }
  }
  return reshaped(*this, without(shape(), dropped));
}

Tensor Tensor::unsqueeze(int64_t axis, Site site) const {
  Call call("unsqueeze", site);
  Shape wider = shape();
  wider.insert(normal_axis(axis, rank() + 1), 1);
  return reshaped(*this, wider);
}

Tensor Tensor::transpose(int64_t a, int64_t b, Site site) const {
  Call call("transpose", site);
  Attributes order(size_t(rank()), 0);
  for (size_t i = 0; i < order.size(); i++) order[i] = int64_t(i);
  std::swap(order[size_t(normal_axis(a, *this))], order[size_t(normal_axis(b, *this))]);
  return permuted(*this, order);
}

Tensor Tensor::permute(Axes axes, Site site) const {
  Call call("permute", site);
  Attributes order;
  for (int64_t axis : axes.list()) order.push_back(normal_axis(axis, *this));
  return permuted(*this, order);
}

Tensor Tensor::move_axis(int64_t from, int64_t to, Site site) const {
  Call call("move_axis", site);
  const int source = normal_axis(from, *this), target = normal_axis(to, *this);
  Attributes order;
  for (int axis = 0; axis < rank(); axis++) {
    if (axis != source) order.push_back(axis);
  }
  order.insert(order.begin() + target, source);
  return permuted(*this, order);
}

Tensor Tensor::expand(Shape wanted, Site site) const {
  Call call("expand", site);
  const int shift = wanted.rank() - rank();
  for (int axis = 0; axis < wanted.rank(); axis++) {
    if (wanted[axis] == -1 && axis >= shift) wanted[axis] = shape()[axis - shift];
  }
  return expanded(*this, wanted);
}

Tensor Tensor::repeat(Shape counts, Site site) const {
  Call call("repeat", site);
  if (counts.rank() < rank()) {
    fail(ErrorKind::shape, "repeat: {} has {} axes, {} counts only {}",
         text_of(node_of(*this).type), rank(), text_of(counts), counts.rank());
  }
  Shape wider = shape();
  while (wider.rank() < counts.rank()) wider.insert(0, 1);
  Tensor result = reshaped(*this, wider);
  for (int axis = 0; axis < counts.rank();) {
    Shape pass = counts;
    int taken = 0;
    for (int i = 0; i < counts.rank(); i++) {
      if (i < axis || taken == kAxesPerPass) pass[i] = 1;
      taken += pass[i] != 1;
    }
    while (axis < counts.rank() && taken > 0) taken -= pass[axis++] != 1;
    if (pass == Shape(Attributes(size_t(counts.rank()), 1))) break;
    result = repeated(result, pass);
  }
  return result;
}

Tensor Tensor::flip(Axes axes, Site site) const {
  Call call("flip", site);
  Attributes numbers = whole_slices(shape());
  for (int64_t axis : normal_axes(axes, *this)) {
    numbers[size_t(axis) * 3] = std::max<int64_t>(shape()[int(axis)] - 1, 0);
    numbers[size_t(axis) * 3 + 2] = -1;
  }
  return record(Op::slice, {this}, std::move(numbers));
}

Tensor Tensor::roll(int64_t shift, int64_t axis, Site site) const {
  Call call("roll", site);
  const int along = normal_axis(axis, *this);
  const int64_t length = shape()[along];
  if (length == 0) return *this;
  const int64_t forward = (shift % length + length) % length;
  if (forward == 0) return *this;
  const Tensor tail = sliced(*this, along, length - forward, forward);
  const Tensor head = sliced(*this, along, 0, length - forward);
  return record(Op::cat, {&tail, &head}, {along});
}

Tensor Tensor::narrow(int64_t axis, int64_t start, int64_t length, Site site) const {
  Call call("narrow", site);
  const int along = normal_axis(axis, *this);
  const int64_t size = shape()[along], first = start < 0 ? start + size : start;
  if (first < 0 || length < 0 || first > size || length > size - first) {
    fail(ErrorKind::index, "narrow: {} elements from {} leave axis {} of {}", length, start, along,
         text_of(node_of(*this).type));
  }
  return sliced(*this, along, length ? first : 0, length);
}

Tensor Tensor::select(int64_t axis, int64_t index, Site site) const {
  Call call("select", site);
  const int along = normal_axis(axis, *this);
  const int64_t size = shape()[along], position = index < 0 ? index + size : index;
  if (position < 0 || position >= size) {
    fail(ErrorKind::index, "select: position {} is outside axis {} of {}, which has {} elements",
         index, along, text_of(node_of(*this).type), size);
  }
  return reshaped(sliced(*this, along, position, 1), without(shape(), {along}));
}

std::vector<Tensor> Tensor::split(int64_t size, int64_t axis, Site site) const {
  Call call("split", site);
  check_part_size(size, "size");
  return parts_of(*this, size, normal_axis(axis, *this));
}

std::vector<Tensor> Tensor::chunk(int64_t count, int64_t axis, Site site) const {
  Call call("chunk", site);
  check_part_size(count, "count");
  const int along = normal_axis(axis, *this);
  const int64_t length = shape()[along];
  return parts_of(*this, std::max<int64_t>(length / count + (length % count != 0), 1), along);
}

Tensor Tensor::pad(std::vector<std::pair<int64_t, int64_t>> padding, Scalar value,
                   Site site) const {
  Call call("pad", site);
  if (int(padding.size()) > rank()) {
    fail(ErrorKind::shape, "pad: {} pairs are given for {}, which has {} axes", padding.size(),
         text_of(node_of(*this).type), rank());
  }
  Attributes numbers(size_t(rank()) * 3, 0);
  const size_t first = size_t(rank()) - padding.size();
  for (size_t i = 0; i < padding.size(); i++) {
    check_numbers({padding[i].first, padding[i].second}, kMostPadding);
    numbers[(first + i) * 3] = padding[i].first;
    numbers[(first + i) * 3 + 1] = padding[i].second;
  }
  return padded(*this, std::move(numbers), value);
}

Tensor Tensor::unfold(int64_t axis, int64_t size, int64_t step, Site site) const {
  Call call("unfold", site);
  const int along = normal_axis(axis, *this);
  return record(Op::unfold, {this}, {along, size, step, 1, shape()[along]});
}

Tensor Tensor::triu(int64_t diagonal, Site site) const {
  Call call("triu", site);
  return where(upper_mask(*this, diagonal), *this, number_like(*this, 0));
}

Tensor Tensor::tril(int64_t diagonal, Site site) const {
  Call call("tril", site);
  return where(upper_mask(*this, diagonal + 1), number_like(*this, 0), *this);
}

// The diagonal is every (columns + 1)-th element of the flattened matrix.
Tensor Tensor::diagonal(Site site) const {
  Call call("diagonal", site);
  if (rank() < 2) {
    fail(ErrorKind::shape, "{}: needs at least 2 axes, got {}", Call::name_or("diagonal"),
         text_of(node_of(*this).type));
  }
  const int64_t rows = shape(-2), columns = shape(-1);
  Shape flat = shape();
  flat.erase(rank() - 1);
  flat[rank() - 2] = rows * columns;
  return sliced(reshaped(*this, flat), rank() - 2, 0, std::min(rows, columns), columns + 1);
}

Tensor cat(const std::vector<Tensor>& parts, int64_t axis, Site site) {
  Call call("cat", site);
  if (parts.empty()) fail(ErrorKind::value, "cat: needs at least one tensor");
  DType dtype = parts[0].dtype();
  for (const Tensor& part : parts) dtype = promote(dtype, part.dtype());
  std::vector<Tensor> alike;
  for (const Tensor& part : parts) alike.push_back(converted(part, dtype));
  const int along = normal_axis(axis, parts[0]);
  if (parts.size() == 1) return alike[0];
  std::vector<const Tensor*> inputs;
  for (const Tensor& part : alike) inputs.push_back(&part);
  return record(Op::cat, inputs, {along});
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis, Site site) {
  Call call("stack", site);
  if (parts.empty()) fail(ErrorKind::value, "stack: needs at least one tensor");
  const int along = normal_axis(axis, parts[0].rank() + 1);
  std::vector<Tensor> wider;
  for (const Tensor& part : parts) {
    if (part.shape() != parts[0].shape()) {
      fail(ErrorKind::shape, "stack: part {} is {}, the first is {}; all must have one shape",
           wider.size(), text_of(node_of(part).type), text_of(node_of(parts[0]).type));
    }
    wider.push_back(part.unsqueeze(along));
  }
  return cat(wider, along);
}

}  // namespace fornax
