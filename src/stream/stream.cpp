#include "stream/stream.h"

#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "base/settings.h"
#include "stream/doubt.h"
#include "stream/run.h"

namespace fornax {
namespace {

// Every stream ever made, per device.  A thread that ends leaves its stream for the next one.
struct Streams {
  std::mutex mutex;
  std::deque<Stream> all;
  std::vector<Stream*> idle;
};

Streams& streams_of(int device) {
  static std::mutex mutex;
  static auto* devices = new std::unordered_map<int, Streams>;
  std::lock_guard lock(mutex);
  return (*devices)[device];
}

// The calling thread's streams, by device.
struct Mine {
  std::vector<Stream*> by_device;
  ~Mine() {
    for (size_t device = 0; device < by_device.size(); device++) {
      if (!by_device[device]) continue;
      Streams& streams = streams_of(int(device));
      std::lock_guard lock(streams.mutex);
      streams.idle.push_back(by_device[device]);
    }
  }
};
thread_local Mine mine;

Stream* claim_stream(int device) {
  Streams& streams = streams_of(device);
  std::lock_guard lock(streams.mutex);
  if (!streams.idle.empty()) {
    Stream* stream = streams.idle.back();
    streams.idle.pop_back();
    return stream;
  }
  return &streams.all.emplace_back(device);
}

// Failures of each device's work that no call has thrown yet.
struct Unread {
  std::mutex mutex;
  std::vector<std::pair<int, std::shared_ptr<const Error>>> failures;
};
Unread& unread() {
  static auto* list = new Unread;
  return *list;
}
constexpr size_t kMostUnread = 64;

int64_t byte_count(const Type& type) {
  return type.shape.element_count() * int64_t(size_of(type.dtype));
}

// One flush: from pending nodes to a segment, to a plan, to ready nodes.
class Flush {
 public:
  Flush(std::vector<Ref<Node>> pending, int device)
      : pending_(std::move(pending)), device_(device) {}

  void run() {
    drop_dead();
    if (live_.empty()) return;
    build_segment();
    if (!segment_.nodes.empty()) {
      execute();
    }
    // Operands go last: freeing them may free much, and nothing below needs the lock's order.
    for (Ref<Node>& node : live_) node->inputs.clear();
  }

 private:
  // Keeps the nodes that somebody can read, or that those need.
  void drop_dead() {
    const size_t count = pending_.size();
    std::vector<uint32_t> uses(count, 0);
    for (const Ref<Node>& node : pending_) {
      for (size_t i = 0; i < node->inputs.size(); i++) {
        const Node& input = *node->inputs[i];
        if (pends_here(input)) uses[input.index]++;
      }
    }
    std::vector<char> needed(count, 0);
    outlives_.assign(count, 0);
    compact_.assign(count, -1);
    for (size_t k = count; k-- > 0;) {
      Node& node = *pending_[k];
      const uint32_t handles = node.handles.load(std::memory_order_acquire);
      const uint32_t others = node.references.load(std::memory_order_acquire) - uses[k] - 1;
      outlives_[k] = handles > 0 || others > 0;
      needed[k] |= outlives_[k];
      if (!needed[k]) continue;
      for (size_t i = 0; i < node.inputs.size(); i++) {
        const Node& input = *node.inputs[i];
        if (pends_here(input)) needed[input.index] = 1;
      }
    }
    for (size_t k = 0; k < count; k++) {
      if (needed[k]) {
        if (fails(*pending_[k])) continue;
        compact_[k] = int(live_.size());
        live_outlives_.push_back(outlives_[k]);
        live_.push_back(std::move(pending_[k]));
      } else {
        pending_[k]->inputs.clear();
      }
    }
  }

  bool pends_here(const Node& node) const {
    return node.state.load(std::memory_order_relaxed) == State::pending;
  }

  // A node with a failed operand fails with it.
  bool fails(Node& node) {
    for (size_t i = 0; i < node.inputs.size(); i++) {
      const Node& input = *node.inputs[i];
      const State state = input.state.load(std::memory_order_acquire);
      if (state == State::failed) {
        node.failure = input.failure;
      } else if (state == State::ready && input.buffer->fate) {
        node.failure = known_failure(*input.buffer);
      }
      if (!node.failure) continue;
      node.state.store(State::failed, std::memory_order_release);
      node.inputs.clear();
      return true;
    }
    return false;
  }

  void build_segment() {
    std::unordered_map<const Node*, std::pair<int, uint32_t>> leaves;  // number, uses
    std::vector<const Node*> order;
    for (const Ref<Node>& node : live_) {
      for (size_t i = 0; i < node->inputs.size(); i++) {
        const Node* input = node->inputs[i].get();
        if (pends_here(*input)) continue;
        auto [at, added] = leaves.try_emplace(input, int(order.size()), 0u);
        if (added) order.push_back(input);
        at->second.second++;
      }
    }
    for (const Node* leaf : order) add_leaf(*leaf, leaves[leaf].second);
    const int leaf_count = int(order.size());
    for (size_t k = 0; k < live_.size(); k++) {
      const Node& node = *live_[k];
      SegmentNode& out = segment_.nodes.emplace_back();
      out.op = node.op;
      out.type = node.type;
      out.attributes = node.attributes;
      out.outlives = live_outlives_[k];
      for (size_t i = 0; i < node.inputs.size(); i++) {
        const Node* input = node.inputs[i].get();
        out.inputs.push_back(pends_here(*input) ? compact_[input->index] + leaf_count
                                                : leaves.at(input).first);
      }
      sites_.push_back(node.site);
    }
  }

  void add_leaf(const Node& node, uint32_t uses) {
    SegmentLeaf leaf{node.type, node.layout, false, false};
    RunValue value;
    if (node.state.load(std::memory_order_acquire) == State::constant) {
      leaf.constant = true;
      leaf.layout = Layout{};
      value.scalar = node.scalar;
    } else {
      value.buffer = node.buffer;
      value.offset = node.layout.offset;
      leaf.layout.offset = 0;
      // Two references to the buffer: the node's and the one just taken.
      leaf.dies = node.handles.load(std::memory_order_acquire) == 0 &&
                  node.references.load(std::memory_order_acquire) == uses &&
                  node.buffer->references.load(std::memory_order_acquire) == 2 &&
                  node.layout.offset == 0 && is_contiguous(node.type.shape, node.layout);
    }
    segment_.leaves.push_back(std::move(leaf));
    values_.push_back(std::move(value));
  }

  void execute() {
    const std::shared_ptr<const Plan> plan = plan_for(segment_, device_);
    std::vector<DoubtfulLeaf> doubtful = doubtful_leaves(values_);
    values_.resize(size_t(plan->values));
    std::vector<OpenStep> open = run_plan(*plan, device_, values_, sites_);
    const Ref<Fate> fate = fate_of_run(device_, plan, std::move(open), std::move(doubtful));
    for (const PlanResult& result : plan->results) {
      Node& node = *live_[size_t(result.node)];
      RunValue& value = values_[size_t(result.value)];
      if (value.failure) {
        node.failure = value.failure;
        note_failure(device_, value.failure);
        node.state.store(State::failed, std::memory_order_release);
        continue;
      }
      node.buffer = value.buffer;
      if (result.value >= plan->leaves) {
        node.buffer->fate = fate;
        node.buffer->value = result.value;
      }
      node.layout = result.layout;
      node.layout.offset += value.offset;
      node.state.store(State::ready, std::memory_order_release);
    }
  }

  std::vector<Ref<Node>> pending_;
  const int device_;
  std::vector<char> outlives_, live_outlives_;
  std::vector<int> compact_;  // position in the pending list -> segment node
  std::vector<Ref<Node>> live_;
  Segment segment_;
  std::vector<RunValue> values_;
  std::vector<Site> sites_;
};

}  // namespace

void note_failure(int device, const std::shared_ptr<const Error>& failure) {
  std::lock_guard lock(unread().mutex);
  auto& failures = unread().failures;
  for (const auto& known : failures) {
    if (known.second == failure) return;
  }
  if (failures.size() < kMostUnread) failures.emplace_back(device, failure);
}

void throw_failure(const std::shared_ptr<const Error>& failure) {
  {
    std::lock_guard lock(unread().mutex);
    std::erase_if(unread().failures, [&](const auto& known) { return known.second == failure; });
  }
  throw Error(*failure);
}

void throw_unread_failure(int device) {
  std::shared_ptr<const Error> first;
  {
    std::lock_guard lock(unread().mutex);
    for (const auto& [where, failure] : unread().failures) {
      if (where == device && !first) first = failure;
    }
    std::erase_if(unread().failures, [&](const auto& known) { return known.first == device; });
  }
  if (first) throw Error(*first);
}

Stream& Stream::of_this_thread(int device) {
  if (mine.by_device.size() <= size_t(device)) mine.by_device.resize(size_t(device) + 1);
  Stream*& stream = mine.by_device[size_t(device)];
  if (!stream) stream = claim_stream(device);
  return *stream;
}

void Stream::flush_all(int device) {
  Streams& streams = streams_of(device);
  std::vector<Stream*> all;
  {
    std::lock_guard lock(streams.mutex);
    for (Stream& stream : streams.all) all.push_back(&stream);
  }
  for (Stream* stream : all) stream->flush();
}

void Stream::record(Ref<Node> node) {
  std::lock_guard lock(mutex_);
  const auto bytes = int64_t(byte_count(node->type));
  // Run before the node joins: it has no handle yet, and would be computed though nobody may keep
  // it.
  if (int64_t(pending_.size()) >= settings().pending_ops ||
      (!pending_.empty() && pending_bytes_ + bytes > settings().pending_bytes)) {
    flush_locked();
  }
  node->stream = this;
  node->index = uint32_t(pending_.size());
  pending_bytes_ += bytes;
  pending_.push_back(std::move(node));
}

void Stream::flush() {
  std::lock_guard lock(mutex_);
  flush_locked();
}

void Stream::flush_locked() {
  if (pending_.empty()) return;
  pending_bytes_ = 0;
  Flush(std::exchange(pending_, {}), device_).run();
}

}  // namespace fornax
