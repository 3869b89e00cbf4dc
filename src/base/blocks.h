// Small blocks of memory from thread-local free lists: nodes and small buffers come and go by the
// million, and malloc costs several times as much.  A block may be freed on any thread.
#pragma once
#include <cstddef>

namespace fornax {

inline constexpr size_t kLargestBlock = 2048;  // bytes; larger requests go to operator new
// 64-byte aligned.
void* allocate_block(size_t bytes);
void free_block(void* block, size_t bytes);  // nothing, where there is no block

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
