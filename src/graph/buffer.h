// Buffer: counted memory of one device.  Whoever holds the only reference may write to it;
// everybody else only reads.  Counting is safe from any thread.
#pragma once
#include <fornax/error.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ref.h"
#include "graph/op.h"

namespace fornax {

// Whether what a run has computed is right, where that is known only some time after its start
// (stream/doubt.h).
struct Fate {
  std::atomic<uint32_t> references{1};
  std::atomic<bool> settled{false};
  // Do not change once it is settled: the error of each of the run's values; empty: there is none.
  std::vector<std::shared_ptr<const Error>> failures;
};
inline void destroy(Fate* fate) { delete fate; }

struct Buffer {
  std::atomic<uint32_t> references{1};
  Op made_by = Op::leaf;  // see mark_made_by()
  bool counted = false;
  int device = 0;        // number of the physical device
  void* data = nullptr;  // on a CPU the memory itself, elsewhere the backend's own handle
  size_t bytes = 0;      // usable bytes
  void (*release)(Buffer*) = nullptr;  // gives the memory and this object back
  void* owner = nullptr;               // for release()
  Ref<Fate> fate;                      // of the run that wrote it; none: what it holds is right
  int value = 0;                       // its number in that run
};

// Notes whose result lies in the buffer, for live_bytes(): when it is allocated or passed on.
// Buffers below kCountedBytes are not counted: they come and go too fast, and weigh nothing.
inline constexpr size_t kCountedBytes = 4096;
void mark_made_by(Buffer& buffer, Op op);
void destroy(Buffer* buffer);
// Bytes of living buffers of a device by the op that made them, indexed by op.
std::array<int64_t, 256> live_bytes(int device);

}  // namespace fornax
