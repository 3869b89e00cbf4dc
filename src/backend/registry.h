// The physical devices of this process: found once, at first use, never changed afterwards.  They
// are numbered in the order of the backends' lines in CMakeLists.txt; the first is the default.
// First use may be in the initialiser of a static object.
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
  const SmallLoops* small_loops;  // or null
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

// A backend of the build has the rank of its line, 0, 100, ...  Devices are numbered by ascending
// rank, then name; the usable one with the lowest rank is the default.
struct RankedBackend {
  int rank;
  std::unique_ptr<Backend> backend;
};
// The backends of a library that a program links beside this one.  Called by a static object of
// that library, before any device has been asked for.
void add_backends(std::vector<RankedBackend> (*make)());

}  // namespace fornax
