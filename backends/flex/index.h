// Operands of groups whose anchor stands alone, and walking them: whatever the strides, a kernel
// sees a pointer, sizes and strides.  Values; each belongs to one thread, plans may be shared.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "backends/flex/kernels.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::flex {

// What is known of the anchor and its operands before there is data.
struct AnchorPlan {
  Op op;
  Type result;
  Attributes attributes;
  struct Input {
    int argument;  // which of the group's inputs
    bool number;   // op full: the argument brings a scalar, no buffer
    Type type;
    Layout layout;
  };
  std::vector<Input> inputs;
};
// Error(internal): the group has no anchor, or steps around it.
AnchorPlan plan_of(const Group& group);

// `number` as an element of `dtype`, written to `to`.
void store_scalar(DType dtype, const Scalar& number, void* to);

// One operand of a run.  data points at the element with index 0 on every axis.
class InputView {
 public:
  InputView(const AnchorPlan& plan, int i, std::span<const Argument> arguments);
  InputView(const InputView&) = delete;
  InputView& operator=(const InputView&) = delete;

  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }

  const void* data;
  const Type& type;
  const int64_t* strides;

 private:
  alignas(8) std::byte number_[8];
};

// Visits the positions of `shape` in row-major order and keeps N offsets, one per set of strides.
template <int N>
class StridedWalk {
 public:
  StridedWalk(const Shape& shape, const std::array<const int64_t*, N>& strides) : shape_(shape) {
    for (size_t n = 0; n < N; n++) {
      std::copy_n(strides[n], size_t(shape.rank()), strides_[n]);
    }
  }

  // Moves to position number `flat`.  Requires: the shape has elements.
  void seek(int64_t flat) {
    offsets.fill(0);
    for (int axis = shape_.rank() - 1; axis >= 0; axis--) {
      position_[axis] = flat % shape_[axis];
      flat /= shape_[axis];
      for (size_t n = 0; n < N; n++) offsets[n] += position_[axis] * strides_[n][axis];
    }
  }

  void next() {
    for (int axis = shape_.rank() - 1; axis >= 0; axis--) {
      position_[axis]++;
      for (size_t n = 0; n < N; n++) offsets[n] += strides_[n][axis];
      if (position_[axis] < shape_[axis]) return;
      for (size_t n = 0; n < N; n++) offsets[n] -= position_[axis] * strides_[n][axis];
      position_[axis] = 0;
    }
  }

  std::array<int64_t, N> offsets{};

 private:
  Shape shape_;
  int64_t strides_[N][kMaxRank] = {};
  int64_t position_[kMaxRank] = {};
};

// `shape` and its strides without one axis.
struct WithoutAxis {
  Shape shape;
  std::array<int64_t, kMaxRank> strides{};
};
WithoutAxis without_axis(const Shape& shape, const int64_t* strides, int axis);

// Copies a box of elements of 1, 2, 4 or 8 bytes between two strided places that do not overlap, in
// parallel.
void copy_box(size_t element, const Shape& shape, const void* from, const int64_t* from_strides,
              void* to, const int64_t* to_strides);

// Calls body with an unsigned integer of `bytes` bytes.
template <class Body>
void with_bytes(size_t bytes, Body&& body) {
  switch (bytes) {
    case 1:
      return body(uint8_t());
    case 2:
      return body(uint16_t());
    case 4:
      return body(uint32_t());
    case 8:
      return body(uint64_t());
    default:
      fail(ErrorKind::internal, "flex: no element has {} bytes", bytes);
  }
}

// Calls body with a value of the C++ type of `dtype`.
template <class Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
#define FORNAX_DTYPE(name, type, ...) \
  case DType::name:                   \
    return body(type());
#include <fornax/dtypes.def>
  }
}

std::unique_ptr<Kernel> prepare_fold(AnchorPlan plan);
std::unique_ptr<Kernel> prepare_gather(AnchorPlan plan);
std::unique_ptr<Kernel> prepare_scatter(AnchorPlan plan);

// `count` elements of an integer operand from `position` on, `step` apart, as positions along an
// axis of `indexed`.  Error(index): one is outside of it; `op` is for its message.
void resolve_indices(const InputView& index, int64_t position, int64_t step, int64_t count, Op op,
                     int axis, const Type& indexed, int64_t* to);
// Whether all axes behind `axis` repeat one index: then whole rows are moved.
bool repeats_behind(const AnchorPlan::Input& index, int axis);

}  // namespace fornax::flex
