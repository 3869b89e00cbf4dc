// How a reduction walks its domain: the axes collapsed to alternately kept and reduced ones, and
// the loops over them.  What order elements are combined in depends on the domain and axes alone.
#pragma once
#include <fornax/shape.h>

#include <span>

#include "backends/flex/fold.h"
#include "graph/op.h"
#include "graph/type.h"

namespace fornax::flex {

// The elements to reduce, in row-major order of the domain.  Any thread, each with its own buffer.
template <class T>
class Elements {
 public:
  virtual ~Elements() = default;
  // Elements [begin, end), in memory or computed to `buffer`, which has room for them.
  virtual const T* get(int64_t begin, int64_t end, T* buffer) const = 0;
};
inline constexpr int64_t kBufferElements = 4096;

// [outer ...][reduced][width]: `width` elements side by side are kept; it is 1 where the innermost
// axis is reduced.  The outer axes are kept or reduced in turn.
struct Walk {
  Walk(const Shape& domain, const Attributes& axes);

  int64_t outputs() const { return kept * width; }
  // First element of the rows of output group `keep` under the outer reduced index `other`.
  int64_t start(int64_t keep, int64_t other) const;

  int64_t kept = 1;    // product of the outer kept axes
  int64_t others = 1;  // product of the outer reduced axes
  int64_t length = 1;  // the innermost reduced axis
  int64_t width = 1;
  bool empty = false;  // no elements

 private:
  int outer_ = 0;
  int64_t sizes_[kMaxRank] = {}, strides_[kMaxRank] = {};
  bool reduced_[kMaxRank] = {};
};

// result has walk.outputs() elements.  `cost` is nanoseconds per element.
template <class T>
void reduce_fold(const Walk& walk, const Elements<T>& elements, Fold fold, double cost, T* result);
// Position of the first largest or smallest element along the one reduced axis; NaN is either.
template <class T>
void reduce_position(const Walk& walk, const Elements<T>& elements, Fold fold, double cost,
                     int64_t* result);

}  // namespace fornax::flex
