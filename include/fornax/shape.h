// Shape: the sizes of a tensor's axes.  A plain value without heap memory, at most kMaxRank axes.
// Rank 0 is a scalar with one element; any size may be 0.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace fornax {

inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  // Error(shape): more than kMaxRank axes.  Negative sizes are kept; ops that create memory refuse
  // them, and reshape reads -1 as "infer".
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  // Requires 0 <= axis < rank().
  int64_t operator[](int axis) const { return sizes_[axis]; }
  int64_t& operator[](int axis) { return sizes_[axis]; }
  // Product of the sizes.  Error(shape): the product overflows int64.
  int64_t element_count() const;

  void push_back(int64_t size);         // Error(shape): rank is kMaxRank
  void insert(int axis, int64_t size);  // before `axis`
  void erase(int axis);

  const int64_t* begin() const { return sizes_; }
  const int64_t* end() const { return sizes_ + rank_; }
  operator std::span<const int64_t>() const { return {sizes_, size_t(rank_)}; }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int axis = 0; axis < rank_; axis++) {
      if (sizes_[axis] != other.sizes_[axis]) return false;
    }
    return true;
  }

 private:
  int64_t sizes_[kMaxRank] = {};
  int rank_ = 0;
};

std::string text_of(const Shape& shape);  // "[2,3]"

// One window position per axis pair of an operation on pictures: one number for both axes, or two.
struct Pair {
  int64_t height = 0, width = 0;
  Pair(int64_t both) : height(both), width(both) {}  // NOLINT: implicit on purpose
  Pair(int64_t h, int64_t w) : height(h), width(w) {}
  bool operator==(const Pair&) const = default;
};

}  // namespace fornax
