// Indexing: what may stand between the brackets of x(...), as NumPy has it.
//
//   x(2)                    one position, the axis goes; negative counts from the end
//   x(slice(1, 8, 2))       from, to (exclusive), step; bounds are cut to the axis as in NumPy;
//   x(slice(none, none, -1))     none: the natural end for the step's sign
//   x(ellipsis, 0)          as many whole axes as are missing
//   x(new_axis)             an axis of size 1
//   x(positions)            integer tensor: picks along the axis; several broadcast together
//   x(mask)                 bool tensor: the elements where it is true (waits for the mask's
//   values)
#pragma once
#include <fornax/error.h>

#include <concepts>
#include <cstdint>
#include <optional>

namespace fornax {

class Tensor;
class Operand;

inline constexpr std::nullopt_t none = std::nullopt;
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;
struct NewAxis {};
inline constexpr NewAxis new_axis;

struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step = 1;
};
// slice() is the whole axis.
inline Slice slice(std::optional<int64_t> start = none, std::optional<int64_t> stop = none,
                   int64_t step = 1) {
  return {start, stop, step};
}

class Index {
 public:
  enum class Kind : uint8_t { absent, position, slice, ellipsis, new_axis, tensor };
  Index() = default;
  Index(std::integral auto position, Site site = Site::here())  // NOLINT: implicit on purpose
      : kind_(Kind::position), site_(site), slice_{int64_t(position), none, 1} {}
  Index(Slice slice, Site site = Site::here())  // NOLINT
      : kind_(Kind::slice), site_(site), slice_(slice) {}
  Index(Ellipsis, Site site = Site::here()) : kind_(Kind::ellipsis), site_(site) {}  // NOLINT
  Index(NewAxis, Site site = Site::here()) : kind_(Kind::new_axis), site_(site) {}   // NOLINT
  Index(const Tensor& tensor, Site site = Site::here())                              // NOLINT
      : kind_(Kind::tensor), site_(site), tensor_(&tensor) {}

  Kind kind() const { return kind_; }
  Site site() const { return site_; }
  int64_t position() const { return *slice_.start; }  // Requires: position
  const Slice& range() const { return slice_; }       // Requires: slice
  const Tensor& tensor() const { return *tensor_; }   // Requires: tensor; lives during the call

 private:
  Kind kind_ = Kind::absent;
  Site site_;
  Slice slice_;
  const Tensor* tensor_ = nullptr;
};

inline constexpr int kMaxIndexes = 8;

// x.at(...): the elements of x that the indexes name, to be replaced.  Assigning rebinds x to a
// copy with other elements there; the right side sees x as it was.  Values broadcast to the shape
// of x(...) and are cast to the dtype of x; floats into integers are Error(dtype).  Where integer
// tensors name an element several times, = keeps the last value and the others apply each of them.
// Differentiable in x and the values.  Lives during the expression.
class Indexed {
 public:
  Indexed(Tensor& target, const Index (&items)[kMaxIndexes]);
  void operator=(const Operand& value);
  void operator=(const Indexed& other);  // assigns the elements that `other` names
  void operator+=(const Operand& value);
  void operator-=(const Operand& value);
  void operator*=(const Operand& value);
  void operator/=(const Operand& value);
  operator Tensor() const;  // NOLINT: x(...), implicit on purpose

 private:
  Tensor* target_;
  Index items_[kMaxIndexes];
};

}  // namespace fornax
