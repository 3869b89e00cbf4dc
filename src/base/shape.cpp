#include <fornax/shape.h>

#include <algorithm>

#include "base/error.h"

namespace fornax {
namespace {

[[noreturn]] void too_many_axes(size_t count) {
  fail(ErrorKind::shape, "shape: {} axes, at most {} are possible; merge some with reshape", count,
       kMaxRank);
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> sizes)
    : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const int64_t> sizes) {
  if (sizes.size() > size_t(kMaxRank)) too_many_axes(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_);
  rank_ = int(sizes.size());
}

int64_t Shape::element_count() const {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t size : *this) {
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  if (empty) return 0;
  if (overflow) [[unlikely]] {
    fail(ErrorKind::shape, "shape: element count overflows 64 bits: {}", text_of(*this));
  }
  return count;
}

void Shape::push_back(int64_t size) { insert(rank_, size); }

void Shape::insert(int axis, int64_t size) {
  if (rank_ == kMaxRank) too_many_axes(size_t(rank_) + 1);
  std::copy_backward(sizes_ + axis, sizes_ + rank_, sizes_ + rank_ + 1);
  sizes_[axis] = size;
  rank_++;
}

void Shape::erase(int axis) {
  std::copy(sizes_ + axis + 1, sizes_ + rank_, sizes_ + axis);
  rank_--;
  sizes_[rank_] = 0;
}

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); axis++) {
    if (axis) text += ',';
    text += std::to_string(shape[axis]);
  }
  return text + "]";
}

}  // namespace fornax
