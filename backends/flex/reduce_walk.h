// How a reduction walks its domain: the axes collapsed to alternately kept and reduced ones, and
// the loops over them.  What order elements are combined in depends on the domain and axes alone.
#pragma once
#include <fornax/shape.h>

#include <memory>

#include "backends/flex/fold.h"
#include "graph/op.h"
#include "graph/type.h"

namespace fornax::flex {

// What the reduction `op` of elements of `dtype` computes in: f32 for all floats up to 32 bits,
// f64, i64, u64.
DType computed_in(Op op, DType dtype);
Fold fold_of(Op op);
constexpr bool is_position(Op op) { return op == Op::argmax || op == Op::argmin; }
constexpr bool is_question(Op op) { return op == Op::any || op == Op::all; }

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

// Folds rows that lie in memory, to the bits that reduce_fold gives.  A row is `others` lines of
// `length` elements.  One thread's.  Requires of the walk: width is 1, and it is not empty.
class RowFolder {
 public:
  virtual ~RowFolder() = default;
  virtual void line(int64_t other, const void* x) = 0;
  // results[row] of the lines since the last one.
  virtual void finish(void* results, int64_t row) = 0;
  // The same of `rows` rows of one line each, which follow each other.
  virtual void rows(const void* x, int64_t rows, void* results) = 0;
};
// Of elements of `computed`, a dtype that reductions compute in.
std::unique_ptr<RowFolder> make_row_folder(DType computed, const Walk& walk, Fold fold);

// Position of the first largest or smallest element along the one reduced axis; NaN is either.
template <class T>
void reduce_position(const Walk& walk, const Elements<T>& elements, Fold fold, double cost,
                     int64_t* result);

}  // namespace fornax::flex
