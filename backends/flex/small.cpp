#include "backends/flex/small.h"

#include "backends/flex/stages.h"

namespace fornax::flex {
namespace {

// Dtypes whose memory is lanes; narrower ones need rounding or wrapping after each op.
constexpr DType kDirect[] = {DType::f32, DType::f64, DType::i32,
                             DType::i64, DType::u32, DType::u64};

SmallLoops make_loops() {
  SmallLoops loops{};
  for (DType dtype : kDirect) {
    for (int op = 0; op < op_count(); op++) {
      loops[size_t(dtype)][size_t(op)] = op_stages(dtype, Op(op)).small;
    }
  }
  return loops;
}

}  // namespace

const SmallLoops& small_loops() {
  static const SmallLoops loops = make_loops();
  return loops;
}

}  // namespace fornax::flex
