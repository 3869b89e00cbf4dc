#include "runtime/job.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace fornax::runtime {
namespace {

constexpr unsigned kMostThreads = 16;

class Workers {
 public:
  void add(std::shared_ptr<Job> job) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_.size() < most_) {
      threads_.emplace_back([this] { work(); });
    }
    wake_.notify_one();
  }

  // What runs is waited for: libraries that it calls must not be taken down meanwhile.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      jobs_.clear();
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Around fork(), so that the child finds no lock held by a thread that it does not have.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static void end_at_exit();

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      idle_++;
      wake_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
      idle_--;
      if (ended_) return;
      const std::shared_ptr<Job> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job->begin();
      lock.lock();
      if (!std::exchange(end_registered_, true)) end_at_exit();
    }
  }

  const size_t most_ = std::clamp(std::thread::hardware_concurrency(), 2u, kMostThreads + 1) - 1;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ended_ = false, end_registered_ = false;
};

// Never destroyed; a child of fork() leaves its parent's alone and makes its own.
Workers* workers = nullptr;

// Compilers register handlers of exit() while they run at first, and no thread may be inside one
// when these are called.  What is registered later is called earlier: after the first job.
void Workers::end_at_exit() {
  std::atexit([] { workers->end(); });
}

// For the first job itself: exit() destroys the objects of its own thread before all handlers.
struct EndsWithMainThread {
  ~EndsWithMainThread() {
    if (gettid() == getpid()) workers->end();
  }
};

Workers* make_workers() {
  workers = new Workers;
  pthread_atfork([] { workers->lock(); }, [] { workers->unlock(); }, [] { workers = new Workers; });
  std::atexit([] { workers->end(); });
  return workers;
}

}  // namespace

void run_later(std::shared_ptr<Job> job) {
  [[maybe_unused]] static Workers* const first = make_workers();
  [[maybe_unused]] static thread_local const EndsWithMainThread end;
  workers->add(std::move(job));
}

bool Job::claim(pid_t from) { return state_.compare_exchange_strong(from, getpid()); }

void Job::begin() noexcept {
  if (claim(kOpen)) run();
}

void Job::run() noexcept {
  pid_t after = kDone;
  try {
    work();
  } catch (...) {
    error_ = std::current_exception();
    after = kFailed;
  }
  leave(after);
}

void Job::leave(pid_t state) {
  state_ = state;
  state_.notify_all();
}

void Job::cancel() noexcept {
  while (!claim(kOpen)) {
    const pid_t state = state_;
    if (state != getpid()) return;
    state_.wait(state);
  }
}

void Job::finish() {
  for (;;) {
    begin();
    const pid_t state = state_;
    if (state == kDone) return;
    if (state == kFailed && claim(kFailed)) {
      const std::exception_ptr error = std::exchange(error_, nullptr);
      if (error) {
        leave(kFailed);
        std::rethrow_exception(error);
      }
      run();  // somebody was told before
      continue;
    }
    if (state <= 0) continue;
    if (state != getpid()) {
      fail(ErrorKind::device,
           "this process was forked off while its parent compiled a program that it needs; fork "
           "before the first use of a device, or start the child with exec");
    }
    state_.wait(state);
  }
}

}  // namespace fornax::runtime
