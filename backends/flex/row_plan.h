// RowPlan: what a group of reductions over the same axes computes, in which order.
//
// A step is whole (it has the domain's shape) or kept (one value per row).  Its level is how many
// reductions come before it, one after another.  A level's kept steps are computed first; then a
// pass over the rows makes its whole outputs and what its reductions fold, and these give the next
// level's first kept values.  A pass computes again what earlier ones had in passing, unless that
// is dear: then it was saved.  Reductions over the other axes, of columns, are outputs of a pass
// and come before nothing.  Constant once made.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace fornax::flex {

struct RowPlan {
  explicit RowPlan(const Group& group);

  // Numbers of the group's steps.
  struct Level {
    std::vector<int> kept;        // pointwise, read outside their level or wanted as outputs
    std::vector<int> whole;       // wanted as outputs
    std::vector<int> saved;       // whole, read by later passes
    std::vector<int> reductions;  // of this level's whole steps
    std::vector<int> columns;     // likewise, wanted as outputs
  };
  std::vector<Level> levels;
  // Per step of work.
  std::vector<int> level;
  std::vector<bool> kept, saved;
  const Group& group;  // as long as this is used

  const Step& step(int number) const { return group.graph.steps[size_t(number)]; }
  const Step& operand_of(int reduction) const { return step(step(reduction).inputs[0]); }
  bool is_output(int step) const;
  // Whether the step is a reduction over other axes than the anchor's.
  bool is_column(int step) const;
  bool has_columns() const;

 private:
  void find_levels(const Shape& result);
  void find_kept();
  void save_for(int step, int level, std::vector<bool>& seen);
  double cost_to(int step, double most) const;
};

// Some of a plan's steps as a graph of their own, which reads what earlier parts have made.
class RowPart {
 public:
  // Of the kept steps of a level, or of its pass.
  RowPart(const RowPlan& plan, int level, bool kept) : plan_(plan), level_(level), kept_(kept) {}

  // The part's number of a step, which is added to it with all that it needs; valid until finish().
  int want(int step);
  // The same of a reduction's operand, in the dtype that it computes in and in lanes of that.
  int operand(int reduction);
  void give(int number) { graph.outputs.push_back(number); }
  // Puts inputs first.  Of the first `outputs` outputs those that are inputs become copies.
  void finish(size_t outputs = SIZE_MAX);

  Graph graph;
  std::vector<int> sources;  // per input of the graph, the group's step

 private:
  static constexpr int kWork = 1 << 20;  // steps of work are numbered from here before finish()
  bool is_source(int step) const;
  bool has_wide_operand(int step) const;
  int compute(int step);
  int add(Op op, const Type& type, int input);

  const RowPlan& plan_;
  const int level_;
  const bool kept_;
  std::vector<std::pair<int, int>> known_;  // step, number
  std::vector<Step> work_;
};

}  // namespace fornax::flex
