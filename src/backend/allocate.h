// Memory of the physical devices, and which ops' results hold it.  Safe from any thread.
#pragma once
#include <fornax/device.h>

#include <vector>

#include "backend/backend.h"

namespace fornax {

// Memory for `bytes` bytes (0 is taken as 1) on the physical device of that number, uninitialised.
// Error(out_of_memory): what the backend says, and which ops' results hold most.
Ref<Buffer> allocate(int device, size_t bytes);

// Bytes of living results by op, largest first.
std::vector<MemoryReport::Share> memory_by_op(int device);

}  // namespace fornax
