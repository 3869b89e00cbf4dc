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
  Graph graph;       // the first steps are leaves and numbers (full), the rest works by element
  int inputs = 0;
  Shape domain;
  std::vector<ElementwiseOperand> reads;   // the leaves and numbers
  std::vector<ElementwiseOperand> writes;  // may be the same memory as a read of the same elements
};
std::unique_ptr<PreparedGroup> prepare_elementwise(Device& device, Elementwise work);
// The work of a group without anchor.
Elementwise elementwise_of(const Group& group);

// One side of a copy: position 0 of the domain is element `first`.
struct CopySide {
  Place place;
  int64_t first = 0;
  Strides strides;      // over the domain
  bool number = false;  // an input of op full
};
std::unique_ptr<PreparedGroup> prepare_copy(Device& device, const CopySide& from,
                                            const CopySide& to, DType dtype, const Shape& domain);
std::unique_ptr<PreparedGroup> prepare_cast(Device& device, const CopySide& from, DType from_dtype,
                                            const CopySide& to, DType to_dtype,
                                            const Shape& domain);

}  // namespace fornax::cube
