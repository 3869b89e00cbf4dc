// The ops of lanes of uint64_t.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/stages_u64.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_LANE
#undef FORNAX_TABLE
#define FORNAX_LANE uint64_t
#define FORNAX_TABLE table_u64
#include "backends/flex/ops.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(table_u64);
const OpStages* stages_u64() { return HWY_DYNAMIC_DISPATCH(table_u64)(); }
}  // namespace fornax::flex
#endif
