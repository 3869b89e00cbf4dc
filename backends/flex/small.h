// Pointwise ops on a few contiguous elements, without a group.
#pragma once
#include "backend/backend.h"

namespace fornax::flex {

const SmallLoops& small_loops();

}  // namespace fornax::flex
