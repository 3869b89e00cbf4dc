// fold: windows added back to where they were taken from.
//
// Each position of the axes without windows is summed alone, in the row-major order of its windows,
// in a type that rounds once per sum for halves; positions are spread over the threads.
#include <algorithm>

#include "backends/flex/gemm_pack.h"
#include "backends/flex/index.h"
#include "backends/flex/pool.h"

namespace fornax::flex {
namespace {

// Where things lie: outer axes carry no window; inner axes are window positions and places in them.
struct FoldSizes {
  Shape outer, inner, extents;
  int64_t outer_from[kMaxRank] = {}, outer_to[kMaxRank] = {};
  int64_t inner_from[kMaxRank] = {}, inner_to[kMaxRank] = {};  // _to within a row-major sum
  int64_t extent_to[kMaxRank] = {};
};

FoldSizes fold_sizes(const AnchorPlan& plan) {
  const AnchorPlan::Input& x = plan.inputs[0];
  const Shape& result = plan.result.shape;
  const int rank = result.rank(), windows = window_count(plan.attributes);
  const Layout layout = row_major(result);
  FoldSizes sizes;
  const auto window_on = [&](int axis) {
    for (int i = 0; i < windows; i++) {
      if (window_of(plan.attributes, i).axis == axis) return i;
    }
    return -1;
  };
  for (int axis = 0; axis < rank; axis++) {
    const bool inner = window_on(axis) >= 0;
    Shape& shape = inner ? sizes.extents : sizes.outer;
    if (!inner) sizes.outer_from[shape.rank()] = x.layout.strides[axis];
    (inner ? sizes.extent_to : sizes.outer_to)[shape.rank()] = layout.strides[axis];
    shape.push_back(result[axis]);
  }
  const Layout sums = row_major(sizes.extents);
  for (int part = 0; part < 2; part++) {  // positions first, then places
    int among = 0;
    for (int axis = 0; axis < rank; axis++) {
      const int i = window_on(axis);
      if (i < 0) continue;
      const WindowAxis w = window_of(plan.attributes, i);
      const int source = part == 0 ? axis : rank + i, n = sizes.inner.rank();
      sizes.inner_from[n] = x.layout.strides[source];
      sizes.inner_to[n] = sums.strides[among++] * (part == 0 ? w.step : w.dilation);
      sizes.inner.push_back(x.type.shape[source]);
    }
  }
  return sizes;
}

template <class T, class Sum>
void fold_some(const FoldSizes& sizes, const T* from, T* to, int64_t begin, int64_t end) {
  const int64_t count = sizes.extents.element_count(), windows = sizes.inner.element_count();
  Workspace memory(size_t(count) * sizeof(Sum));
  Sum* sums = memory.as<Sum>();
  StridedWalk<2> outer(sizes.outer, {sizes.outer_from, sizes.outer_to});
  StridedWalk<2> inner(sizes.inner, {sizes.inner_from, sizes.inner_to});
  StridedWalk<1> extent(sizes.extents, {sizes.extent_to});
  outer.seek(begin);
  for (int64_t i = begin; i < end; i++, outer.next()) {
    std::fill_n(sums, count, Sum(0));
    if (windows > 0) inner.seek(0);
    for (int64_t j = 0; j < windows; j++, inner.next()) {
      sums[inner.offsets[1]] += widen<Sum>(from[outer.offsets[0] + inner.offsets[0]]);
    }
    extent.seek(0);
    for (int64_t j = 0; j < count; j++, extent.next()) {
      to[outer.offsets[1] + extent.offsets[0]] = narrow<T>(sums[j]);
    }
  }
}

// Wide enough for wrapping integers; halves are summed as f32.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double,
                                 std::conditional_t<std::is_integral_v<T>, uint64_t, float>>;

struct Fold : Kernel {
  explicit Fold(AnchorPlan p) : plan(std::move(p)), sizes(fold_sizes(plan)) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (plan.result.shape.element_count() == 0) return;
    const InputView x(plan, 0, inputs);
    with_type(plan.result.dtype, [&](auto type) {
      using T = decltype(type);
      parallel(sizes.outer.element_count(), 20000 / (sizes.inner.element_count() + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 fold_some<T, SumOf<T>>(sizes, x.as<T>(), data_of<T>(outputs[0]), begin, end);
               });
    });
  }

  AnchorPlan plan;
  FoldSizes sizes;
};

}  // namespace

std::unique_ptr<Kernel> prepare_fold(AnchorPlan plan) {
  return std::make_unique<Fold>(std::move(plan));
}

}  // namespace fornax::flex
