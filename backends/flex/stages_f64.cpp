// The ops of lanes of double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/stages_f64.cpp"
#include "backends/flex/targets.h"

#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_LANE
#undef FORNAX_TABLE
#define FORNAX_LANE double
#define FORNAX_TABLE table_f64
#include "backends/flex/ops.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(table_f64);
const OpStages* stages_f64() { return HWY_DYNAMIC_DISPATCH(table_f64)(); }
}  // namespace fornax::flex
#endif
