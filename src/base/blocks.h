// Small blocks of memory from thread-local free lists: nodes and small buffers come and go by the
// million, and malloc costs several times as much.  A block may be freed on any thread.
#pragma once
#include <cstddef>

#include "base/sanitizer.h"

namespace fornax {

inline constexpr size_t kLargestBlock = 2048;  // bytes; larger requests go to operator new
inline constexpr size_t kBlockStep = 64;       // blocks have multiples of this
// The sanitizers are let see every block.
inline constexpr bool kPooledBlocks = !kAddressSanitizer && !kThreadSanitizer;

// A thread's free blocks of one size.
struct FreeBlocks {
  void* first = nullptr;  // starts with the address of the next one
  int room = 0;           // how many more may be kept before some go to the other threads
};
// By size in steps.  Freed by no destructor, so that access takes no initialisation.
extern constinit thread_local FreeBlocks free_blocks[kLargestBlock / kBlockStep + 1];

// What the functions below do where they cannot do it at once.
void* allocate_block_slowly(size_t bytes);
void free_block_slowly(void* block, size_t bytes);

// 64-byte aligned.
inline void* allocate_block(size_t bytes) {
  if (!kPooledBlocks || bytes > kLargestBlock) return allocate_block_slowly(bytes);
  FreeBlocks& list = free_blocks[(bytes + kBlockStep - 1) / kBlockStep];
  void* block = list.first;
  if (!block) [[unlikely]]
    return allocate_block_slowly(bytes);
  list.first = *static_cast<void**>(block);
  list.room++;
  return block;
}

// Nothing, where there is no block.
inline void free_block(void* block, size_t bytes) {
  if (!block) return;
  if (!kPooledBlocks || bytes > kLargestBlock) return free_block_slowly(block, bytes);
  FreeBlocks& list = free_blocks[(bytes + kBlockStep - 1) / kBlockStep];
  if (list.room == 0) [[unlikely]]
    return free_block_slowly(block, bytes);
  *static_cast<void**>(block) = list.first;
  list.first = block;
  list.room--;
}

// Takes the memory of short-lived containers from there.
template <class T>
struct BlockAllocator {
  using value_type = T;
  BlockAllocator() = default;
  template <class U>
  BlockAllocator(const BlockAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(allocate_block(count * sizeof(T))); }
  void deallocate(T* block, size_t count) { free_block(block, count * sizeof(T)); }
  bool operator==(const BlockAllocator&) const { return true; }
};

}  // namespace fornax
