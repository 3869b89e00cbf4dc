// Row programs: groups of reductions over the same axes with work between them, such as softmax.
//
// Where the rows lie along memory and fit the caches, a few rows at a time go through all passes of
// a RowPlan: memory is read once and written once.  Long rows are computed line by line, with what
// is kept as constants; short ones side by side, with what is kept written out for each element.
// Constant once made, any thread.
#pragma once
#include <algorithm>
#include <optional>

#include "backends/flex/kernels.h"
#include "backends/flex/pipeline.h"
#include "backends/flex/reduce_walk.h"
#include "backends/flex/row_plan.h"

namespace fornax::flex {

// How an input lies over a domain; axes that it walks as one are one.
struct Spread {
  Spread() = default;
  Spread(const Type& type, const Layout& layout, const Shape& domain);
  int64_t at(int64_t element) const;  // of the domain, in row-major order
  bool is_constant() const { return rank == 0 || (rank == 1 && strides[0] == 0); }
  bool is_dense() const { return rank == 0 || (rank == 1 && strides[0] == 1); }
  // Whether it is walked in steps of `stride` along lines of `length` elements.
  bool has_lines(int64_t length, int64_t stride) const;
  // Whether all these lines are the same.
  bool is_repeated(int64_t length) const;

  int rank = 0;
  int64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};
};

// All of a row program that does not depend on where its data is.
struct RowCode {
  // Where a part finds an input.
  struct Feed {
    enum class Kind : uint8_t {
      number,    // the scalar of the group's input
      constant,  // the one element of it
      fixed,     // the same line of it for all rows
      element,   // an element of it per line
      direct,    // its memory
      gathered,  // its elements, brought to a buffer
      kept,      // a slot: one value per row
      saved,     // the rows of a saved step
    };
    Kind kind = Kind::number;
    int index = 0;  // of the group's input, the slot or the saved step
    DType dtype = DType::f32;
    int buffer = -1;        // gathered; and kept, written out for each element or vector
    bool repeated = false;  // gathered: once is enough
    Spread spread = {};
  };
  // Where it leaves an output.
  struct Give {
    enum class Kind : uint8_t {
      folded,  // the level's folding, as it is computed
      column,  // likewise
      buffer,
      saved,
      slot,
      output,
    };
    Kind kind;
    int index;
    DType dtype;
  };
  struct Part {
    std::vector<Feed> feeds;
    std::vector<Give> gives;
    Code code;
    Stores stores = Stores::cached;
  };
  struct Folding {
    Feed from;                // direct, saved; or
    int buffer = -1;          // what the pass leaves; or
    bool in_passing = false;  // folded by the pass
    Fold fold;
    DType computed;
    int slot;                  // of the result
    std::optional<Code> cast;  // to the result's dtype
    DType dtype;
  };
  struct Level {
    Part kept, pass;  // without gives: nothing to do
    std::vector<Folding> foldings;
    bool folds = false;  // in passing
  };
  // Columns, which the pass of a level folds: to an output of the group.
  struct Column {
    Fold fold;
    DType computed;
    int output;
    DType dtype;               // of that
    std::optional<Code> cast;  // to it
  };

  explicit RowCode(const RowPlan& plan);
  // Elements that a pass computes in one go, and that a buffer has room for.
  int64_t line_elements() const { return together ? rows * walk.length : walk.length; }
  int64_t buffer_elements() const {
    return std::max(line_elements(), rows * kMaxVectorBytes / int64_t(sizeof(int32_t)));
  }
  int64_t row_elements() const { return walk.others * walk.length; }

  Walk walk;
  bool together;  // short rows
  int64_t rows;   // that go through all passes together
  double cost;    // of an element, in nanoseconds
  std::vector<Level> levels;
  std::vector<Column> columns;
  std::vector<Feed> kept_inputs;  // element: brought to slots before the first level
  std::vector<int> kept_slots;
  int slots = 0, buffers = 0;
  std::vector<DType> saved;
};

// Whether rows along `axes` are long ones, so that columns are folded with them.
bool has_long_rows(const Shape& domain, const Attributes& axes);
// Whether RowCode can be made of the plan.
bool has_rows(const RowPlan& plan);
std::unique_ptr<Kernel> prepare_rows(const RowPlan& plan);

}  // namespace fornax::flex
