// How a reduction walks its domain: the axes collapsed to alternately kept and reduced ones, and
// the loops over them.  What order elements are combined in depends on the domain and axes alone.
#pragma once
#include <fornax/function.h>
#include <fornax/shape.h>

#include <memory>
#include <span>
#include <vector>

#include "backends/flex/folder.h"

namespace fornax::flex {

// Values of the elements that are to reduce, in row-major order of the domain: one thread's.
class Values {
 public:
  virtual ~Values() = default;
  // Elements [begin, end) of each value, in memory or computed to its buffer, which has room for
  // them: data says where.
  virtual void get(int64_t begin, int64_t end, char* const* buffers, const char** data) = 0;
  // Whether values of columns are folded as they are computed, which is worth it for wide rows.
  virtual bool folds_columns() const { return false; }
  // Then elements [begin, end) of a row, folded into what lies at `into`.  What lies in memory is
  // not looked at.
  virtual void fold(int64_t, int64_t, char* const*) {}
  // Where value k lies in memory from element `begin` on, or null.
  virtual const char* in_memory(size_t, int64_t) const { return nullptr; }
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

// What becomes of a value.
struct Folding {
  Fold fold;
  DType computed;
  char* result;  // walk.outputs() elements
};
// Where foldings of columns, a part of the rows each, leave their results: those of part i of
// folding k are at to()[k] + i * outputs elements.
class Parts {
 public:
  Parts(std::span<const Folding> foldings, int64_t parts, int64_t outputs);
  std::span<char* const> to() const { return to_; }
  // Once all are there.
  void fold_columns() const;

 private:
  const std::span<const Folding> foldings_;
  const int64_t parts_, outputs_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<char*> to_;  // of one part: the foldings' results
};
inline constexpr int64_t kPartRows = 128;  // rows of a part

// All of them in one go through memory.  `cost` is nanoseconds per element; each thread that takes
// part calls `values`.
void fold_values(const Walk& walk, std::span<const Folding> foldings, double cost,
                 FunctionRef<std::unique_ptr<Values>()> values);

// Position of the first largest or smallest element of the one value along the one reduced axis;
// NaN is either.
void find_position(const Walk& walk, Fold fold, DType computed, double cost,
                   FunctionRef<std::unique_ptr<Values>()> values, int64_t* result);

}  // namespace fornax::flex
