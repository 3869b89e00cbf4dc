// Ref: an intrusive counted pointer.  T has `std::atomic<uint32_t> references` that starts at 1 and
// a static or member `destroy(T*)` found by argument-dependent lookup as destroy(T*).
// Counting is safe from any thread; one Ref object is not.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace fornax {

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  // Shares `pointer`.
  explicit Ref(T* pointer) : pointer_(pointer) {
    if (pointer_) pointer_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(const Ref& other) : Ref(other.pointer_) {}
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Ref() { release(pointer_); }

  // Takes over a reference that the caller owns, as `new T` does.
  static Ref adopt(T* pointer) {
    Ref ref;
    ref.pointer_ = pointer;
    return ref;
  }
  T* leave() { return std::exchange(pointer_, nullptr); }

  T* get() const { return pointer_; }
  T* operator->() const { return pointer_; }
  T& operator*() const { return *pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  bool operator==(const Ref&) const = default;

 private:
  static void release(T* pointer) {
    if (!pointer) return;
    // A plain load spares the locked instruction where nobody else can hold a reference.
    if (pointer->references.load(std::memory_order_acquire) == 1 ||
        pointer->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(pointer);
    }
  }
  T* pointer_ = nullptr;
};

}  // namespace fornax
