// The ops of lanes of uint32_t.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/stages_u32.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_LANE
#undef FORNAX_TABLE
#define FORNAX_LANE uint32_t
#define FORNAX_TABLE table_u32
#include "backends/flex/ops.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(table_u32);
const OpStages* stages_u32() { return HWY_DYNAMIC_DISPATCH(table_u32)(); }
}  // namespace fornax::flex
#endif
