// Pointwise ops on a few contiguous elements, without a group.
#pragma once
#include "backend/backend.h"

namespace fornax::flex {

// A SmallKernel (backend.h).  `dtype` is the operands', of where that of its last two.  The results
// are bit for bit those of a group.
bool run_small(Op op, DType dtype, int64_t count, void* result, const void* const* operands,
               const bool* single);

}  // namespace fornax::flex
