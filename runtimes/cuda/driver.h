// The CUDA driver, opened at run time: its functions, and the few types and numbers that they take.
//
// Nothing of CUDA is needed to build this.  The library stays open until the process ends.
// Thread-safety: a loaded driver does not change; its functions may be called from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/runtime.h"

namespace fornax::cuda {

using runtime::Address;
using Device = int;
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;
using GraphNode = struct GraphNodeObject*;
struct Uuid {
  unsigned char bytes[16];
};
// CUDA_KERNEL_NODE_PARAMS of CUDA 12.
struct LaunchNode {
  Function function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra = nullptr;
  void* kernel = nullptr;     // instead of the function
  Context context = nullptr;  // the current one
};

// CUlaunchAttribute; early: as Dependency::early(), after what comes before it in the stream.
struct LaunchAttribute {
  int kind = 6, unused = 0;
  union {
    int value = 1;
    char space[64];
  };
  static constexpr LaunchAttribute early() { return {}; }
};
// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Stream stream;
  const LaunchAttribute* attributes;
  unsigned count;  // of these
};

// How one node of a graph comes after another.  By default when that is over; early: when all of
// its blocks have allowed it or ended, and the launch then waits for its results by itself.
struct Dependency {
  unsigned char from_port = 0, to_port = 0, type = 0, reserved[5] = {};
  static Dependency early() { return {.from_port = 1, .type = 1}; }
};

// The driver may return any number; these are the ones that mean something to us.
enum class Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  device_unavailable = 46,
  no_device = 100,
  invalid_image = 200,
  no_binary_for_device = 209,
  memory_error = 214,
  link_error = 220,
  contained = 226,
  not_found = 500,
  illegal_address = 700,
  out_of_resources = 701,
  timeout = 702,
  context_destroyed = 709,
  assertion = 710,
  stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_counter = 718,
  launch_failed = 719,
  tensor_memory_leak = 721,
};
enum class DeviceAttribute : int {
  most_threads = 1,
  warp = 10,
  processors = 16,
  compute_major = 75,
  compute_minor = 76,
  shared_bytes = 97,  // that a program may ask for
};
enum class FunctionAttribute : int { shared_bytes = 8 };  // dynamic, of a block
enum class TensorMapType : int { u8 = 0, u16 = 1, f32 = 7, f64 = 8, tf32 = 11 };
enum class TensorMapSwizzle : int { none = 0, bytes128 = 3 };
inline constexpr int kTensorMapPromotion256 = 3;  // to the second cache, in bytes
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventWithoutTime = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr int kLeastVersion = 12000;

struct Driver {
#define FORNAX_CUDA(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
#include "runtimes/cuda/driver.def"
  int version = 0;  // 12040 for CUDA 12.4

  // nullptr where it cannot be used, and `absence` says why.  An empty path: where it always is.
  static std::shared_ptr<const Driver> load(const std::string& path, std::string& absence);

  // "CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected"
  std::string describe(Result result) const;
};

// Whether nothing can be done with a device any more in this process.
bool breaks_device(Result result);

// "12.4" for 12040
std::string version_text(int version);

// How often this process was forked off; CUDA works only where that is what it was when it started.
unsigned fork_count();

}  // namespace fornax::cuda
