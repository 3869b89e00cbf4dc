// Indices that come as data: gather and scatter.
#pragma once
#include "backends/cube/frame.h"

namespace fornax::cube {

// The error that the op throws for an index of dtype `index` along `axis` of `indexed`.
Complaint index_complaint(Op op, DType index, int axis, const Type& indexed);

// `index` as i64; the launch fails unless 0 <= index < size (i64), which `inside` says: the kernel
// must not follow it elsewhere.
Value checked_index(Builder& k, Value index, Value size, Value& inside, Site site = Site::here());

}  // namespace fornax::cube
