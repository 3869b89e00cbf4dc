#include "backends/flex/small.h"

#include "backends/flex/stages.h"

namespace fornax::flex {
namespace {

// Dtypes whose memory is lanes; narrower ones need rounding or wrapping after each op.
constexpr DType kDirect[] = {DType::f32, DType::f64, DType::i32,
                             DType::i64, DType::u32, DType::u64};

struct SmallTable {
  SmallLoop loops[kDTypeCount][256] = {};
  SmallTable() {
    for (DType dtype : kDirect) {
      for (int op = 0; op < op_count(); op++) {
        loops[size_t(dtype)][op] = op_stages(dtype, Op(op)).small;
      }
    }
  }
};

}  // namespace

bool run_small(Op op, DType dtype, int64_t count, void* result, const void* const* operands,
               const bool* single) {
  static const SmallTable table;
  const SmallLoop loop = table.loops[size_t(dtype)][size_t(op)];
  if (!loop) return false;
  loop(count, result, operands, single);
  return true;
}

}  // namespace fornax::flex
