// The inner loops of products of f64, for each instruction set.
#include "backends/flex/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/flex/gemm_tiles_f64.cpp"
#include <hwy/foreach_target.h>  // after targets.h, which chooses them

#undef FORNAX_TILE_TYPE
#undef FORNAX_FILL
#define FORNAX_TILE_TYPE double
#define FORNAX_FILL fill_tiles_f64
#include "backends/flex/gemm_tiles.inl"

#if HWY_ONCE
namespace fornax::flex {
HWY_EXPORT(fill_tiles_f64);

template <>
const TileTable<double>& tile_table() {
  static const TileTable<double> table = [] {
    TileTable<double> filled{};
    HWY_DYNAMIC_DISPATCH(fill_tiles_f64)(filled);
    return filled;
  }();
  return table;
}

}  // namespace fornax::flex
#endif  // HWY_ONCE
