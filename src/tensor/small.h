// Small ops on ready operands run at once: that is cheaper than recording them.
#pragma once
#include <span>

#include "graph/node.h"

namespace fornax {

// Makes `result` ready if its op is pointwise, its operands are ready or numbers, there are at most
// kSmallElements elements, and the backend has a kernel.  False: record it.
bool run_small(Node& result, std::span<Node* const> inputs);

}  // namespace fornax
