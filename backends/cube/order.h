// Which launches of a list must wait for which others: those that write what another reads or
// writes.  The rest may run at once, in any order.
//
// Thread-safety: functions of their arguments.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/runtime.h"

namespace fornax::cube {

// Memory that a launch reads, or writes and maybe reads: addresses from `begin` to below `end`.
struct Touch {
  runtime::Address begin = 0, end = 0;
  bool written = false;
  bool operator==(const Touch&) const = default;
};

// For each launch the numbers of those before it that it waits for, rising.  What these wait for in
// turn is left out.  No more than `most` run at once: others wait for one of them.
using Order = std::vector<std::vector<uint32_t>>;
Order order_of(std::span<const std::span<const Touch>> launches, size_t most);

}  // namespace fornax::cube
