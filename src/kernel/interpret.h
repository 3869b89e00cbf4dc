// The reference interpreter: what a kernel means, for both dialects.
//
// A simt kernel runs warp by warp: 32 threads in lock step, each instruction once for those whose
// mask bit is set.  The warps of a block take turns, from barrier to barrier.  A tile kernel runs
// as one thread, whose tiles are arrays.  Blocks run one after the other.
//
// Exact where a device may choose: f32 arithmetic is that of IEEE 754, functions of f32 are those
// of double, rounded once; whole numbers over 0 give 0; `reduce`, `scan` and `mma` go from the
// first element to the last; of two zeros min takes -0 and max +0; a shuffle's lane counts modulo
// 32.  Shared memory begins as bytes 0xab.
//
// Error(internal), naming the instruction: an access beyond its memory's end, a vector that is not
// aligned to its size, a barrier or shuffle that not all threads reach, a loop whose step is not
// above 0 or whose counter leaves its dtype, a fact that a launch does not keep, and what belongs
// to one target and has no meaning here: `raw`, and the copy engine and matrix units of compute 90.
#pragma once
#include <fornax/function.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/ir.h"

namespace fornax::kernel {

// A piece of memory; 0 bytes: none.
struct MemoryExtent {
  const void* begin = nullptr;
  int64_t bytes = 0;
};

struct Launch {
  std::array<int, 3> grid = {1, 1, 1};
  // Those of kernel/check.h, the element in the low bytes of each word: addresses are pointers, the
  // status' too, and a number of dtype f32 is its 32 bits.
  std::vector<uint64_t> arguments;
  // What the address of a buffer lies in.
  Function<MemoryExtent(const void*)> memory;
  bool checked = false;  // accesses beyond a buffer's count go to the status, as on a device
  // Error(internal) where two warps of a simt kernel touch an element between the same barriers and
  // one of them writes it other than by an atomic, or the lanes of one store write it differently.
  bool races = true;
  std::string* log = nullptr;  // takes what `print` writes, one line each
};

struct Program;

// A kernel made ready: its instructions in a row, with jumps.  Immutable, safe from any thread.
class Interpreted {
 public:
  explicit Interpreted(Kernel kernel);
  void run(const Launch& launch) const;
  const Kernel& kernel() const;

 private:
  std::shared_ptr<const Program> program_;
};

inline void interpret(const Kernel& kernel, const Launch& launch) {
  Interpreted(kernel).run(launch);
}

}  // namespace fornax::kernel
