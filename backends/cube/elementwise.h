// Elementwise work: every position of a domain on its own.  Groups without anchor are this, and so
// are copies between layouts, of which other ops are made.
#pragma once
#include <memory>
#include <vector>

#include "backends/cube/launch.h"
#include "backends/cube/shape_class.h"
#include "graph/graph.h"

namespace fornax::cube {

// Something in memory that the work reads or writes.
struct ElementwiseOperand {
  Place place;
  int step = 0;  // of the graph: the leaf that it is, or the step whose value it takes
  int64_t first = 0;
  Strides strides;  // over the domain
  bool aliased = false;
};

struct Elementwise {
  std::string name;  // of the kernel, an identifier
  Graph graph;       // the first steps are leaves and numbers, the rest works by element
  int inputs = 0;
  Shape domain;
  std::vector<ElementwiseOperand> reads;   // the leaves, in order
  std::vector<ElementwiseOperand> writes;  // may be the same memory as a read of the same elements
};
std::unique_ptr<PreparedGroup> prepare_elementwise(Device& device, Elementwise work);

// `x` of `dtype`, walked with `from` over `domain`, brought to where `to` walks.
std::unique_ptr<PreparedGroup> prepare_copy(Device& device, DType dtype, const Shape& domain,
                                            Place x, int64_t from_first, Strides from, Place y,
                                            int64_t to_first, Strides to);

}  // namespace fornax::cube
