// Few: a growing array whose first elements lie in the object, for lists that are nearly always
// that short.  Elements are contiguous.  Not copied, not moved.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace fornax {

template <class T, size_t kInline = 3>
class Few {
 public:
  Few() = default;
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

  void push_back(T value) {
    if (size_ == capacity_) grow();
    data_[size_++] = std::move(value);
  }
  void emplace_back() { push_back(T()); }
  // Destroys the elements, the last one first.
  void clear() {
    while (size_ > 0) data_[--size_] = T();
  }

 private:
  void grow() {
    auto more = std::make_unique<T[]>(size_t(capacity_) * 2);
    for (size_t i = 0; i < size_; i++) more[i] = std::move(data_[i]);
    many_ = std::move(more);
    data_ = many_.get();
    capacity_ *= 2;
  }

  T few_[kInline];
  std::unique_ptr<T[]> many_;
  T* data_ = few_;
  uint32_t size_ = 0, capacity_ = kInline;
};

}  // namespace fornax
