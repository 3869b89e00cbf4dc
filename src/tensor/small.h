// Small ops on ready operands run at once: that is cheaper than recording them.
#pragma once
#include <fornax/tensor.h>

#include <span>

#include "backend/small.h"
#include "graph/node.h"

namespace fornax {

// The result of a pointwise op, ready, where that takes nothing but its loop: tensors, the first of
// them `first`, that are ready, untracked, contiguous and of one dtype and shape, or numbers that
// adopt that dtype; at most kSmallElements elements; a backend with a loop for it.  None: record
// it.
Ref<Node> small_result(Op op, std::span<const Operand* const> operands, const Node& first);

// The number of elements if there are some and they are few, else 0.
inline int64_t small_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size > kSmallElements) return 0;
    count *= size;
    if (count > kSmallElements) return 0;
  }
  return count;
}

// Makes `result` ready if its op is pointwise, its operands are ready or numbers, there are at most
// kSmallElements elements, and the backend has a kernel.  False: record it.
bool run_small(Node& result, std::span<Node* const> inputs);

}  // namespace fornax
