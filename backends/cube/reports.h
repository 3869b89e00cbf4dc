// What running kernels found wrong: a ring of status slots on the device.
//
// A launch of a kernel that can fail takes the next slot and is not waited for; the slots of all
// launches since are read together when somebody waits anyway.  Slots are zero until a kernel
// fails.  Where all of them are taken, taking one waits.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <fornax/function.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "kernel/check.h"
#include "runtime/runtime.h"

namespace fornax::cube {

// The number under which errors of the execution under way on this thread are told, given when it
// is first asked for; 0: nothing has asked.
class Execution {
 public:
  Execution() : outer_(current_) { current_ = this; }
  ~Execution() { current_ = outer_; }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  uint64_t number() const { return number_; }
  static uint64_t current();  // 0 where none is under way

 private:
  static thread_local Execution* current_;
  Execution* outer_;
  uint64_t number_ = 0;
};

// Throws what a failed status means.
using Explain = std::function<void(const kernel::Status&)>;

class Reports {
 public:
  struct Request {
    uint64_t execution;
    std::shared_ptr<const Explain> explain;
  };
  static constexpr size_t kMost = 1024;

  Reports(runtime::Runtime& runtime, int ordinal) : runtime_(runtime), ordinal_(ordinal) {}

  // `launch` is given a slot per request, at most kMost, and launches before it returns.
  void run(std::span<const Request> requests,
           FunctionRef<void(std::span<const runtime::Address> slots)> launch);
  // Waits for the launches so far, where any has not been looked at.
  std::vector<LateError> collect();

 private:
  struct Open {
    uint64_t execution;
    std::shared_ptr<const Explain> explain;
  };
  runtime::Address slot(uint64_t number) const {
    return memory_ + number % kMost * sizeof(kernel::Status);
  }
  void make_memory();
  void look(std::unique_lock<std::mutex>& lock);
  void tell(uint64_t number, const kernel::Status& status);

  runtime::Runtime& runtime_;
  const int ordinal_;
  std::mutex mutex_;  // of what follows
  runtime::Address memory_ = 0;
  uint64_t first_ = 0;             // the oldest slot that has not been looked at, ever counting
  std::deque<Open> open_;          // from first_ on
  std::vector<LateError> errors_;  // found and not collected
};

}  // namespace fornax::cube
