// The process's only compute threads.
//
// parallel() may be called from any thread and from inside a body (then it runs on the caller
// alone). The caller takes chunks too and never waits for a sleeping worker to wake.  An exception
// from a body reaches the caller after all chunks have ended.
#pragma once
#include <fornax/function.h>

#include <cstdint>

namespace fornax::flex {

// Threads that compute, the caller included: FORNAX_THREADS, else what CPU set and cgroup allow.
int thread_count();

// Runs body(begin, end) over [0, count) in chunks of at least `grain` items; on the caller alone
// where count <= grain.  A grain should be some 20 us of work.
void parallel(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace fornax::flex
