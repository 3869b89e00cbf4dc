// Running plans, and watching them run.
#pragma once
#include <fornax/device.h>

#include <span>

#include "graph/node.h"
#include "stream/plan.h"

namespace fornax {

// What a value of a plan is while the plan runs: memory and where it begins, or a number, or the
// error that kept it from being computed.
struct RunValue {
  Ref<Buffer> buffer;
  int64_t offset = 0;  // elements
  Scalar scalar;
  std::shared_ptr<const Error> failure;
};

// A step whose data may yet turn out to be wrong (Backend::execute).
struct OpenStep {
  int step;
  uint64_t execution;
  Site site;  // of what it computes
};

// Runs every step of the plan.  `values` has plan.values entries, leaves filled in; on return those
// of plan.results are.  `nodes` are those of the segment, for errors.  Errors of a step fail its
// results and what depends on them, never other steps.
std::vector<OpenStep> run_plan(const Plan& plan, int device, std::vector<RunValue>& values,
                               std::span<const Ref<Node>> nodes);

// The error with the line that recorded the op.  Where it was thrown only the call that made the
// plan run was known, a read somewhere else.
std::shared_ptr<const Error> with_site(const Error& error, Site site);

// Where run_plan notes each step of this thread; null outside of Device::profile().
extern constinit thread_local ProfileReport* profile;

}  // namespace fornax
