// One flush of a stream after the other: from pending nodes to a key, to a plan, to ready nodes.
//
// Where the plan is known, a flush is the cost of a step that repeats, so its lists keep their
// memory from flush to flush, and the segment is only written down to make a plan.
// For one thread at a time: the stream's lock is held.
#pragma once
#include <vector>

#include "base/numbering.h"
#include "graph/node.h"
#include "stream/run.h"

namespace fornax {

// An operand from outside.
struct FlushLeaf {
  const Node* node;
  uint32_t uses = 0;
  bool dies = false;  // as SegmentLeaf has it
  int memory = -1;
};

// A buffer of leaves that nobody else holds.
struct FlushMemory {
  uint32_t leaves = 0;  // so many
  bool given = false;   // one of them dies
};

class Flush {
 public:
  explicit Flush(int device) : device_(device) {}
  // Computes the nodes that somebody can read, and leaves the list empty.
  void run(std::vector<Ref<Node>>& pending);

 private:
  void drop_dead(std::vector<Ref<Node>>& pending);
  bool fails(Node& node) const;
  void describe();
  int leaf_number(const Node* node);  // adds it if it is new
  void take_leaf(FlushLeaf& leaf);
  void describe_leaf(FlushLeaf& leaf);
  Segment segment();
  void execute();
  void finish(const Plan& plan, const Ref<Fate>& fate);
  void clear();

  const int device_;
  std::vector<uint32_t> uses_;  // per pending node, by the others
  std::vector<char> needed_, outlives_;
  std::vector<int> compact_;  // pending node -> live node
  std::vector<Ref<Node>> live_;
  std::vector<char> live_outlives_;
  Numbering leaf_numbers_;
  std::vector<FlushLeaf> leaves_;  // in the order in which they are first asked for
  Numbering memory_numbers_;
  std::vector<FlushMemory> memories_;
  SegmentKey key_;
  std::vector<RunValue> values_;
};

}  // namespace fornax
