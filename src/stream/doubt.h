// What may yet turn out to be wrong: runs with steps whose data are checked while the device
// computes, and runs that read what such runs have made.  They are kept, in order, until somebody
// waits for the device.  Then each learns its fate: a step that failed fails its results and what
// depends on them, as it would have at once.
//
// A buffer points at the fate of the run that wrote it.  Values of runs without doubt have none.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <memory>
#include <vector>

#include "graph/node.h"
#include "stream/run.h"

namespace fornax {

// A leaf of a run that is itself in doubt.
struct DoubtfulLeaf {
  int value;
  Ref<Fate> fate;
  int source;  // the value of that run
};

// Those among the first values of a run, which are its leaves.
std::vector<DoubtfulLeaf> doubtful_leaves(const std::vector<RunValue>& values);

// To be called after each run: the fate of its results; none where nothing is in doubt.
Ref<Fate> fate_of_run(int device, const std::shared_ptr<const Plan>& plan,
                      std::vector<OpenStep> open, std::vector<DoubtfulLeaf> leaves);

// The error of a value that is known to be wrong.
std::shared_ptr<const Error> known_failure(const Buffer& buffer);

// Waits until it is known whether what was run on the device is right.  Failures of results are
// noted for throw_unread_failure().
void settle(int device);
// Waits for a ready node's value alone, and turns the node into a failed one where it is wrong.
void settle(Node& node);

}  // namespace fornax
