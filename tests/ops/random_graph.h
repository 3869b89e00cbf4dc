// Random graphs: a few hundred recorded ops drawn from the table by a seed, run the same way on any
// device, with values dropped, kept, looked at through views and flushed in between.
#pragma once
#include <fornax/tensor.h>

#include "graph/type.h"

namespace fornax::conformance {

enum class Numbers {
  exact,   // floats on a grid that ops rounded once keep: every backend gives the same bits
  smooth,  // functions whose slope is bounded, so that small differences stay small
  all,     // everything
};

struct Instruction {
  Op op;
  std::vector<int> inputs;  // earlier values
  Attributes attributes;
  bool keep = false;   // read at the end; others are dropped after their last use
  bool flush = false;  // run what is recorded before this one
};
struct RandomGraph {
  Numbers numbers;
  std::vector<Type> leaves;  // the first values
  std::vector<Instruction> instructions;
  std::vector<int> last_use;  // per value: the last instruction that reads it
};

RandomGraph random_graph(Numbers numbers, uint64_t seed, int instructions);

// Records all and returns the kept values; nothing is read.
std::vector<Tensor> run(const RandomGraph& graph, Device device);

}  // namespace fornax::conformance
