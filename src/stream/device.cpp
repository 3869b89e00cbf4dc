// The functions of Device that run work or report on it.
#include <fornax/device.h>

#include <algorithm>
#include <chrono>

#include "backend/registry.h"
#include "stream/doubt.h"
#include "stream/run.h"
#include "stream/stream.h"

namespace fornax {

void Device::flush() const { Stream::of_this_thread(physical_).flush(); }

void Device::sync() const {
  Stream::flush_all(physical_);
  PhysicalDevice& device = physical_device(physical_);
  settle(physical_);
  device.backend->synchronize(device.ordinal);
  throw_unread_failure(physical_);
}

ProfileReport Device::profile(FunctionRef<void()> function) const {
  using Clock = std::chrono::steady_clock;
  sync();
  ProfileReport report;
  struct Watch {
    explicit Watch(ProfileReport* report) : before(set_profile(report)) {}
    ~Watch() { set_profile(before); }
    ProfileReport* before;
  } watch(&report);
  const auto begin = Clock::now();
  function();
  sync();
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

MemoryReport Device::memory() const {
  PhysicalDevice& device = physical_device(physical_);
  const MemoryUse use = device.backend->memory(device.ordinal);
  MemoryReport report{use.in_use, use.reserved, use.peak, {}};
  const auto bytes = live_bytes(physical_);
  for (int op = 0; op < op_count(); op++) {
    if (bytes[size_t(op)] <= 0) continue;
    report.by_op.push_back({std::string(info(Op(op)).name), size_t(bytes[size_t(op)])});
  }
  std::sort(report.by_op.begin(), report.by_op.end(),
            [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return report;
}

}  // namespace fornax
