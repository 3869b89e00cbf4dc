// Sums of a tile that several blocks share: each leaves its part in memory, and the one that comes
// last adds them up, in their order, so that the sum is the same whoever that is.
//
// Pure functions; declare_splits() and pass_splits() are the two sides of a launch.
#pragma once
#include "backends/cube/operand.h"
#include "kernel/library/matmul.h"

namespace fornax::cube {

struct Splits {
  Value parts;    // memory of the tiles' parts, one after another
  Value tickets;  // per tile, how many blocks are done; 0 before and after the launch
};
// `sums`: the tile's dtype.
Splits declare_splits(Builder& k, DType sums);
// Memory for `parts` parts of `elements` elements.  Requires: at most Device::kTickets tiles.
void pass_splits(Arguments& arguments, LaunchList& list, DType sums, int64_t tiles, int64_t parts,
                 int64_t elements);

// To be called by all threads of a block.  `finish` gets the whole sum, in one of the blocks.
void add_up(Builder& k, const Splits& splits, const kernel::TilePart& part,
            FunctionRef<void(Value sum)> finish);

}  // namespace fornax::cube
