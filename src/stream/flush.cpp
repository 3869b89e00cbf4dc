#include "stream/flush.h"

#include "stream/doubt.h"
#include "stream/stream.h"

namespace fornax {
namespace {

bool pends(const Node& node) {
  return node.state.load(std::memory_order_relaxed) == NodeState::pending;
}

}  // namespace

void Flush::run(std::vector<Ref<Node>>& pending) {
  struct Clear {
    Flush& flush;
    std::vector<Ref<Node>>& pending;
    ~Clear() {
      flush.clear();
      pending.clear();
    }
  } clear{*this, pending};
  drop_dead(pending);
  if (live_.empty()) return;
  describe();
  execute();
}

// Operands go last: freeing them may free much, and nothing needs them any more.
void Flush::clear() {
  for (Ref<Node>& node : live_) node->inputs.clear();
  values_.clear();
  leaf_numbers_.clear();
  leaves_.clear();
  memory_numbers_.clear();
  memories_.clear();
  live_.clear();
  live_outlives_.clear();
}

// Keeps the nodes that somebody can read, or that those need.
void Flush::drop_dead(std::vector<Ref<Node>>& pending) {
  const size_t count = pending.size();
  uses_.assign(count, 0);
  needed_.assign(count, 0);
  outlives_.assign(count, 0);
  compact_.assign(count, -1);
  for (const Ref<Node>& node : pending) {
    for (const Ref<Node>& input : node->inputs) {
      if (pends(*input)) uses_[input->index]++;
    }
  }
  for (size_t k = count; k-- > 0;) {
    const Node& node = *pending[k];
    // Besides the readers here, the list of pending nodes.
    outlives_[k] = node.references.load(std::memory_order_acquire) != uint64_t(uses_[k]) + 1;
    needed_[k] |= outlives_[k];
    if (!needed_[k]) continue;
    for (const Ref<Node>& input : node.inputs) {
      if (pends(*input)) needed_[input->index] = 1;
    }
  }
  for (size_t k = 0; k < count; k++) {
    if (!needed_[k]) {
      pending[k]->inputs.clear();
    } else if (!fails(*pending[k])) {
      compact_[k] = int(live_.size());
      live_outlives_.push_back(outlives_[k]);
      live_.push_back(std::move(pending[k]));
    }
  }
}

// A node with a failed operand fails with it.
bool Flush::fails(Node& node) const {
  for (const Ref<Node>& input : node.inputs) {
    const NodeState state = input->state.load(std::memory_order_acquire);
    if (state == NodeState::failed) {
      node.failure = input->failure;
    } else if (state == NodeState::ready && input->buffer->fate) {
      node.failure = known_failure(*input->buffer);
    }
    if (!node.failure) continue;
    node.state.store(NodeState::failed, std::memory_order_release);
    node.inputs.clear();
    return true;
  }
  return false;
}

// Writes the key; operands are live nodes (odd) or leaves (even).
void Flush::describe() {
  key_.clear();
  key_.push_back(live_.size());
  for (size_t k = 0; k < live_.size(); k++) {
    const Node& node = *live_[k];
    key_.push_back(uint64_t(node.op) << 56 | uint64_t(node.type.dtype) << 48 |
                   uint64_t(node.type.shape.rank()) << 40 | uint64_t(live_outlives_[k]) << 36 |
                   uint64_t(node.attributes.size()) << 16 | uint64_t(node.inputs.size()));
    for (const int64_t size : node.type.shape) key_.push_back(uint64_t(size));
    for (const int64_t attribute : node.attributes) key_.push_back(uint64_t(attribute));
    for (const Ref<Node>& input : node.inputs) {
      if (pends(*input)) {
        key_.push_back(uint64_t(compact_[input->index]) << 1 | 1);
        continue;
      }
      const int leaf = leaf_number(input.get());
      leaves_[size_t(leaf)].uses++;
      key_.push_back(uint64_t(leaf) << 1);
    }
  }
  for (FlushLeaf& leaf : leaves_) take_leaf(leaf);
  for (FlushLeaf& leaf : leaves_) describe_leaf(leaf);
}

int Flush::leaf_number(const Node* node) {
  const int number = leaf_numbers_.number(node);
  if (number == int(leaves_.size())) leaves_.push_back({node});
  return number;
}

void Flush::take_leaf(FlushLeaf& leaf) {
  const Node& node = *leaf.node;
  RunValue& value = values_.emplace_back();
  if (node.state.load(std::memory_order_acquire) == NodeState::constant) {
    value.scalar = node.scalar;
    return;
  }
  value.buffer = node.buffer;
  value.offset = node.layout.offset;
  if (node.references.load(std::memory_order_acquire) != leaf.uses) return;
  leaf.memory = memory_numbers_.number(node.buffer.get());
  if (leaf.memory == int(memories_.size())) memories_.emplace_back();
  memories_[size_t(leaf.memory)].leaves++;
}

void Flush::describe_leaf(FlushLeaf& leaf) {
  const Node& node = *leaf.node;
  const bool constant = node.state.load(std::memory_order_acquire) == NodeState::constant;
  if (leaf.memory >= 0) {
    FlushMemory& memory = memories_[size_t(leaf.memory)];
    // Two references for each leaf: its node's and the one just taken.
    if (node.buffer->references.load(std::memory_order_acquire) != 2 * memory.leaves) {
      leaf.memory = -1;
    } else if (!memory.given && node.layout.offset == 0 &&
               is_contiguous(node.type.shape, node.layout)) {
      leaf.dies = memory.given = true;
    }
  }
  const Shape& shape = node.type.shape;
  key_.push_back(uint64_t(node.type.dtype) << 48 | uint64_t(shape.rank()) << 40 |
                 uint64_t(leaf.memory + 1) << 2 | uint64_t(leaf.dies) << 1 | uint64_t(constant));
  for (const int64_t size : shape) key_.push_back(uint64_t(size));
  if (constant) return;
  for (int axis = 0; axis < shape.rank(); axis++) {
    key_.push_back(uint64_t(node.layout.strides[axis]));
  }
}

Segment Flush::segment() {
  Segment segment;
  const int leaf_count = int(leaves_.size());
  for (const FlushLeaf& leaf : leaves_) {
    const Node& node = *leaf.node;
    const bool constant = node.state.load(std::memory_order_acquire) == NodeState::constant;
    segment.leaves.push_back(
        {node.type, constant ? Layout{} : node.layout, constant, leaf.dies, leaf.memory});
    segment.leaves.back().layout.offset = 0;
  }
  for (size_t k = 0; k < live_.size(); k++) {
    const Node& node = *live_[k];
    SegmentNode& out = segment.nodes.emplace_back(
        SegmentNode{node.op, node.type, node.attributes, {}, live_outlives_[k] != 0});
    for (const Ref<Node>& input : node.inputs) {
      out.inputs.push_back(pends(*input) ? compact_[input->index] + leaf_count
                                         : leaf_number(input.get()));
    }
  }
  return segment;
}

void Flush::execute() {
  const std::shared_ptr<const Plan> plan = plan_for(
      key_, [this] { return segment(); }, device_);
  std::vector<DoubtfulLeaf> doubtful = doubtful_leaves(values_);
  values_.resize(size_t(plan->values));
  std::vector<OpenStep> open = run_plan(*plan, device_, values_, live_);
  finish(*plan, fate_of_run(device_, plan, std::move(open), std::move(doubtful)));
}

void Flush::finish(const Plan& plan, const Ref<Fate>& fate) {
  for (const PlanResult& result : plan.results) {
    Node& node = *live_[size_t(result.node)];
    const RunValue& value = values_[size_t(result.value)];
    if (value.failure) {
      node.failure = value.failure;
      note_failure(device_, value.failure);
      node.state.store(NodeState::failed, std::memory_order_release);
      continue;
    }
    node.buffer = value.buffer;
    if (result.value >= plan.leaves) {
      node.buffer->fate = fate;
      node.buffer->value = result.value;
    }
    node.layout = result.layout;
    node.layout.offset += value.offset;
    node.state.store(NodeState::ready, std::memory_order_release);
  }
}

}  // namespace fornax
