// From the tile dialect to the simt dialect: every tile becomes the few elements of it that one
// thread holds, as the kernel's Distribution says.
//
// Elements that lie side by side in memory, which is proven from the index and the facts of the
// parameters, are loaded and stored as vectors.  What a block does once (a scalar's store, a store
// of a tile of extent 1) one thread does.  Reductions combine a thread's own elements pairwise,
// then lanes by shuffles, then warps through shared memory: the order is fixed, so results repeat
// bit for bit; `combine` must commute.
#pragma once
#include "kernel/ir.h"

namespace fornax::kernel {

// Requires: a verified tile kernel; thread counts and `warp` are powers of two.
Kernel lower(const Kernel& kernel, int warp = 32);

}  // namespace fornax::kernel
