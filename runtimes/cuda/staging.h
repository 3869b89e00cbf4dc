// Copies between the device and memory of the program, through pinned memory that the device can
// reach by itself: a write is over for the caller when its bytes are there, and pieces of large
// copies overlap.
//
// Thread-safety: every function may be called from several threads at once.  The caller has entered
// the GPU.
#pragma once
#include <array>
#include <mutex>

#include "runtimes/cuda/gpu.h"

namespace fornax::cuda {

class Staging {
 public:
  explicit Staging(Gpu& gpu) : gpu_(gpu) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void write(Address to, const void* from, size_t bytes);
  void read(void* to, Address from, size_t bytes);

 private:
  struct Slot {
    char* memory = nullptr;
    Event done = nullptr;
    bool pending = false;  // `done` is recorded and nobody has waited for it
  };
  void prepare(Slot& slot);
  void record(Slot& slot);
  void await(Slot& slot);
  void free(Slot& slot) noexcept;

  Gpu& gpu_;
  std::mutex writing_;  // of the next three
  std::array<Slot, 4> writes_;
  size_t slot_ = 0;     // that is being filled
  size_t used_ = 0;     // of it, in bytes
  std::mutex reading_;  // of the next
  std::array<Slot, 2> reads_;
};

}  // namespace fornax::cuda
