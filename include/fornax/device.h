// Device: where tensors live and how work on them is run.  A value of a few bytes.
//
// The physical device is the identity: "cpu", "cpu:0" and Device() on a machine without a GPU are
// equal and share memory, seeds and compiled plans.  The marks (autodiff, checkpointing, eager) say
// how to run on it and never make two devices different.
#pragma once
#include <fornax/error.h>
#include <fornax/function.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fornax {

// What a backward pass keeps: everything its gradients read, or only results of costly ops, with
// cheap elementwise ops and views done again.
enum class Checkpointing : uint8_t { none, balanced };

struct MemoryReport {
  size_t in_use = 0;    // bytes of living values
  size_t reserved = 0;  // bytes held from the system, free blocks included
  size_t peak = 0;      // the largest in_use so far
  struct Share {
    std::string op;  // which op's results
    size_t bytes = 0;
  };
  std::vector<Share> by_op;  // largest first; buffers under 4096 bytes are not counted
};

struct ProfileReport {
  double seconds = 0;  // wall time of the function with all the work it recorded
  struct Group {
    std::string ops;   // "mul add exp"
    size_t bytes = 0;  // read and written
    double seconds = 0;
  };
  std::vector<Group> groups;  // in order of execution
};

class Device {
 public:
  // The default device: FORNAX_DEVICE or the setting `device`, else the first of devices().
  // Error(device): that names no device here.
  Device();
  // "cpu", "cpu:0", "reference".  Error(device): no such device; lists those that exist.
  Device(std::string_view name, Site site = Site::here());  // NOLINT: implicit on purpose
  Device(const char* name, Site site = Site::here())        // NOLINT
      : Device(std::string_view(name), site) {}

  std::string name() const;  // "cpu:0"
  // The active stack and the hardware: "autodiff<fused<flex>> on AMD EPYC, avx2, 2 threads".
  std::string describe() const;
  // Same physical device.
  bool operator==(const Device& other) const { return physical_ == other.physical_; }

  // The same device with a mark.  Modules made on an autodiff device track their parameters.
  Device autodiff(Checkpointing checkpointing = Checkpointing::none) const;
  Device inner() const;  // without autodiff
  Device eager() const;  // runs each op as it is written
  Device fused() const;  // records and fuses, the default
  bool is_autodiff() const { return autodiff_; }
  bool is_eager() const { return eager_; }
  Checkpointing checkpointing() const { return checkpointing_; }

  // Runs what this thread has recorded on the device, without waiting for the device.
  void flush() const;
  // Runs what every thread has recorded on the device and waits.  Throws the first error of work
  // that nobody has read yet.
  void sync() const;
  // Runs `function` and all the work that it records on this thread, pending work before it
  // excluded.  One within another reports to both.
  ProfileReport profile(FunctionRef<void()> function) const;
  MemoryReport memory() const;
  // Gives unused memory back to the system.
  void trim() const;
  // Restarts the device's random numbers.  Equal seeds give equal numbers on every backend.
  void seed(uint64_t seed) const;

  // For the rooms below tensors: the physical device's number in the registry.
  int physical() const { return physical_; }
  static Device from_physical(int number);

 private:
  struct Unchecked {};
  explicit Device(Unchecked) {}
  int16_t physical_ = 0;
  bool autodiff_ = false;
  bool eager_ = false;
  Checkpointing checkpointing_ = Checkpointing::none;
};

struct DeviceListing {
  std::string name;         // "cpu:0"; for an absent one the backend's name
  std::string description;  // hardware, or why it is not usable
  bool usable = true;
};
// Every device found, the default first, then those that were looked for and why they are absent.
std::vector<DeviceListing> devices();

}  // namespace fornax
