// Work that is done once, by whoever comes first; the others wait for it.  Unlike std::call_once,
// it may throw and is then tried again by the next one everywhere, also under thread sanitizers.
#pragma once
#include <atomic>
#include <mutex>

namespace fornax {

class Once {
 public:
  template <class Work>
  void operator()(Work work) {
    if (done_.load(std::memory_order_acquire)) [[likely]]
      return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> done_{false};
  std::mutex mutex_;
};

}  // namespace fornax
