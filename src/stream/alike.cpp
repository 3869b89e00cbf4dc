#include "stream/alike.h"

#include <algorithm>

namespace fornax {

bool same_but_for_ones(const Shape& a, const Shape& b) {
  int i = 0, j = 0;
  for (;; i++, j++) {
    while (i < a.rank() && a[i] == 1) i++;
    while (j < b.rank() && b[j] == 1) j++;
    if (i == a.rank() || j == b.rank()) return i == a.rank() && j == b.rank();
    if (a[i] != b[j]) return false;
  }
}

void match_axes(const Shape& shape, const Shape& other, Type& type, Layout& layout) {
  if (shape == other) return;
  Shape sizes;
  Layout strides;
  int axis = -1;  // of `shape`
  for (int64_t wanted : other) {
    int64_t size = 1, stride = 0;
    if (wanted != 1) {
      axis++;
      while (shape[axis] == 1) axis++;
      const int own = axis + type.shape.rank() - shape.rank();
      if (own >= 0) size = type.shape[own], stride = layout.strides[own];
    }
    strides.strides[sizes.rank()] = stride;
    sizes.push_back(size);
  }
  strides.offset = layout.offset;
  type.shape = sizes;
  layout = strides;
}

void broadcast_to(const Shape& shape, Type& type, Layout& layout) {
  Layout repeated;
  repeated.offset = layout.offset;
  const int shift = shape.rank() - type.shape.rank();
  for (int axis = shift; axis < shape.rank(); axis++) {
    if (type.shape[axis - shift] != 1) repeated.strides[axis] = layout.strides[axis - shift];
  }
  type.shape = shape;
  layout = repeated;
}

bool splits_rows(const Shape& matrix, const Shape& shape) {
  if (matrix.rank() != 2 || shape.rank() <= 2 || shape[shape.rank() - 1] != matrix[1]) return false;
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < shape.rank(); axis++) rows *= shape[axis];
  return rows == matrix[0];
}

Shape split_rows(const Shape& matrix, const Shape& shape) {
  Shape result = shape;
  result[shape.rank() - 1] = matrix[1];
  return result;
}

void split_left(const Shape& shape, Type& type, Layout& layout) {
  Layout split;
  split.offset = layout.offset;
  const int last = shape.rank() - 1;
  split.strides[last] = layout.strides[1];
  int64_t stride = layout.strides[0];
  for (int axis = last; axis-- > 0; stride *= shape[axis]) split.strides[axis] = stride;
  type.shape = split_rows(type.shape, shape);
  layout = split;
}

void split_right(const Shape& shape, Type& type, Layout& layout) {
  Layout repeated;
  repeated.offset = layout.offset;
  Shape sizes = shape;
  const int rank = shape.rank();
  for (int axis = 0; axis < 2; axis++) {
    sizes[rank - 2 + axis] = type.shape[axis];
    repeated.strides[rank - 2 + axis] = layout.strides[axis];
  }
  type.shape = sizes;
  layout = repeated;
}

bool broadcasts_alike(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::max(a.rank(), b.rank()); i++) {
    const int64_t own = i <= a.rank() ? a[a.rank() - i] : 1;
    if (own != (i <= b.rank() ? b[b.rank() - i] : 1)) return false;
  }
  return true;
}

}  // namespace fornax
