// The functions of Device that run work or report on it.
#include <fornax/device.h>

#include <chrono>
#include <utility>

#include "backend/allocate.h"
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
    explicit Watch(ProfileReport& report)
        : own(report), outer(std::exchange(fornax::profile, &report)) {}
    ~Watch() {
      fornax::profile = outer;
      if (outer) outer->groups.insert(outer->groups.end(), own.groups.begin(), own.groups.end());
    }
    const ProfileReport& own;
    ProfileReport* outer;
  } watch(report);
  const auto begin = Clock::now();
  function();
  sync();
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

MemoryReport Device::memory() const {
  PhysicalDevice& device = physical_device(physical_);
  const MemoryUse use = device.backend->memory(device.ordinal);
  return {use.in_use, use.reserved, use.peak, memory_by_op(physical_)};
}

}  // namespace fornax
