// Which values are written where their reader wants them, so that nobody has to move them: in the
// order of a permuted view that is reshaped, or as parts of a cat, in its memory.
//
// Pure functions.
#pragma once
#include <vector>

#include "stream/storage.h"

namespace fornax {

struct Placement {
  bool chosen = false;  // else the value lies row-major in memory of its own
  int within = -1;      // the cat in whose memory it lies, a node; -1: in its own
  Layout layout;        // of the node's shape, from where that memory begins
};

// Per node of the segment.
struct Placements {
  std::vector<Placement> of;
  std::vector<bool> assembled;  // a cat whose parts all lie in it when they are made
};
Placements choose_placements(const Segment& segment, const Grouping& grouping,
                             const Storage& storage, const Backend& backend);

}  // namespace fornax
