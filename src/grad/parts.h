// Gradients that come in parts: where slices of a value were read, each knows that of its slice
// alone.  Put together they are one copy of all parts; a whole gradient for each would be a value
// of zeros around its part, and a sum.
//
// Pure functions.
#pragma once
#include <vector>

#include "tensor/record.h"

namespace fornax {

// The gradient from `start` on along `axis`, 0 elsewhere; along other axes it is whole.
struct Part {
  int axis = 0;
  int64_t start = 0;
  Tensor gradient;
};

// The gradient of a value of `shape`.  Requires: there are parts.
Tensor joined(std::vector<Part> parts, const Shape& shape);

// A part of the gradient of a permute's result as one of its operand's.
Part before_permute(const Part& part, const Attributes& order);

}  // namespace fornax
