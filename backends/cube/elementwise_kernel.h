// Elementwise work as one kernel, and all that its text follows from.
#pragma once
#include <string>
#include <vector>

#include "backends/cube/operand.h"
#include "graph/graph.h"

namespace fornax::cube {

// How an operand is reached:
//   flat     it lies as the domain is counted: one vector access
//   single   one element for all positions
//   vector   by its position, one vector access, because its rows are whole vectors too
//   strided  by its position, element by element
//   staged   by its position, through shared memory, along the axis where it lies closely
enum class Access : uint8_t { flat, single, vector, strided, staged };

struct ElementwiseClass {
  std::string name;
  std::vector<Step> steps;  // op, dtype and inputs alone; first come the operands that are read
  int inputs = 0;
  std::vector<int> read_steps, write_steps;
  Vectors vectors;
  bool rows = true;  // each row is a whole number of vectors
  int rank = 1;
  std::vector<ViewClass> views;  // reads, then writes
  std::vector<Access> accesses;
  int across = -1;  // not -1: blocks compute squares of this axis and the innermost one

  std::string key() const;
};

inline constexpr int kElementwiseThreads = 256;
inline constexpr int kSquare = 32;  // positions along each side

// The parameters: the views, the nest's extents, then those of pass_vectors(); of squares instead
// the extents of the grid: the nest's, those of the two axes counted in squares.
kernel::Kernel build_elementwise(const ElementwiseClass& known);

}  // namespace fornax::cube
