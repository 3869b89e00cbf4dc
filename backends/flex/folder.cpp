#include "backends/flex/folder.h"

#include <algorithm>
#include <bit>

#include "backends/flex/reduce_walk.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

// Rows, combined pair by pair.
template <class T>
class Tree {
 public:
  Tree(const Folds<T>& folds, int64_t width) : folds_(folds), width_(width), next_(size_t(width)) {}

  // The caller writes the next row here, then calls push().
  T* next() { return next_.data(); }
  void push() {
    size_t level = 0;
    for (uint64_t n = count_; n & 1; n >>= 1, level++) join(levels_[level]);
    if (level == levels_.size()) levels_.emplace_back(size_t(width_));
    std::swap(levels_[level], next_);
    count_++;
  }
  // Starts anew.  Requires: something was pushed.
  void finish(T* result) {
    size_t level = size_t(std::countr_zero(count_));
    std::swap(levels_[level], next_);
    while (++level < levels_.size()) {
      if (count_ >> level & 1) join(levels_[level]);
    }
    std::copy_n(next_.data(), width_, result);
    count_ = 0;
  }

 private:
  void join(const std::vector<T>& earlier) {
    const T* rows[] = {earlier.data(), next_.data()};
    folds_.rows(rows, 2, width_, next_.data());
  }

  const Folds<T>& folds_;
  const int64_t width_;
  uint64_t count_ = 0;
  std::vector<T> next_;
  std::vector<std::vector<T>> levels_;
};

// The same of single numbers, which need no memory.
template <class T>
class NumberTree {
 public:
  explicit NumberTree(const Folds<T>& folds) : folds_(folds) {}
  void push(T number) {
    size_t level = 0;
    for (uint64_t n = count_; n & 1; n >>= 1, level++) number = folds_.pair(levels_[level], number);
    levels_[level] = number;
    count_++;
  }
  T finish() {
    int level = std::countr_zero(count_);
    T all = levels_[level];
    while (count_ >> level > 1) {
      if (count_ >> ++level & 1) all = folds_.pair(levels_[level], all);
    }
    count_ = 0;
    return all;
  }

 private:
  const Folds<T>& folds_;
  uint64_t count_ = 0;
  T levels_[64];
};

template <class T>
const T* elements(const char* x) {
  return reinterpret_cast<const T*>(x);
}
template <class T>
T* elements(char* x) {
  return reinterpret_cast<T*>(x);
}

template <class T>
class FolderOf : public Folder {
 public:
  FolderOf(Fold fold, int64_t width)
      : folds_(folds<T>(fold)),
        width_(width),
        neutral_(size_t(width), folds_.neutral),
        columns_(folds_, width),
        numbers_(folds_) {}

  void rows(const char* const* rows, int n) override {
    const T* typed[kRowsAtOnce];
    for (int i = 0; i < n; i++) typed[i] = elements<T>(rows[i]);
    folds_.rows(typed, n, width_, columns_.next());
    columns_.push();
  }
  void stretch(const char* x, int64_t count) override {
    const T* data = elements<T>(x);
    for (int64_t i = 0; i < count; i += kBlock) {
      numbers_.push(folds_.block(data + i, std::min(kBlock, count - i)));
    }
  }
  void vector(const char* lanes) override { numbers_.push(folds_.vector(elements<T>(lanes))); }
  char* next_rows() override {
    std::copy_n(neutral_.data(), width_, columns_.next());
    return reinterpret_cast<char*>(columns_.next());
  }
  void push_rows() override { columns_.push(); }
  void finish(char* result) override {
    if (width_ > 1) return columns_.finish(elements<T>(result));
    *elements<T>(result) = numbers_.finish();
  }
  void short_rows(const char* x, int64_t rows, int64_t length, char* results) override {
    const T* data = elements<T>(x);
    T* to = elements<T>(results);
    if (length <= kShortRow) return folds_.short_rows(data, rows, length, to);
    for (int64_t i = 0; i < rows; i++) to[i] = folds_.block(data + i * length, length);
  }
  void fill_empty(char* results, int64_t count) override {
    std::fill_n(elements<T>(results), count, folds_.block(nullptr, 0));
  }

 private:
  const Folds<T> folds_;
  const int64_t width_;
  const std::vector<T> neutral_;
  Tree<T> columns_;
  NumberTree<T> numbers_;
};

template <class T>
void fold_to_vector_of(Fold fold, const char* x, int64_t count, char* into) {
  folds<T>(fold).to_vector(elements<T>(x), count, elements<T>(into));
}

}  // namespace

DType computed_in(Op op, DType dtype) {
  if (is_question(op)) return DType::i64;
  if (is_floating(dtype)) return dtype == DType::f64 ? DType::f64 : DType::f32;
  return is_signed(dtype) || is_boolean(dtype) ? DType::i64 : DType::u64;
}

Fold fold_of(Op op) {
  switch (op) {
    case Op::sum:
      return Fold::sum;
    case Op::prod:
      return Fold::prod;
    case Op::max:
    case Op::any:
    case Op::argmax:
      return Fold::max;
    default:
      return Fold::min;
  }
}

std::unique_ptr<Folder> make_folder(DType computed, Fold fold, int64_t width) {
  switch (computed) {
    case DType::f32:
      return std::make_unique<FolderOf<float>>(fold, width);
    case DType::f64:
      return std::make_unique<FolderOf<double>>(fold, width);
    case DType::i64:
      return std::make_unique<FolderOf<int64_t>>(fold, width);
    case DType::u64:
      return std::make_unique<FolderOf<uint64_t>>(fold, width);
    default:
      fail(ErrorKind::internal, "flex: reductions do not compute in {}", name_of(computed));
  }
}

void fold_to_vector(Fold fold, DType computed, const char* x, int64_t count, char* into) {
  switch (computed) {
    case DType::f32:
      return fold_to_vector_of<float>(fold, x, count, into);
    case DType::f64:
      return fold_to_vector_of<double>(fold, x, count, into);
    case DType::i64:
      return fold_to_vector_of<int64_t>(fold, x, count, into);
    default:
      return fold_to_vector_of<uint64_t>(fold, x, count, into);
  }
}

RowFolder::RowFolder(DType computed, const Walk& walk, Fold fold)
    : folder_(make_folder(computed, fold, 1)),
      size_(size_of(computed)),
      length_(walk.length),
      pieces_((walk.length + kPiece - 1) / kPiece),
      is_short_(walk.others == 1 && walk.length <= kBlock),
      partial_(size_t(walk.others * pieces_) * size_) {
  folder_->fill_empty(empty_, int64_t(sizeof(empty_) / size_));
}

void RowFolder::line(int64_t other, const char* x) {
  char* to = partial_.data() + size_t(other * pieces_) * size_;
  if (is_short_) return folder_->short_rows(x, 1, length_, to);
  for (int64_t i = 0; i < length_; i += kPiece, to += size_) {
    folder_->stretch(x + size_t(i) * size_, std::min(kPiece, length_ - i));
    folder_->finish(to);
  }
}

char* RowFolder::next_vector() {
  std::copy_n(empty_, sizeof(empty_), vector_);
  return vector_;
}

void RowFolder::push_vector(int64_t other, int64_t end) {
  folder_->vector(vector_);
  if (end % kPiece != 0 && end != length_) return;
  folder_->finish(partial_.data() + size_t(other * pieces_ + (end - 1) / kPiece) * size_);
}

void RowFolder::finish(char* results, int64_t row) {
  char* to = results + size_t(row) * size_;
  if (partial_.size() == size_) {
    std::copy_n(partial_.data(), size_, to);
  } else {
    folder_->stretch(partial_.data(), int64_t(partial_.size() / size_));
    folder_->finish(to);
  }
}

void RowFolder::rows(const char* x, int64_t rows, char* results) {
  if (is_short_) return folder_->short_rows(x, rows, length_, results);
  for (int64_t i = 0; i < rows; i++) {
    line(0, x + size_t(i * length_) * size_);
    finish(results, i);
  }
}

}  // namespace fornax::flex
