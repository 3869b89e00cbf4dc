// How the reduce ops combine elements inside kernels: each in accumulators of its own, of which
// argmax and argmin have two, the element and where it is.
#pragma once
#include <vector>

#include "graph/graph.h"
#include "kernel/number.h"

namespace fornax::cube {

using kernel::Builder;
using kernel::Value;
using Accumulators = std::vector<Value>;

// The dtypes of the accumulators of `op` on elements of `dtype` giving `result`, positions in
// `index`.
std::vector<DType> accumulator_dtypes(Op op, DType dtype, DType result, DType index);
// What changes nothing when it is combined.
Accumulators identity(Builder& k, const Step& step, DType dtype, DType index);
// One element; `position` is where it is along the reduced axis.
Accumulators begin(Builder& k, const Step& step, Value element, Value position);
Accumulators combine(Op op, const Accumulators& a, const Accumulators& b);
Value finish(Builder& k, const Step& step, const Accumulators& all);

// What a reduction gathers in a loop.
class Gathered {
 public:
  Gathered(Op op, const Accumulators& first) : op_(op), all_(first.begin(), first.end()) {}
  void add(const Accumulators& more) {
    const Accumulators next = combine(op_, all(), more);
    for (size_t a = 0; a < next.size(); a++) all_[a] = next[a];
  }
  Accumulators all() const { return {all_.begin(), all_.end()}; }

 private:
  Op op_;
  std::vector<kernel::Variable> all_;
};

}  // namespace fornax::cube
