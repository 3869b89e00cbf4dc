// The plan cache: keys are compared whole, so that no two different segments can meet by their
// hash.  One cache per device, its lock held for look-ups only.
#include <list>
#include <mutex>
#include <unordered_map>

#include "backend/registry.h"
#include "base/log.h"
#include "base/settings.h"
#include "stream/plan.h"

namespace fornax {
namespace {

struct KeyHash {
  size_t operator()(const SegmentKey& key) const {
    uint64_t hash = key.size();
    for (uint64_t word : key) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

class Cache {
 public:
  std::shared_ptr<const Plan> find(const SegmentKey& key) {
    std::lock_guard lock(mutex_);
    auto found = plans_.find(key);
    if (found == plans_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.second);
    return found->second.first;
  }

  void insert(const SegmentKey& key, std::shared_ptr<const Plan> plan) {
    std::lock_guard lock(mutex_);
    if (plans_.count(key)) return;  // another thread was first
    auto at = plans_.emplace(key, std::pair(std::move(plan), order_.end())).first;
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
  std::list<const SegmentKey*> order_;  // most recently used first; points at the map's keys
  std::unordered_map<SegmentKey,
                     std::pair<std::shared_ptr<const Plan>, std::list<const SegmentKey*>::iterator>,
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

std::shared_ptr<const Plan> plan_for(const SegmentKey& key, FunctionRef<Segment()> describe,
                                     int device) {
  Cache& cache = cache_of(device);
  if (auto plan = cache.find(key)) return plan;
  const Segment segment = describe();
  PhysicalDevice& physical = physical_device(device);
  auto plan = std::make_shared<const Plan>(make_plan(segment, *physical.backend, physical.ordinal));
  if (logs(3)) {
    std::string groups;
    for (const PlanStep& step : plan->steps) groups += fmt::format("\n  [{}]", step.ops);
    log(3, "plan for {} ops on {}: {} groups{}", segment.nodes.size(), physical.name,
        plan->steps.size(), groups);
  }
  if (plan->complete) cache.insert(key, plan);
  return plan;
}

size_t cached_plan_count(int device) { return cache_of(device).size(); }

}  // namespace fornax
