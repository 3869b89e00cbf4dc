// Blocks that work on one tile: each leaves its part in memory, and the one that is done last goes
// on with all of them.  What that makes of the parts must not depend on which one it is.
//
// Pure functions; declare_tickets() and pass_tickets() are the two sides of a launch.
#pragma once
#include "backends/cube/operand.h"

namespace fornax::cube {

// Per tile, how many blocks are done; 0 before and after the launch.
Value declare_tickets(Builder& k);
// Requires: at most Device::kTickets tiles.
void pass_tickets(Arguments& arguments, int64_t tiles);

// To be called by all threads of each of the `blocks` blocks of tile number `tile`, after they have
// stored their part.
void when_last(Builder& k, Value tickets, Value tile, Value blocks, FunctionRef<void()> then);

}  // namespace fornax::cube
