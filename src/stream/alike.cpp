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

bool broadcasts_alike(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::max(a.rank(), b.rank()); i++) {
    const int64_t own = i <= a.rank() ? a[a.rank() - i] : 1;
    if (own != (i <= b.rank() ? b[b.rank() - i] : 1)) return false;
  }
  return true;
}

}  // namespace fornax
