// The ops of lanes of float.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/stages_f32.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_LANE
#undef FORNAX_TABLE
#define FORNAX_LANE float
#define FORNAX_TABLE table_f32
#include "backends/flex/ops.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(table_f32);
const OpStages* stages_f32() { return HWY_DYNAMIC_DISPATCH(table_f32)(); }
}  // namespace fornax::flex
#endif
