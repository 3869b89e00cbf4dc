// What x(...) and x.at(...) have in common: the indexes, resolved against a tensor.
//
// Indexing runs in two parts.  The basic part is slices, positions, new axes and the ellipsis: a
// slice of x and a reshape.  The advanced part replaces axes of that result by integer tensors; a
// mask is turned into the flat positions of its true elements, over all the axes that it covers.
#pragma once
#include <span>
#include <vector>

#include "tensor/record.h"

namespace fornax {

// One integer tensor in place of `axes` axes of the basic result, from `axis` on.
struct AdvancedIndex {
  Tensor index;
  int axis = 0, axes = 1;
  bool in_range = false;  // known to be, as a mask's positions are
};

struct ParsedIndex {
  Attributes slices;  // start, count, step per axis of x
  Shape region;       // shape of x under `slices`
  Shape basic;        // the region without positions' axes, with new axes
  std::vector<AdvancedIndex> advanced;
  bool separated = false;  // advanced indexes with others in between: their axes come first

  bool whole(const Shape& shape) const { return region == shape && ascending(); }
  bool ascending() const;  // every step is 1
};

// Reads masks, so it may wait.  Error(index): a position outside its axis, too many indexes, a mask
// of other sizes than the axes it covers.
ParsedIndex parse(const Tensor& x, std::span<const Index> items);

// The basic result with the advanced axes next to each other and merged into one.
struct MergedAxes {
  Attributes order;  // the permutation that brings them together; empty where none is needed
  Shape permuted;    // shape after it
  Shape merged;      // shape with the advanced axes as one
  int axis = 0;      // where that one is
  Tensor positions;  // i64 along the merged axis, of the indexes' broadcast shape
  Shape result;      // merged, with the shape of `positions` in place of the axis
};
MergedAxes merge(const ParsedIndex& parsed);

// x with `index` in place of `axis`: its elements in the index's shape.
Tensor take_along(const Tensor& x, const Tensor& index, int axis);

// Flat positions of the true elements of a bool tensor: i64[count].  Waits for the values.
Tensor true_positions(const Tensor& mask);

}  // namespace fornax
