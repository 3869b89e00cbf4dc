#include "backend/registry.h"

#include <fornax/device.h>

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "base/settings.h"

namespace fornax {

#define FORNAX_BACKEND(name)               \
  namespace name {                         \
  std::unique_ptr<Backend> make_backend(); \
  }
FORNAX_BACKENDS
#undef FORNAX_BACKEND

namespace {

// FORNAX_BACKENDS is FORNAX_BACKEND(name) for each line of CMakeLists.txt, in order.
#define FORNAX_BACKEND(name) name::make_backend,
constexpr MakeBackend kBackends[] = {FORNAX_BACKENDS};
#undef FORNAX_BACKEND

using MakeBackends = std::vector<RankedBackend> (*)();
struct Added {
  std::vector<MakeBackends> libraries;
  bool closed = false;  // devices have been found
};
Added& added() {
  static Added backends;
  return backends;
}

struct Found {
  std::deque<PhysicalDevice> devices;
  std::vector<DeviceListing> absent;
};

std::vector<RankedBackend> make_backends() {
  std::vector<RankedBackend> all;
  for (const MakeBackend make : kBackends) all.push_back({int(all.size()) * 100, make()});
  for (const MakeBackends make : added().libraries) {
    for (RankedBackend& made : make()) all.push_back(std::move(made));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const RankedBackend& a, const RankedBackend& b) { return a.rank < b.rank; });
  return all;
}

Found* find_devices() {
  auto* found = new Found;
  added().closed = true;
  for (RankedBackend& made : make_backends()) {
    Backend* backend = made.backend.get();
    std::string absence;
    int ordinal = 0;
    for (BackendDevice& device : backend->devices(absence)) {
      PhysicalDevice& physical = found->devices.emplace_back();
      physical.backend = backend;
      physical.ordinal = ordinal;
      physical.name = fmt::format("{}:{}", device.name, ordinal++);
      physical.description = std::move(device.description);
      physical.small_loops = backend->small_loops();
    }
    if (ordinal == 0) {
      found->absent.push_back({std::string(backend->name()), absence, false});
    } else {
      made.backend.release();  // lives as long as the process: buffers point at it
    }
  }
  return found;
}

Found& found() {
  static Found* devices = find_devices();
  return *devices;
}

}  // namespace

void add_backends(MakeBackends make) {
  FORNAX_CHECK(!added().closed);
  added().libraries.push_back(make);
}

std::atomic<PhysicalDevice*> known_devices[kMostDevices];

PhysicalDevice& find_physical_device(int number) {
  auto& devices = found().devices;
  if (number < 0 || number >= int(devices.size())) {
    fail(ErrorKind::device, "device: number {} of {} devices", number, devices.size());
  }
  PhysicalDevice& device = devices[size_t(number)];
  if (number < kMostDevices) known_devices[number].store(&device, std::memory_order_release);
  return device;
}

int physical_device_count() { return int(found().devices.size()); }

std::vector<DeviceListing> devices() {
  std::vector<DeviceListing> list;
  for (const PhysicalDevice& device : found().devices) {
    list.push_back({device.name, device.description, true});
  }
  list.insert(list.end(), found().absent.begin(), found().absent.end());
  return list;
}

Device::Device() {
  static const Device chosen = [] {
    const std::string name = settings().device;
    return name.empty() ? from_physical(0) : Device(std::string_view(name), Site());
  }();
  *this = chosen;
  eager_ = settings().eager;
}

Device::Device(std::string_view name, Site site) {
  Call call("device", site);
  std::string names;
  for (int i = 0; i < physical_device_count(); i++) {
    const std::string& full = physical_device(i).name;
    const bool first = full.ends_with(":0") && full.substr(0, full.size() - 2) == name;
    if (full == name || first) {
      physical_ = int16_t(i);
      eager_ = settings().eager;
      return;
    }
    names += (i ? ", " : "") + full;
  }
  std::string reason;
  const std::string kind(name.substr(0, name.find(':')));
  for (const DeviceListing& absent : found().absent) {
    const bool wanted = absent.name == kind || absent.name.ends_with("<" + kind + ">");
    if (wanted) reason = fmt::format(" ({})", absent.description);
  }
  fail(ErrorKind::device, "device: there is no \"{}\"{}; usable here: {}", name, reason, names);
}

Device Device::from_physical(int number) {
  Device device{Unchecked{}};
  (void)physical_device(number);
  device.physical_ = int16_t(number);
  return device;
}

std::string Device::name() const { return physical_device(physical_).name; }

std::string Device::describe() const {
  const PhysicalDevice& device = physical_device(physical_);
  std::string stack = fmt::format("{}<{}>", eager_ ? "eager" : "fused", device.backend->name());
  if (autodiff_) stack = fmt::format("autodiff<{}>", stack);
  const std::string remark = device.backend->remark(device.ordinal);
  return fmt::format("{} on {}{}{}", stack, device.description, remark.empty() ? "" : "; ", remark);
}

Device Device::autodiff(Checkpointing checkpointing) const {
  Device device = *this;
  device.autodiff_ = true;
  device.checkpointing_ = checkpointing;
  return device;
}

Device Device::inner() const {
  Device device = *this;
  device.autodiff_ = false;
  device.checkpointing_ = Checkpointing::none;
  return device;
}

Device Device::eager() const {
  Device device = *this;
  device.eager_ = true;
  return device;
}

Device Device::fused() const {
  Device device = *this;
  device.eager_ = false;
  return device;
}

void Device::trim() const {
  PhysicalDevice& device = physical_device(physical_);
  device.backend->trim(device.ordinal);
}

void Device::seed(uint64_t seed) const {
  PhysicalDevice& device = physical_device(physical_);
  device.seed.store(seed);
  device.counter.store(0);
}

}  // namespace fornax
