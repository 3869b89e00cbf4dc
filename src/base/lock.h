// Lock: a mutex for sections that are entered far more often than contended: without contention it
// takes a few instructions in place, where std::mutex calls into the C library.  For lock_guard.
#pragma once
#include <atomic>
#include <cstdint>

namespace fornax {

class Lock {
 public:
  void lock() {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire)) lock_slowly();
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  enum : uint32_t { kFree, kTaken, kAwaited };
  // Whoever has waited cannot know whether others still do, and so wakes one in any case.
  [[gnu::noinline]] void lock_slowly() {
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) state_.wait(kAwaited);
  }
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace fornax
