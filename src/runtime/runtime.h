// Runtime: the seam to what runs programs of ours: memory, compiling, launching, time.  Programs
// cross it as text; nothing here knows an op.  runtimes/<name> implement it.
//
// Order.  All work of one device happens in the order of the calls, whatever thread makes them:
// write, copy and launch return before it is done, read and synchronize wait.  Memory may be
// released while launches that use it are still to run: whoever gets it next comes after them.
//
// Errors.  fornax::Error on the calling thread.  A program that faults while it runs breaks the
// device for good on some hardware; the next call that waits says so, and names the program.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fornax::runtime {

// Where memory of a device begins; host pointers where the device is the host.
using Address = uint64_t;

// In what text a device takes its programs.
enum class Language : uint8_t { kernel, cuda };  // kernel: the text form of kernel/ir.h

// What kernels may rely on; enters the key of compiled code.
struct Capabilities {
  Language language = Language::kernel;
  std::string target;              // what the text is compiled for: "sm_90a"
  int compute = 0;                 // cuda: 90 for sm_90
  int warp = 32;                   // threads that run together; a power of two
  int most_threads = 1024;         // of a block
  int processors = 1;              // how many blocks at least run side by side
  size_t shared_bytes = 48 << 10;  // of a block, the most that can be asked for
};

struct RuntimeDevice {
  std::string name;         // "cuda"; devices of one name are numbered in order
  std::string identity;     // the physical device, whatever its number: a UUID
  std::string description;  // as a person would name it
  Capabilities capabilities;
};

struct MemoryUse {
  size_t in_use = 0, reserved = 0, peak = 0;
};

// output: the address of memory that the program writes, or reads and writes.
enum class ParameterKind : uint8_t { word32, word64, tensor_map, output };

// A program before it is compiled.
struct Source {
  std::string label;  // names the program in logs and errors: "softmax f32 rows 4096"
  std::string entry;  // the function's name in the text
  std::string text;
  int threads = 128;        // of a block; one dimension
  size_t shared_bytes = 0;  // dynamic, of a block
  std::vector<ParameterKind> parameters;
  bool waits = false;  // for the launch before it by itself, so it may begin while that runs
};

// What the compiler says of a program; -1 where it does not.
struct Report {
  int registers = -1;  // of a thread
  int spilled_bytes = -1;
  int shared_bytes = -1;
};

// A program on one device.  Lives as long as it is held, also past the device's last memory.
struct Program {
  Source source;  // the text may be empty where compiled code was found in a cache
  Report report;
  virtual ~Program() = default;
};

// How to find `key`, and what to compile where it is not cached yet.  `make` runs at most once.
struct Recipe {
  std::string key;  // everything that the text follows from; empty: do not keep the result
  virtual Source make() const = 0;
  virtual ~Recipe() = default;
};

using Grid = std::array<uint32_t, 3>;

// A box of a matrix in memory, for the hardware's copy engine (cuda, compute 90).
struct TensorMapRequest {
  Address base = 0;  // 16-byte aligned
  int element_bytes = 2;
  bool tf32 = false;                     // f32 rounded to tf32 while it is copied
  int rank = 2;                          // from 2 to 4
  std::array<uint64_t, 4> extents = {};  // in elements, innermost first
  std::array<uint64_t, 3> pitches = {};  // in bytes, of the axes after the innermost
  std::array<uint32_t, 4> box = {};      // in elements
  bool swizzle = true;                   // 128-byte swizzle of rows of 128 bytes
};
struct alignas(64) TensorMap {
  std::array<uint64_t, 16> opaque;
};

// A point in a device's order of work, for times.
struct Mark {
  virtual ~Mark() = default;
};
// Launches, recorded once and run as one.
struct Recording {
  virtual ~Recording() = default;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual std::string_view name() const = 0;  // "cuda"
  // Where there are none, `absence` says why.  Found once.
  virtual const std::vector<RuntimeDevice>& devices(std::string& absence) = 0;

  // At least 256-byte aligned, not initialised.  Error(out_of_memory): after what is cached was
  // given back and tried again.
  virtual Address allocate(int device, size_t bytes) = 0;
  virtual void release(int device, Address memory) noexcept = 0;
  virtual MemoryUse memory(int device) = 0;
  virtual void trim(int device) = 0;  // gives cached memory back

  // `from` may be changed once write returns.
  virtual void write(int device, Address to, const void* from, size_t bytes) = 0;
  virtual void read(int device, void* to, Address from, size_t bytes) = 0;
  // Between two devices of this runtime.
  virtual void copy(int to_device, Address to, int from_device, Address from, size_t bytes) = 0;

  // nullptr where the program is in no cache and must be compiled.
  virtual std::shared_ptr<Program> find(int device, const Recipe& recipe) = 0;
  // Found or compiled.  Error(value, internal): the compiler's log.  May be called long before the
  // first launch, on any thread, and does not wait for the device.
  virtual std::shared_ptr<Program> compile(int device, const Recipe& recipe) = 0;
  // One word per parameter: the value in the low bytes, or the address of a host TensorMap.  Where
  // the grid is empty nothing happens.
  virtual void launch(int device, const Program& program, Grid grid,
                      std::span<const uint64_t> arguments) = 0;
  virtual TensorMap tensor_map(int device, const TensorMapRequest& request) = 0;
  virtual void synchronize(int device) = 0;

  virtual std::unique_ptr<Mark> mark(int device) = 0;
  // Waits for both.
  virtual double milliseconds(const Mark& from, const Mark& to) = 0;

  // Between the two, this thread's launches on the device are recorded and do not run; writes and
  // copies run at once, and Error(internal) is what waits meanwhile.  The memory that the launches
  // use must be there whenever they run.  nullptr where the runtime cannot record: the launches
  // ran.  A launch waits for the one recorded before it, one by record() for those alone whose
  // numbers are in `after`; what neither waits for the other may run at once.
  virtual void begin_recording(int device) = 0;
  virtual void record(int device, const Program& program, Grid grid,
                      std::span<const uint64_t> arguments, std::span<const uint32_t> after) = 0;
  virtual std::unique_ptr<Recording> end_recording(int device) = 0;
  virtual void run(int device, const Recording& recording) = 0;
  // Gives launch number `launch` other arguments, from the next run on.  For one thread at a time.
  virtual void change(int device, Recording& recording, size_t launch,
                      std::span<const uint64_t> arguments) = 0;
};

}  // namespace fornax::runtime
