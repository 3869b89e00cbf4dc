// The type rule of each op that moves data.  Each throws Error with the broken rule and the
// numbers.
#pragma once
#include "graph/type.h"

namespace fornax {

#define OPX(name, ...) Type type_##name(const Signature& signature);
#include <fornax/ops.def>

// The dtype that sums and products of `dtype` have: i64 or u64 for narrower integers and bool.
DType widened(DType dtype);

}  // namespace fornax
