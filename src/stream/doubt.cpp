#include "stream/doubt.h"

#include <algorithm>
#include <mutex>

#include "backend/registry.h"
#include "stream/stream.h"

namespace fornax {
namespace {

constexpr size_t kMostRuns = 256;  // that may be in doubt before one more waits

struct Run {
  std::shared_ptr<const Plan> plan;
  std::vector<OpenStep> open;
  std::vector<DoubtfulLeaf> leaves;
  Ref<Fate> fate;
};

struct Doubts {
  std::mutex settling;            // of the errors; held while the device is waited for
  std::vector<LateError> errors;  // of runs that were not in the list yet
  std::mutex mutex;               // of the runs and of nodes that fail; taken last
  std::vector<Run> runs;
};

Doubts& doubts_of(int device) {
  static auto* all = new Doubts[kMostDevices];
  return all[device];
}

const std::shared_ptr<const Error>* error_of(const std::vector<LateError>& errors,
                                             uint64_t execution) {
  for (const LateError& late : errors) {
    if (late.execution == execution) return &late.error;
  }
  return nullptr;
}

// The failures of the run's values.
std::vector<std::shared_ptr<const Error>> failures_of(const Run& run,
                                                      const std::vector<LateError>& errors) {
  std::vector<std::shared_ptr<const Error>> values(size_t(run.plan->values));
  bool any = false;
  for (const DoubtfulLeaf& leaf : run.leaves) {
    if (leaf.fate->failures.empty()) continue;
    values[size_t(leaf.value)] = leaf.fate->failures[size_t(leaf.source)];
    any |= values[size_t(leaf.value)] != nullptr;
  }
  std::vector<std::shared_ptr<const Error>> steps(run.plan->steps.size());
  for (const OpenStep& open : run.open) {
    if (const auto* error = error_of(errors, open.execution)) {
      steps[size_t(open.step)] = with_site(**error, open.site);
      any = true;
    }
  }
  if (!any) return {};
  for (size_t s = 0; s < steps.size(); s++) {
    const PlanStep& step = run.plan->steps[s];
    std::shared_ptr<const Error> failure;
    for (int input : step.inputs) {
      if (!failure) failure = values[size_t(input)];
    }
    if (!failure) failure = steps[s];
    for (const PlanOutput& output : step.outputs) values[size_t(output.value)] = failure;
  }
  return values;
}

}  // namespace

std::vector<DoubtfulLeaf> doubtful_leaves(const std::vector<RunValue>& values) {
  std::vector<DoubtfulLeaf> leaves;
  for (size_t i = 0; i < values.size(); i++) {
    const Buffer* buffer = values[i].buffer.get();
    if (!buffer || !buffer->fate) continue;
    const Fate& fate = *buffer->fate;
    if (fate.settled.load(std::memory_order_acquire) && fate.failures.empty()) continue;
    leaves.push_back({int(i), buffer->fate, buffer->value});
  }
  return leaves;
}

Ref<Fate> fate_of_run(int device, const std::shared_ptr<const Plan>& plan,
                      std::vector<OpenStep> open, std::vector<DoubtfulLeaf> leaves) {
  if (open.empty() && leaves.empty()) return nullptr;
  auto fate = Ref<Fate>::adopt(new Fate);
  Doubts& doubts = doubts_of(device);
  size_t count = 0;
  {
    std::lock_guard lock(doubts.mutex);
    doubts.runs.push_back({plan, std::move(open), std::move(leaves), fate});
    count = doubts.runs.size();
  }
  if (count < kMostRuns) return fate;
  try {
    settle(device);
  } catch (const Error&) {
    // The device is broken, which whoever waits for it next is told.
  }
  return fate;
}

std::shared_ptr<const Error> known_failure(const Buffer& buffer) {
  if (!buffer.fate || !buffer.fate->settled.load(std::memory_order_acquire) ||
      buffer.fate->failures.empty()) {
    return nullptr;
  }
  return buffer.fate->failures[size_t(buffer.value)];
}

void settle(int device) {
  Doubts& doubts = doubts_of(device);
  std::lock_guard settling(doubts.settling);
  std::vector<Run> runs;
  {
    std::lock_guard lock(doubts.mutex);
    runs.swap(doubts.runs);
  }
  if (runs.empty()) return;
  PhysicalDevice& physical = physical_device(device);
  try {
    for (LateError& late : physical.backend->late_errors(physical.ordinal)) {
      doubts.errors.push_back(std::move(late));
    }
  } catch (...) {
    std::lock_guard lock(doubts.mutex);
    doubts.runs.insert(doubts.runs.begin(), runs.begin(), runs.end());
    throw;
  }
  for (Run& run : runs) {
    run.fate->failures = failures_of(run, doubts.errors);
    run.fate->settled.store(true, std::memory_order_release);
    if (run.fate->failures.empty()) continue;
    for (const PlanResult& result : run.plan->results) {
      const auto& failure = run.fate->failures[size_t(result.value)];
      if (failure) note_failure(device, failure);
    }
    std::erase_if(doubts.errors, [&](const LateError& late) {
      return std::any_of(run.open.begin(), run.open.end(),
                         [&](const OpenStep& open) { return open.execution == late.execution; });
    });
  }
}

void settle(Node& node) {
  if (node.state.load(std::memory_order_acquire) != NodeState::ready || !node.buffer->fate) return;
  if (!node.buffer->fate->settled.load(std::memory_order_acquire)) settle(node.device);
  const std::shared_ptr<const Error> failure = known_failure(*node.buffer);
  if (!failure) return;
  std::lock_guard lock(doubts_of(node.device).mutex);
  if (node.state.load(std::memory_order_relaxed) == NodeState::failed) return;
  node.failure = failure;
  node.state.store(NodeState::failed, std::memory_order_release);
}

}  // namespace fornax
