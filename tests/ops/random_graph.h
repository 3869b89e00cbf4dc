// Random graphs: a few hundred recorded ops drawn from the table by a seed, run the same way on any
// device, with values dropped, kept, looked at through views and flushed in between.
#pragma once
#include <fornax/tensor.h>

#include <optional>

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
  bool wide = false;         // f64 and i64 as well as f32, i32 and bool
  std::vector<Type> leaves;  // the first values
  std::vector<Instruction> instructions;
  std::vector<int> last_use;  // per value: the last instruction that reads it
};

// What smooth graphs, whose floats lie from 0 to 1, bring operand `operand` of `op` to, where the
// function is steep or undefined elsewhere.
struct Domain {
  double low, high;
};
std::optional<Domain> domain_of(Op op, int operand);
inline constexpr double kSteepest = 4;  // slope of smooth functions, per operand

// The dtype of a graph that stands for a result's.
DType kept_dtype(DType dtype, bool wide);

RandomGraph random_graph(Numbers numbers, uint64_t seed, int instructions);

// Records all and returns the kept values; nothing is read.
std::vector<Tensor> run(const RandomGraph& graph, Device device);

}  // namespace fornax::conformance
