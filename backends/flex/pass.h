// A pass over a domain: pointwise steps, of whose values some are stored and some folded.
//
// The pointwise part is a Program whose first outputs are what is folded, in the types that the
// reductions compute in; values that lie in memory that way already are read where they lie.  All
// reductions of a pass are over the same axes.  Constant once made, any thread.
#pragma once
#include "backends/flex/kernels.h"
#include "backends/flex/program.h"
#include "backends/flex/reduce_walk.h"

namespace fornax::flex {

struct PassPlan {
  Graph graph;  // inputs first; its outputs are what is stored, then the reductions' operands
  std::vector<Layout> layouts;
  Shape domain;
  Attributes axes;
  std::vector<Op> reductions;  // their operands are of the dtypes that they compute in
};
// Its outputs: what is stored; then of each reduction the result, in the dtype that it computes in,
// and positions as i64.  Requires: a reduction that gives positions is the only one.
std::unique_ptr<Kernel> prepare_pass(PassPlan plan);

}  // namespace fornax::flex
