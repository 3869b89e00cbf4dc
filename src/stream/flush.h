// One flush of a stream after the other: from pending nodes to a key, to a plan, to ready nodes.
//
// Where the plan is known, a flush is the cost of a step that repeats, so its lists keep their
// memory from flush to flush, and the segment is only written down to make a plan.
// For one thread at a time: the stream's lock is held.
#pragma once
#include <vector>

#include "graph/node.h"
#include "stream/run.h"

namespace fornax {

// The operands from outside, numbered in the order in which they are first asked for.
class LeafTable {
 public:
  struct Leaf {
    const Node* node;
    uint32_t uses = 0;
    bool dies = false;
  };
  int number(const Node* node);  // adds it if it is new
  std::vector<Leaf>& leaves() { return leaves_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  void clear();

 private:
  void grow();
  size_t place(const Node* node) const;
  std::vector<int> slots_;  // number + 1, or 0; a power of two, at most half full
  std::vector<Leaf> leaves_;
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
  void describe_leaf(LeafTable::Leaf& leaf);
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
  LeafTable leaves_;
  SegmentKey key_;
  std::vector<RunValue> values_;
};

}  // namespace fornax
