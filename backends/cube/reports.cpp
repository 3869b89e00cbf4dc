#include "backends/cube/reports.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"

namespace fornax::cube {

thread_local Execution* Execution::current_ = nullptr;

uint64_t Execution::current() {
  static std::atomic<uint64_t> last{0};
  if (!current_) return 0;
  if (current_->number_ == 0) current_->number_ = last.fetch_add(1) + 1;
  return current_->number_;
}

void Reports::make_memory() {
  memory_ = runtime_.allocate(ordinal_, kMost * sizeof(kernel::Status));
  const std::vector<kernel::Status> clear(kMost);
  runtime_.write(ordinal_, memory_, clear.data(), kMost * sizeof(kernel::Status));
}

void Reports::run(std::span<const Request> requests,
                  FunctionRef<void(std::span<const runtime::Address>)> launch) {
  FORNAX_CHECK(requests.size() <= kMost);
  std::unique_lock lock(mutex_);
  if (memory_ == 0) make_memory();
  while (open_.size() + requests.size() > kMost) look(lock);
  std::vector<runtime::Address> slots;
  for (const Request& request : requests) {
    slots.push_back(slot(first_ + open_.size()));
    open_.push_back({request.execution, request.explain});
  }
  launch(slots);
}

// The lock is open while the device is waited for: other threads go on launching.
void Reports::look(std::unique_lock<std::mutex>& lock) {
  const uint64_t begin = first_, end = first_ + open_.size();
  std::vector<kernel::Status> statuses(size_t(end - begin));
  lock.unlock();
  for (uint64_t at = begin; at < end;) {
    const uint64_t count = std::min(end - at, kMost - at % kMost);
    runtime_.read(ordinal_, &statuses[size_t(at - begin)], slot(at),
                  size_t(count) * sizeof(kernel::Status));
    at += count;
  }
  lock.lock();
  // Others may have looked at the first ones meanwhile.
  for (; first_ < end; first_++) {
    tell(first_, statuses[size_t(first_ - begin)]);
    open_.pop_front();
  }
}

void Reports::tell(uint64_t number, const kernel::Status& status) {
  if (status[0] == 0) return;
  const kernel::Status clear{};
  runtime_.write(ordinal_, slot(number), &clear, sizeof clear);
  const Open& failed = open_.front();
  const auto known = std::find_if(errors_.begin(), errors_.end(), [&](const LateError& error) {
    return error.execution == failed.execution && failed.execution != 0;
  });
  if (known != errors_.end()) return;
  try {
    (*failed.explain)(status);
  } catch (const Error& error) {
    errors_.push_back({failed.execution, std::make_shared<const Error>(error)});
  }
}

std::vector<LateError> Reports::collect() {
  std::unique_lock lock(mutex_);
  if (!open_.empty()) look(lock);
  return std::exchange(errors_, {});
}

}  // namespace fornax::cube
