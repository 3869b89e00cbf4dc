// The ops of lanes of int32_t.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/stages_i32.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_LANE
#undef FORNAX_TABLE
#define FORNAX_LANE int32_t
#define FORNAX_TABLE table_i32
#include "backends/flex/ops.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(table_i32);
const OpStages* stages_i32() { return HWY_DYNAMIC_DISPATCH(table_i32)(); }
}  // namespace fornax::flex
#endif
