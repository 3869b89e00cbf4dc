// The plan cache: segments are written as words and compared whole, so that no two different ones
// can meet by their hash.  One cache per device, its lock held for look-ups only.
#include <list>
#include <mutex>
#include <unordered_map>

#include "backend/registry.h"
#include "base/log.h"
#include "base/settings.h"
#include "stream/plan.h"

namespace fornax {
namespace {

using Key = std::vector<uint64_t>;

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = key.size();
    for (uint64_t word : key) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

void append(Key& key, const Type& type) {
  key.push_back(uint64_t(type.dtype) << 8 | uint64_t(type.shape.rank()));
  for (int64_t size : type.shape) key.push_back(uint64_t(size));
}

Key key_of(const Segment& segment) {
  Key key;
  key.reserve(8 + segment.leaves.size() * 8 + segment.nodes.size() * 12);
  key.push_back(segment.leaves.size());
  for (const SegmentLeaf& leaf : segment.leaves) {
    key.push_back(uint64_t(leaf.constant) << 1 | uint64_t(leaf.dies));
    append(key, leaf.type);
    if (leaf.constant) continue;
    for (int axis = 0; axis < leaf.type.shape.rank(); axis++) {
      key.push_back(uint64_t(leaf.layout.strides[axis]));
    }
  }
  for (const SegmentNode& node : segment.nodes) {
    key.push_back(uint64_t(node.op) << 1 | uint64_t(node.outlives));
    append(key, node.type);
    key.push_back(node.attributes.size() << 32 | node.inputs.size());
    for (int64_t number : node.attributes) key.push_back(uint64_t(number));
    for (int input : node.inputs) key.push_back(uint64_t(input));
  }
  return key;
}

class Cache {
 public:
  std::shared_ptr<const Plan> find(const Key& key) {
    std::lock_guard lock(mutex_);
    auto found = plans_.find(key);
    if (found == plans_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.second);
    return found->second.first;
  }

  void insert(Key key, std::shared_ptr<const Plan> plan) {
    std::lock_guard lock(mutex_);
    if (plans_.count(key)) return;  // another thread was first
    auto at = plans_.emplace(std::move(key), std::pair(std::move(plan), order_.end())).first;
    at->second.second = order_.insert(order_.begin(), &at->first);
    while (int64_t(plans_.size()) > std::max<int64_t>(settings().plans, 1)) {
      plans_.erase(plans_.find(*order_.back()));
      order_.pop_back();
    }
  }

  size_t size() {
    std::lock_guard lock(mutex_);
    return plans_.size();
  }

 private:
  std::mutex mutex_;
  std::list<const Key*> order_;  // most recently used first; points at the map's keys
  std::unordered_map<Key, std::pair<std::shared_ptr<const Plan>, std::list<const Key*>::iterator>,
                     KeyHash>
      plans_;
};

Cache& cache_of(int device) {
  static std::mutex mutex;
  static auto* caches = new std::unordered_map<int, Cache>;
  std::lock_guard lock(mutex);
  return (*caches)[device];
}

}  // namespace

std::shared_ptr<const Plan> plan_for(const Segment& segment, int device) {
  Cache& cache = cache_of(device);
  Key key = key_of(segment);
  if (auto plan = cache.find(key)) return plan;
  PhysicalDevice& physical = physical_device(device);
  auto plan = std::make_shared<const Plan>(make_plan(segment, *physical.backend, physical.ordinal));
  if (logs(3)) {
    std::string groups;
    for (const PlanStep& step : plan->steps) groups += fmt::format("\n  [{}]", step.ops);
    log(3, "plan for {} ops on {}: {} groups{}", segment.nodes.size(), physical.name,
        plan->steps.size(), groups);
  }
  if (plan->complete) cache.insert(std::move(key), plan);
  return plan;
}

size_t cached_plan_count(int device) { return cache_of(device).size(); }

}  // namespace fornax
