// The physical devices of this process: found once, at first use, never changed afterwards.  They
// are numbered in the order of the backends' lines in CMakeLists.txt; the first is the default.
// First use may be in the initialiser of a static object.
#pragma once
#include <atomic>
#include <memory>

#include "backend/backend.h"

namespace fornax {

struct PhysicalDevice {
  Backend* backend;
  int ordinal;       // the backend's own number of the device
  std::string name;  // "cpu:0"
  std::string description;
  SmallKernel small_kernel;
  // Random numbers: Philox key and the next unused counter (tensor/random.cpp).
  std::atomic<uint64_t> seed{0}, counter{0};
};

inline constexpr int kMostDevices = 64;
// Filled when devices are found; an empty entry is not known yet, or does not exist.
extern std::atomic<PhysicalDevice*> known_devices[kMostDevices];
PhysicalDevice& find_physical_device(int number);

// Error(device): no such number.
inline PhysicalDevice& physical_device(int number) {
  if (unsigned(number) < unsigned(kMostDevices)) {
    PhysicalDevice* known = known_devices[number].load(std::memory_order_acquire);
    if (known) [[likely]]
      return *known;
  }
  return find_physical_device(number);
}
int physical_device_count();

// One more backend behind those of the build.  Requires: no device has been asked for yet.
void add_backend(MakeBackend make);

}  // namespace fornax
