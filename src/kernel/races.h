// The shadow of memory in which the interpreter finds races: for every element, who touched it
// since the last barrier.  Serves one launch, on one thread.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "kernel/ir.h"

namespace fornax::kernel {

enum class Touch : uint8_t { read, write, atomic };

class Races {
 public:
  struct Element {
    uint32_t epoch = 0;           // when the rest was said; older means nothing
    uint32_t store = 0;           // number of the store that wrote it last
    int32_t warps[2] = {-1, -1};  // two different ones that touched it
    InstructionId at[2] = {-1, -1};
    int32_t writer = -1;  // a warp that wrote it plainly
    InstructionId written_at = -1;
  };
  // A run of elements; several memories may share their bytes.
  struct Memory {
    std::vector<Element>* elements = nullptr;
    int64_t first_byte = 0, granule = 1;
  };

  // The shadow of `bytes` at `begin`, one element for each `granule` bytes.
  Memory watch(const void* begin, int64_t bytes, int64_t granule);

  // All that was touched before is forgotten: a barrier, or another block.
  void next_epoch() { epoch_++; }
  void next_store() { store_++; }

  // Whether the access races; then `other` is the instruction that it races with.
  bool touch(const Memory& memory, int64_t byte, int32_t warp, InstructionId at, Touch how,
             InstructionId& other);
  // Whether this store has written the element before.
  bool stored_twice(const Memory& memory, int64_t byte);

 private:
  Element& element(const Memory& memory, int64_t byte);

  std::map<const void*, std::pair<int64_t, std::vector<Element>>> shadows_;  // granule, elements
  uint32_t epoch_ = 1, store_ = 0;
};

}  // namespace fornax::kernel
