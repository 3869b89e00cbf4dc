// Folders: what one thread has folded of a value so far.  In which order elements meet depends on
// counts alone: eight rows of columns, or a block of a row, and then pair by pair as a binary
// counter adds, so that the error of a sum grows with the logarithm of the count.
#pragma once
#include <memory>
#include <vector>

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

inline constexpr int64_t kBlock = 1024;         // elements of a row folded in one go
inline constexpr int64_t kPiece = 64 * kBlock;  // of a row that are folded before others join

// All pointers are to elements of the dtype that it was made for.
class Folder {
 public:
  virtual ~Folder() = default;
  // Adds n <= kRowsAtOnce rows of columns, of the folder's width; only the last of several calls
  // may bring fewer.
  virtual void rows(const char* const* rows, int n) = 0;
  // Adds elements of a row; only the last of several calls may bring other than whole blocks.
  virtual void stretch(const char* x, int64_t count) = 0;
  // The same of a block that was folded to a vector.
  virtual void vector(const char* lanes) = 0;
  // Rows of columns that others fold: into what, which is neutral, then that it was done.
  virtual char* next_rows() = 0;
  virtual void push_rows() = 0;
  // The result of what was added since the last one, which is something: a number, or a row.
  virtual void finish(char* result) = 0;
  // Of whole rows that follow each other, at most a block each.
  virtual void short_rows(const char* x, int64_t rows, int64_t length, char* results) = 0;
  // Of nothing.
  virtual void fill_empty(char* results, int64_t count) = 0;
};
// `computed`: a dtype that reductions compute in; `width`: 1 where rows are folded.
std::unique_ptr<Folder> make_folder(DType computed, Fold fold, int64_t width);

// Folds fewer than kBlock elements into the vector at `into`, as a Folder does.
void fold_to_vector(Fold fold, DType computed, const char* x, int64_t count, char* into);

struct Walk;

// Folds rows that lie in memory, to the bits that fold_values gives.  A row is `others` lines of
// `length` elements.  One thread's.  Requires of the walk: width is 1, and it is not empty.
class RowFolder {
 public:
  RowFolder(DType computed, const Walk& walk, Fold fold);
  void line(int64_t other, const char* x);
  // The same of a line that somebody else folds, kBlock elements at a time, to vectors: into which,
  // then that the line is done up to element `end`.
  char* next_vector();
  void push_vector(int64_t other, int64_t end);
  // results[row] of the lines since the last one.
  void finish(char* results, int64_t row);
  // The same of `rows` rows of one line each, which follow each other.
  void rows(const char* x, int64_t rows, char* results);

 private:
  std::unique_ptr<Folder> folder_;
  size_t size_;  // of an element
  int64_t length_, pieces_;
  bool is_short_;
  std::vector<char> partial_;
  alignas(64) char empty_[64], vector_[64];
};

}  // namespace fornax::flex
