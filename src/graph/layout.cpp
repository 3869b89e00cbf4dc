// Layouts of views: how each view op moves offset and strides.
#include "graph/attributes.h"

namespace fornax {

namespace {

// Strides for `to` over the elements of `from`: runs of axes that can be walked with one stride are
// matched against runs of equal element count.  False where a run is not walkable.
bool reshape_layout(const Shape& from, const Layout& layout, const Shape& to, Layout& out) {
  out = row_major(to);
  out.offset = layout.offset;
  if (is_contiguous(from, layout)) return true;
  int i = 0, j = 0;
  while (i < from.rank() && j < to.rank()) {
    int64_t have = from[i], want = to[j];
    int i_end = i + 1, j_end = j + 1;
    while (have != want) {
      if (have < want) {
        have *= from[i_end++];
      } else {
        want *= to[j_end++];
      }
    }
    int64_t inner = 0;  // the stride of the run's last axis of size > 1
    int64_t expected = 0;
    for (int axis = i_end - 1; axis >= i; axis--) {
      if (from[axis] == 1) continue;
      if (expected == 0) {
        inner = layout.strides[axis];
        expected = inner * from[axis];
      } else {
        // A run of stride 0 all along is walkable too: 0 * size is 0.
        if (layout.strides[axis] != expected) return false;
        expected *= from[axis];
      }
      if (inner == 0 && expected == 0 && axis > i) {
        for (int rest = axis - 1; rest >= i; rest--) {
          if (from[rest] != 1 && layout.strides[rest] != 0) return false;
        }
        break;
      }
    }
    int64_t stride = inner;
    for (int axis = j_end - 1; axis >= j; axis--) {
      out.strides[axis] = stride;
      stride *= to[axis];
    }
    i = i_end;
    j = j_end;
  }
  // What is left over on either side has size 1.
  for (; j < to.rank(); j++) out.strides[j] = 0;
  return true;
}

}  // namespace

bool view_layout(Op op, const Attributes& attributes, const Type& type, const Layout& layout,
                 const Type& result, Layout& out) {
  const int rank = type.shape.rank();
  out = layout;
  switch (op) {
    case Op::detach:
      return true;
    case Op::reshape:
      return reshape_layout(type.shape, layout, result.shape, out);
    case Op::permute:
      for (int axis = 0; axis < rank; axis++) {
        out.strides[axis] = layout.strides[attributes[size_t(axis)]];
      }
      return true;
    case Op::expand: {
      const int shift = result.shape.rank() - rank;
      for (int axis = result.shape.rank() - 1; axis >= 0; axis--) {
        const bool repeated = axis < shift || type.shape[axis - shift] != result.shape[axis];
        out.strides[axis] = repeated ? 0 : layout.strides[axis - shift];
      }
      return true;
    }
    case Op::slice: {
      const PerAxis per_axis{attributes};
      for (int axis = 0; axis < rank; axis++) {
        if (result.shape[axis] > 0) out.offset += per_axis.first(axis) * layout.strides[axis];
        out.strides[axis] = layout.strides[axis] * per_axis.third(axis);
      }
      return true;
    }
    case Op::unfold: {
      const int windows = window_count(attributes);
      for (int i = 0; i < windows; i++) {
        const WindowAxis w = window_of(attributes, i);
        out.strides[w.axis] = layout.strides[w.axis] * w.step;
        out.strides[rank + i] = layout.strides[w.axis] * w.dilation;
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace fornax
