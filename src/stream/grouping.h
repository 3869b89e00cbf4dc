// Which nodes of a segment are computed together, and in what order the groups run.  Greedy: nodes
// are taken in the order in which they were recorded, each joins a group or opens one.
//
// A node may join the group of one of its operands if the groups of the others can run before that
// one, for which they are moved forward in the order; or one of the newest groups if those of all
// operands run before it.  It does if that group is still open to it:
//   - a pointwise node joins a group whose steps so far have its shape: one that makes an operand,
//     else one of the newest that reads what it reads, else the newest of all;
//   - a reduction joins the pointwise group that makes its operand, and becomes the group's anchor;
//   - a pointwise node of the anchor's shape joins the reduction that it reads, or another anchor
//     after which the backend fuses;
//   - where the backend fuses rows, further reductions over the same axes join, and pointwise nodes
//     of the domain's shape that read what was reduced; reductions of few elements also join others
//     that were recorded long before, as the gradients of biases are, so that they share a launch.
// Pointwise groups that only such a node reads, and that have its shape, become part of its group.
// At last groups of rows that read the same become one where the backend wants that, also with
// groups of reductions over the axes that the others keep: gradients of a norm's weight and bias
// are columns beside its rows (stream/sharing.cpp).  What follows these is a group of its own then.
//
// Axes of extent 1 make no difference between shapes here: in the group's graph a node has the
// shape of the domain or of the anchor's result, its inputs are given axes to match, and views that
// only drop or insert such axes are seen through.  So are reshapes that split the rows of a matrix
// product, which then is one of a batch in its group.  Other views join nothing: they are layouts
// of the value that they look at.
#pragma once
#include <set>
#include <vector>

#include "stream/plan.h"

namespace fornax {

// Casts work element by element like the ops with a value column.
inline bool works_by_element(Op op) { return is_pointwise(op) || op == Op::cast; }

inline constexpr int kLargestGroup = 64;  // steps of work
inline constexpr int kMostInputs = 24;

struct Draft {
  std::vector<int> nodes;
  std::vector<int> sources;  // groups that it reads
  int anchor = -1;           // node
  Shape domain;
  Shape result;  // of the anchor, in the group
  bool open = false;
  int inputs = 0;  // upper bound

  void add_sources(const std::vector<int>& more);
};

// Inputs are numbered as in SegmentNode.
class Grouping {
 public:
  Grouping(const Segment& segment, const Backend& backend);

  // In the order in which they run.
  const std::vector<int>& order() const { return order_; }
  const Draft& draft(int group) const { return drafts_[size_t(group)]; }
  // The group that computes what `input` looks at, -1 for leaves.
  int group_of(int input) const { return input < leaves_ ? -1 : group_[size_t(input - leaves_)]; }
  // What a node of `group` reads where its operand is `input`, which the group makes.
  int source_in_group(int input, int group) const;
  // The shape that node n has in its group's graph.
  const Shape& shape_in_group(int n) const;

 private:
  const SegmentNode& node(int n) const { return segment_.nodes[size_t(n)]; }
  const Type& type_of(int input) const { return segment_.type_of(input); }

  int group_for(int n) const;
  int group_together_with(int n, const std::vector<int>& sources) const;
  bool reads_more_than(int most, int group, const std::vector<int>& nodes, int inputs) const;
  bool joins(int n, int group) const;
  bool joins_rows(int n, int group) const;
  bool is_rows(const Draft& draft) const;
  bool may_split(const Draft& draft, const Shape& shape) const;
  bool shares_operand(int n, int group) const;
  std::vector<int> operand_groups(int n) const;
  void absorb_for(int n);
  bool may_absorb(int group, int other) const;
  void absorb(int group, int other);
  bool share_rows(bool columns);
  int shared_by(int rows, int other, bool columns) const;
  bool may_be_one(int rows, int other, bool columns) const;
  bool reads_kept(int n, int group) const;
  bool reads_columns(int n, int group) const;
  bool shares_columns(int rows, int other) const;
  void add_matrices(int n, int other, std::set<int>& known) const;
  bool follows(int input, int other, const std::set<int>& known) const;
  void part_from_columns(int other);
  void take(int rows, int other);
  bool reads_rows(int n, int group) const;
  bool reads(int group, int input) const;
  bool is_column(int n) const;
  bool can_wait(int group, const std::vector<int>& sources, std::vector<bool>& seen) const;
  void hoist(int group, const std::vector<int>& sources);
  int open_group(int n);
  void add(int n, int group);
  const Shape& viewed_shape(int input, const Draft& draft) const;
  int seen_through(int input) const;

  const Segment& segment_;
  const int leaves_;
  const Backend& backend_;
  std::vector<Draft> drafts_;
  std::vector<int> order_, position_;  // inverse to one another
  std::vector<int> group_;             // per node; of a view the group of what it looks at
  std::vector<bool> kept_;             // per node: one value per row of a group of rows
};

}  // namespace fornax
