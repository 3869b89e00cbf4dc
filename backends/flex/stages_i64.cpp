// The ops of lanes of int64_t.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/stages_i64.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_LANE
#undef FORNAX_TABLE
#define FORNAX_LANE int64_t
#define FORNAX_TABLE table_i64
#include "backends/flex/ops.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(table_i64);
const OpStages* stages_i64() { return HWY_DYNAMIC_DISPATCH(table_i64)(); }
}  // namespace fornax::flex
#endif
