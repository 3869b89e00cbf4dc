// Which values of a segment are put in memory, and which are computed again where they are read.
#pragma once
#include <vector>

#include "stream/grouping.h"

namespace fornax {

// Per node of the segment.
struct Storage {
  std::vector<bool> stored;
  // Done by all who read it: a cast of what broadcasts, such as a weight; where the backend repeats
  // it, also an arange that runs along their last axis, and views of it.
  std::vector<bool> inlined;
  // Pointwise work on values that other groups store or read anyway, done again by the groups that
  // read its result: where that takes less memory traffic than a result that is written and read.
  std::vector<bool> repeated;
};
Storage choose_storage(const Segment& segment, const Grouping& grouping, const Backend& backend);

}  // namespace fornax
