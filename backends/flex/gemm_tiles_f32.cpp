// The inner loops of products of f32, for each instruction set.
#include "backends/flex/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/gemm_tiles_f32.cpp"
#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_TILE_TYPE
#undef FORNAX_FILL
#define FORNAX_TILE_TYPE float
#define FORNAX_FILL fill_tiles_f32
#include "backends/flex/gemm_tiles.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(fill_tiles_f32);

template <>
const TileTable<float>& tile_table() {
  static const TileTable<float> table = [] {
    TileTable<float> filled{};
    HWY_DYNAMIC_DISPATCH(fill_tiles_f32)(filled);
    return filled;
  }();
  return table;
}

}  // namespace fornax::flex
#endif  // HWY_ONCE
