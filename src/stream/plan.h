// Plans: how a segment of recorded nodes is computed, cached by the segment's structure.
//
// Values are numbered: the segment's leaves first (ready and constant operands), then the results
// that are put in memory.  A plan holds no data and may run on several threads at once; only what
// makes a repeated run cheaper is for one thread at a time.
#pragma once
#include <fornax/error.h>
#include <fornax/function.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace fornax {

// A segment in the form that plans are made from: numbers only, no data.
struct SegmentLeaf {
  Type type;
  Layout layout;          // offset 0: where it begins is an argument
  bool constant = false;  // a number, given as an argument
  bool dies = false;      // nobody else holds its memory: that may be written
  int memory = -1;        // where only leaves hold it: a number for all of them
};
struct SegmentNode {
  Op op;
  Type type;
  Attributes attributes;
  std::vector<int> inputs;  // value < leaves: a leaf; else node number + leaves
  bool outlives = false;    // somebody can read it after the segment has run
};
struct Segment {
  std::vector<SegmentLeaf> leaves;
  std::vector<SegmentNode> nodes;

  // Of a value as SegmentNode::inputs names it.
  const Type& type_of(int value) const {
    const size_t number = size_t(value);
    return number < leaves.size() ? leaves[number].type : nodes[number - leaves.size()].type;
  }
};

struct PlanOutput {
  int value;
  Type type;           // of the value
  Op op;               // whose result it is
  int donor = -1;      // position of the input whose memory it takes over, -1: fresh memory
  int64_t place = -1;  // fresh memory: where in the arena, in elements; -1: a buffer of its own
  // Whether it is a part of the value, which other steps may have begun, or lies in another order.
  bool placed = false;
  int64_t offset = 0;  // of the part, in elements
};
struct PlanStep {
  std::unique_ptr<Prepared> prepared;
  std::shared_ptr<const Error> failure;  // why the backend could not prepare it
  std::vector<int> inputs;               // values
  std::vector<int64_t> input_offsets;    // relative to where each value begins, in elements
  std::vector<PlanOutput> outputs;
  std::vector<int> last_uses;  // values that no later step reads and nobody keeps
  int node;                    // the segment node that errors are told about
  std::string ops;             // "mul add exp"
  size_t bytes = 0;            // read and written
};
struct PlanResult {
  int node;  // of the segment
  int value;
  Layout layout;  // relative to where the value begins
};
// What is kept from run to run.
struct Repeats {
  std::atomic<int> runs{0};
  std::mutex mutex;  // of what follows
  std::unique_ptr<Batch> batch;
};
struct Plan {
  int values = 0;
  int leaves = 0;
  size_t arena_bytes = 0;     // one buffer for results that do not outlive a run; 0: there is none
  bool keeps_memory = false;  // a run may hold all of its memory until its end
  bool complete = true;       // every step is prepared
  std::vector<PlanStep> steps;
  std::vector<PlanResult> results;
  std::unique_ptr<Repeats> repeats = std::make_unique<Repeats>();
};

// Greedy fusion: stream/planner.cpp says how.
Plan make_plan(const Segment& segment, Backend& backend, int ordinal);

// Gives the results that do not outlive a run their places in an arena, unless buffers of their own
// would need much less memory at the worst moment.
void plan_arena(const Segment& segment, Plan& plan);

// A segment as words, equal for equal segments alone: for looking its plan up.
using SegmentKey = std::vector<uint64_t>;
// The plan for `key`, from the device's cache, or made of `segment` now; kept if it is complete.
std::shared_ptr<const Plan> plan_for(const SegmentKey& key, FunctionRef<Segment()> segment,
                                     int device);
size_t cached_plan_count(int device);

}  // namespace fornax
