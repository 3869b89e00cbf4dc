// Flex's memory: a caching allocator.  Freed blocks are kept by size class, because a fresh block
// costs ten times its first write in page faults.  Safe from any thread.
#pragma once
#include "backend/backend.h"

namespace fornax::flex {

Ref<Buffer> allocate_buffer(int device, size_t bytes);
MemoryUse memory_use();
// Gives the free blocks back to the system.
void trim_memory();

// The size that a request of `bytes` gets: up to 12.5 % more.
size_t size_class(size_t bytes);

}  // namespace fornax::flex
