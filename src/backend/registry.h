// The physical devices of this process: found once, at first use, never changed afterwards.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

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

// A backend registers itself by a static object in one of its files.  Devices are numbered by
// ascending rank, then name; the usable one with the lowest rank is the default.
struct RankedBackend {
  int rank;
  std::unique_ptr<Backend> backend;
};
struct Registered {
  Registered(int rank, std::unique_ptr<Backend> (*make)());
  // Backends whose number is known when they are made.
  explicit Registered(std::vector<RankedBackend> (*make_all)());
};

}  // namespace fornax
