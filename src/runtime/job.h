// Work on other threads that somebody may wait for: programs are compiled side by side.
//
// The threads are started when there is work for them, as many as the machine runs beside the one
// that waits.  A job that nobody has begun is done by whoever waits for it, so nothing ever depends
// on them: not after exit() has ended them, nor in a child of fork(), where they are not.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <exception>
#include <memory>

namespace fornax::runtime {

class Job {
 public:
  explicit Job(bool done = false) : state_(done ? kDone : kOpen) {}
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Returns once the work is done.  Throws what it threw; the next wait then tries again.
  void wait() {
    if (!done()) [[unlikely]]
      finish();
  }
  bool done() const { return state_.load(std::memory_order_acquire) == kDone; }
  // Done, or failed: no thread begins it any more.
  bool ended() const { return state_.load(std::memory_order_acquire) < kOpen; }
  // Does the work, unless somebody has begun.  What it throws is kept for who waits.
  void begin() noexcept;
  // Nobody begins it any more; returns once nobody is at work on it.
  void cancel() noexcept;

 protected:
  virtual void work() = 0;  // once, and again where it threw

 private:
  static constexpr pid_t kOpen = 0, kDone = -1, kFailed = -2;  // else the process that is at work
  bool claim(pid_t from);
  void run() noexcept;
  void leave(pid_t state);
  void finish();

  std::atomic<pid_t> state_;
  std::exception_ptr error_;  // of a failed job, until somebody is told
};

// Has a thread begin the job soon.
void run_later(std::shared_ptr<Job> job);

}  // namespace fornax::runtime
