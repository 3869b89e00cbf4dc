// The backward pass.
#pragma once
#include <fornax/grad.h>

#include "grad/rules.h"

namespace fornax {

struct Root {
  Ref<Tape> tape;
  Tensor gradient;
};

struct PassOptions {
  bool accumulate = true;     // add to the gradients of leaves and of retained values
  bool create_graph = false;  // track what the pass computes
  bool retain_graph = false;
  bool only_wanted = false;       // walk only paths that lead to a wanted tape
  std::vector<Ref<Tape>> wanted;  // whose gradients are returned
  std::vector<Ref<Tape>> stops;   // where the walk ends
};

// Walks from the roots to the leaves and returns the gradients of options.wanted, undefined where
// the roots do not depend on one.  Error(value): a part of the graph is spent.
// One pass at a time runs in the process; a pass may start another one on its own thread.
std::vector<Tensor> run_backward(std::vector<Root> roots, PassOptions options);

// Continues the pass under way on this thread into a graph made during it, ends at `stops` and
// returns their gradients; hooks of stops and their own grad() are left to the outer pass.
// Requires: called from within a custom gradient.
std::vector<Tensor> continue_backward(std::vector<Root> roots, std::vector<Ref<Tape>> stops);

}  // namespace fornax
