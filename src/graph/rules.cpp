// Type rules of leaves, views and ops that index.
#include "graph/rules.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attributes.h"

namespace fornax {
namespace {

const char* name(const Signature& s) { return Call::name_or(info(s.op).name.data()); }

void check_sizes(const Signature& s, const Shape& shape) {
  for (int64_t size : shape) {
    if (size < 0) {
      fail(ErrorKind::shape, "{}: sizes must not be negative, got {}", name(s), text_of(shape));
    }
  }
  (void)shape.element_count();
}

Shape shape_from(const Signature& s, size_t begin) {
  Shape shape(std::span(s.attributes).subspan(std::min(begin, s.attributes.size())));
  check_sizes(s, shape);
  return shape;
}

void check_axis(const Signature& s, int64_t axis, int rank) {
  if (axis < 0 || axis >= rank) {
    fail(ErrorKind::index, "{}: axis {} is outside {}, which has {} axes", name(s), axis,
         text_of(s.input(0)), rank);
  }
}

void check_scalar(const Signature& s, int i, DType dtype) {
  if (s.input(i).shape.rank() != 0 || s.input(i).dtype != dtype) {
    fail(ErrorKind::dtype, "{}: input {} must be a scalar of {}, got {}", name(s), i,
         name_of(dtype), text_of(s.input(i)));
  }
}

// Checks that index (input i) agrees with input 0 outside `axis`.
void check_index(const Signature& s, int axis) {
  const Type &x = s.input(0), &index = s.input(1);
  check_axis(s, axis, x.shape.rank());
  if (!is_integer(index.dtype)) {
    fail(ErrorKind::dtype, "{}: the index must be integers, got {}; cast it to i64", name(s),
         text_of(index));
  }
  bool same = index.shape.rank() == x.shape.rank();
  for (int i = 0; same && i < x.shape.rank(); i++) same = i == axis || index.shape[i] == x.shape[i];
  if (!same) {
    fail(ErrorKind::shape, "{}: index {} must have the sizes of {} on every axis but {}", name(s),
         text_of(index), text_of(x), axis);
  }
}

void check_window(const Signature& s, const WindowAxis& w) {
  if (w.size < 1 || w.step < 1 || w.dilation < 1) {
    fail(ErrorKind::value, "{}: window size {}, step {} and dilation {} must be at least 1",
         name(s), w.size, w.step, w.dilation);
  }
}

}  // namespace

// A leaf's attributes are its dtype and sizes.
Type type_leaf(const Signature& s) { return {dtype_attribute(s.attributes), shape_from(s, 1)}; }
Type type_full(const Signature& s) { return {dtype_attribute(s.attributes), shape_from(s, 1)}; }

Type type_arange(const Signature& s) {
  const DType dtype = dtype_attribute(s.attributes);
  check_scalar(s, 0, dtype);
  check_scalar(s, 1, dtype);
  return {dtype, shape_from(s, 1)};
}

Type type_random_bits(const Signature& s) {
  check_scalar(s, 0, DType::u64);
  check_scalar(s, 1, DType::u64);
  return {DType::u32, shape_from(s, 0)};
}

Type type_cast(const Signature& s) { return {dtype_attribute(s.attributes), s.input(0).shape}; }
Type type_detach(const Signature& s) { return s.input(0); }

Type type_reshape(const Signature& s) {
  const Type result{s.input(0).dtype, shape_from(s, 0)};
  if (result.shape.element_count() != s.input(0).shape.element_count()) {
    fail(ErrorKind::shape, "{}: {} has {} elements, {} wants {}", name(s), text_of(s.input(0)),
         s.input(0).shape.element_count(), text_of(result.shape), result.shape.element_count());
  }
  return result;
}

Type type_permute(const Signature& s) {
  const Type& x = s.input(0);
  Type result = x;
  unsigned seen = 0;
  if (int(s.attributes.size()) != x.shape.rank()) {
    fail(ErrorKind::shape, "{}: {} axes are named for {}, which has {}", name(s),
         s.attributes.size(), text_of(x), x.shape.rank());
  }
  for (int i = 0; i < x.shape.rank(); i++) {
    const int64_t axis = s.attributes[size_t(i)];
    check_axis(s, axis, x.shape.rank());
    if (seen & (1u << axis)) {
      fail(ErrorKind::value, "{}: axis {} is named twice", name(s), axis);
    }
    seen |= 1u << axis;
    result.shape[i] = x.shape[int(axis)];
  }
  return result;
}

Type type_expand(const Signature& s) {
  const Type& x = s.input(0);
  const Type result{x.dtype, shape_from(s, 0)};
  const int shift = result.shape.rank() - x.shape.rank();
  bool fits = shift >= 0;
  for (int i = 0; fits && i < x.shape.rank(); i++) {
    fits = x.shape[i] == 1 || x.shape[i] == result.shape[i + shift];
  }
  if (!fits) {
    fail(ErrorKind::shape, "{}: {} cannot be repeated to {}: only axes of size 1 can", name(s),
         text_of(x), text_of(result.shape));
  }
  return result;
}

Type type_slice(const Signature& s) {
  const Type& x = s.input(0);
  Type result = x;
  FORNAX_CHECK(int(s.attributes.size()) == 3 * x.shape.rank());
  const PerAxis per_axis{s.attributes};
  for (int i = 0; i < x.shape.rank(); i++) {
    const int64_t start = per_axis.first(i), count = per_axis.second(i), step = per_axis.third(i);
    if (step == 0) fail(ErrorKind::value, "{}: the step on axis {} is 0", name(s), i);
    const int64_t last = start + (count - 1) * step;
    if (count < 0 ||
        (count > 0 && (start < 0 || start >= x.shape[i] || last < 0 || last >= x.shape[i]))) {
      fail(ErrorKind::index, "{}: {} elements from {} by {} leave axis {} of {}", name(s), count,
           start, step, i, text_of(x));
    }
    result.shape[i] = count;
  }
  return result;
}

Type type_unfold(const Signature& s) {
  Type result = s.input(0);
  const int rank = result.shape.rank();
  for (int i = 0; i < window_count(s.attributes); i++) {
    const WindowAxis w = window_of(s.attributes, i);
    check_axis(s, w.axis, rank);
    check_window(s, w);
    const int64_t span = w.dilation * (w.size - 1) + 1;
    const int64_t length = s.input(0).shape[w.axis];
    if (span > length) {
      fail(ErrorKind::shape, "{}: a window over {} elements does not fit axis {} of {}", name(s),
           span, w.axis, text_of(s.input(0)));
    }
    result.shape[w.axis] = (length - span) / w.step + 1;
    result.shape.push_back(w.size);
  }
  return result;
}

Type type_fold(const Signature& s) {
  Type result = s.input(0);
  const int windows = window_count(s.attributes);
  const int rank = result.shape.rank() - windows;
  if (rank < 0) fail(ErrorKind::shape, "{}: {} has too few axes", name(s), text_of(s.input(0)));
  for (int i = windows - 1; i >= 0; i--) {
    const WindowAxis w = window_of(s.attributes, i);
    check_axis(s, w.axis, rank);
    check_window(s, w);
    const int64_t span = w.dilation * (w.size - 1) + 1;
    const int64_t count = w.extent < span ? 0 : (w.extent - span) / w.step + 1;
    if (result.shape[w.axis] != count || result.shape[rank + i] != w.size) {
      fail(ErrorKind::shape, "{}: {} holds {} windows of {}, axis {} wants {} of {}", name(s),
           text_of(s.input(0)), result.shape[w.axis], result.shape[rank + i], w.axis, count,
           w.size);
    }
    result.shape.erase(rank + i);
    result.shape[w.axis] = w.extent;
  }
  check_sizes(s, result.shape);
  return result;
}

Type type_pad(const Signature& s) {
  const Type& x = s.input(0);
  check_scalar(s, 1, x.dtype);
  FORNAX_CHECK(int(s.attributes.size()) == 3 * x.shape.rank());
  const PerAxis per_axis{s.attributes};
  Type result = x;
  for (int i = 0; i < x.shape.rank(); i++) {
    const int64_t between = x.shape[i] > 1 ? per_axis.third(i) * (x.shape[i] - 1) : 0;
    result.shape[i] = x.shape[i] + between + per_axis.first(i) + per_axis.second(i);
  }
  check_sizes(s, result.shape);
  return result;
}

Type type_cat(const Signature& s) {
  if (s.input_count == 0) fail(ErrorKind::value, "{}: needs at least one tensor", name(s));
  Type result = s.input(0);
  const int axis = axis_of(s.attributes);
  check_axis(s, axis, result.shape.rank());
  for (int i = 1; i < s.input_count; i++) {
    const Type& part = s.input(i);
    bool same = part.dtype == result.dtype && part.shape.rank() == result.shape.rank();
    for (int k = 0; same && k < part.shape.rank(); k++) {
      same = k == axis || part.shape[k] == result.shape[k];
    }
    if (!same) {
      fail(ErrorKind::shape, "{}: part {} is {}, which differs from {} outside axis {}", name(s), i,
           text_of(part), text_of(s.input(0)), axis);
    }
    result.shape[axis] += part.shape[axis];
  }
  return result;
}

Type type_gather(const Signature& s) {
  check_index(s, axis_of(s.attributes));
  return {s.input(0).dtype, s.input(1).shape};
}

Type type_scatter(const Signature& s) {
  check_index(s, ScatterSettings(s.attributes).axis);
  const Type &base = s.input(0), &values = s.input(2);
  if (values.shape != s.input(1).shape || values.dtype != base.dtype) {
    fail(ErrorKind::shape, "{}: values {} must have the dtype of {} and the sizes of the index {}",
         name(s), text_of(values), text_of(base), text_of(s.input(1)));
  }
  return base;
}

}  // namespace fornax
