// Small blocks of memory from thread-local free lists: nodes and small buffers come and go by the
// million, and malloc costs several times as much.  A block may be freed on any thread.
#pragma once
#include <cstddef>

namespace fornax {

inline constexpr size_t kLargestBlock = 2048;  // bytes; larger requests go to operator new
// 64-byte aligned.
void* allocate_block(size_t bytes);
void free_block(void* block, size_t bytes);

}  // namespace fornax
