#include "backends/flex/transposed.h"

#include <algorithm>

#include "backends/flex/gather.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

constexpr int64_t kLeast = 8, kRows = 64;
constexpr int64_t kGrain = 20000;  // elements, about as many nanoseconds

int last_axis(const Shape& shape) {
  int axis = shape.rank() - 1;
  while (axis >= 0 && shape[axis] == 1) axis--;
  return axis;
}

// The longest axis of stride 1, or -1.
int dense_axis(const Shape& shape, const Layout& layout) {
  int dense = -1;
  for (int axis = 0; axis < shape.rank(); axis++) {
    if (layout.strides[axis] == 1 && shape[axis] >= kLeast) dense = axis;
  }
  return dense;
}

}  // namespace

bool Transposed::fits(const Type& type, const Layout& layout) {
  const int last = last_axis(type.shape), dense = dense_axis(type.shape, layout);
  return dense >= 0 && dense != last && type.shape[last] >= kLeast && layout.strides[last] > 1;
}

Transposed::Transposed(const Type& type, const Layout& layout)
    : shape_(type.shape),
      from_(layout),
      to_(row_major(type.shape)),
      size_(int64_t(size_of(type.dtype))),
      dense_(dense_axis(type.shape, layout)),
      last_(last_axis(type.shape)) {}

void Transposed::copy(const Argument& argument, char* to) const {
  const int64_t count = shape_.element_count();
  if (count == 0) return;
  const char* from = static_cast<const char*>(argument.buffer->data) + argument.offset * size_;
  const int64_t blocks = (shape_[dense_] + kRows - 1) / kRows;
  const int64_t slices = count / (shape_[dense_] * shape_[last_]);
  parallel(slices * blocks, kGrain / (kRows * shape_[last_]) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) copy_block(i / blocks, i % blocks * kRows, from, to);
  });
}

// Some rows of one slice: the plane of the dense and the last axis at one index of all others.
void Transposed::copy_block(int64_t slice, int64_t row, const char* from, char* to) const {
  int64_t from_offset = row, to_offset = row * to_.strides[dense_];
  for (int axis = shape_.rank() - 1; axis >= 0; axis--) {
    if (axis == dense_ || axis == last_) continue;
    from_offset += slice % shape_[axis] * from_.strides[axis];
    to_offset += slice % shape_[axis] * to_.strides[axis];
    slice /= shape_[axis];
  }
  transpose(from + from_offset * size_, int(size_), std::min(kRows, shape_[dense_] - row),
            shape_[last_], from_.strides[last_], to_.strides[dense_], to + to_offset * size_);
}

}  // namespace fornax::flex
