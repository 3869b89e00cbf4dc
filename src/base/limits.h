// What the system grants this process: processors and memory, by the machine, the CPU set and the
// control groups (version 2).  Found once, at the first question; safe from any thread.
#pragma once
#include <cstddef>

namespace fornax {

// Threads that may run at once, at least 1.
int granted_threads();
// Bytes of memory that the process may use, swap left out.
size_t granted_memory();

}  // namespace fornax
