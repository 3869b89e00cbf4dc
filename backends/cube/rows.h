// Row programs: reductions over some axes of a domain, and the elementwise work before, between and
// after them.  A softmax is one: the largest of a row, the sum of what is left of it, a division.
//
// The domain is a nest of kept and reduced axes.  A block owns some kept positions and walks along
// the reduced ones, tile by tile.  Tiles lie so that row-major memory is read along its innermost
// axis: as rows where that is reduced, as columns where it is kept.  Which elements meet in which
// order follows from the domain and the reduced axes alone, never from dtypes, strides or what else
// is in the group, so that results do not depend on fusion.  Steps have levels: what no reduction
// comes before is of level 0, and a reduction ends its level.  Where one tile holds a whole row,
// all levels are computed in registers; else every level is a pass that reads the inputs again, and
// stores what is known by then.  Where there are too few rows for the device, each pass is a launch
// whose blocks share a row out and leave parts of its reductions, which the last of them combines.
//
// Where a matrix has rows enough (rows_of_part), its columns are reduced by parts: the rows of a
// part one after another, then the parts in an order of their own.  So columns may stand beside
// rows that pass through registers anyway: a block takes whole rows one after another and leaves a
// part of each column, a second launch combines the parts, and the bits are those of columns that
// stand alone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/cube/combine.h"
#include "backends/cube/operand.h"

namespace fornax::cube {

// A step of a row program.
struct RowStep {
  Step step;            // op, dtype and inputs alone
  int level = 0;        // how many reductions come before it, one after another
  bool kept = false;    // one value per kept position
  bool column = false;  // reduces the kept axes; no step reads it
};

// All that a kernel's text follows from.
struct RowClass {
  std::vector<RowStep> steps;
  int inputs = 0;
  std::vector<int> outputs;      // steps
  std::vector<ViewClass> views;  // inputs in memory, then outputs
  std::vector<int> view_steps;
  std::vector<int> kinds;  // per axis of the nest, the innermost last: 0 kept, 1 reduced
  DType index = DType::i32;
  bool by_rows = true;  // the innermost axis is reduced: a tile's rows are kept positions
  bool nested = false;  // the innermost axes are walked by tiles, other reduced ones around them
  int inner = 0;        // the first of the innermost axes of one kind
  kernel::Distribution distribution;
  int kept_tile = 1, reduced_tile = 1;
  bool whole_kept = false, whole_reduced = false;  // whole numbers of tiles
  int divisor = 1;      // of the number of positions along the innermost axes
  bool single = false;  // one tile holds all reduced positions
  bool split = false;   // blocks share rows out
  int level = 0;        // of a split kernel: the pass that it is
  bool more = false;    // launches come after it
  bool deep = false;    // by columns: each reduced position of a tile is a part of rows
  bool parts = false;   // by rows: leaves parts of columns
  bool given = false;   // by columns: the operands of reductions are the accumulators of parts

  std::string key() const;
};

// The parameters, in order: the views, the numbers, the nest's extents; in dtype `index` the kept
// and reduced positions that tiles walk over, the tiles along the innermost axis (an extent), the
// turns of a block and of all blocks that share a row; if there are parts of rows, how many rows
// they have; the parts of columns, [parts, columns] each; if rows are split, the number of splits,
// of each reduction that is done its values, of each that this kernel ends its parts, [kept,
// splits] each, and the values where launches read them after it, and the tickets if it ends any.
kernel::Kernel build_rows(const RowClass& known);

}  // namespace fornax::cube
