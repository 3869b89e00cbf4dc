// What follows an anchor in its group: pointwise steps on its result, done where the anchor's
// kernel holds it in tiles, before anything is stored.  Without such steps there still is the
// result to be stored, so that those kernels know one way of it.
//
// Plain values.  Positions are axes before the last two, which are those of the tiles.
#pragma once
#include <string>
#include <vector>

#include "backends/cube/operand.h"

namespace fornax::cube {

struct EpilogueClass {
  std::vector<Step> steps;  // of the group's graph: op, dtype and inputs alone
  int inputs = 0, anchor = 0;
  std::vector<int> read_steps, write_steps;
  std::vector<ViewClass> views;  // reads, then writes
  int deposited = -1;            // of the writes, what the copy engine stores

  bool reads_nothing() const { return read_steps.empty(); }
  std::string key() const;
};

// The launch's side.
struct Epilogue {
  struct Operand {
    Place place;
    int step = 0;     // of the graph: the input that is read, or the step whose value is stored
    Strides strides;  // over the anchor's result
    bool aliased = false;
  };
  explicit Epilogue(const Group& group);

  // As vectors of `lanes` elements along the last axis, where operands lie so.
  EpilogueClass described(const std::vector<int64_t>& extents, int lanes) const;
  void pass(Arguments& arguments, const EpilogueClass& known, const std::vector<int64_t>& extents,
            DType index) const;
  // What must begin at a multiple of the lanes that `known` was described for.
  std::vector<VectorGroup::Operand> aligned(const EpilogueClass& known) const;
  std::vector<Span> spans(const std::vector<int64_t>& extents) const;
  DType dtype_of(const Operand& operand) const;

  Graph graph;
  int inputs = 0, anchor = 0;
  std::vector<Operand> operands;  // reads, then writes
  size_t reads = 0;
};

// The kernel's side: what pass() gives.
std::vector<View> declare_epilogue(Builder& k, const EpilogueClass& known, DType index);
// A tile's place in the anchor's result.
struct TilePlace {
  Position position;                // the last two are iotas
  Value row_inside, column_inside;  // none: all are
};
// Runs the steps on the tile `result` and stores what is to be stored, except for what is
// deposited: that is returned.
Value run_epilogue(Builder& k, const EpilogueClass& known, const std::vector<View>& views,
                   Value result, const TilePlace& place);

}  // namespace fornax::cube
