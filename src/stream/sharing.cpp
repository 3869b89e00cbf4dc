// Groups of rows that become one where the backend wants that.
#include <algorithm>
#include <set>
#include <utility>

#include "graph/attributes.h"
#include "stream/grouping.h"

namespace fornax {
namespace {

// Whether the reduction attributes `a` and `b` share the axes of `domain` among them.
bool are_other_axes(const Shape& domain, const Attributes& a, const Attributes& b) {
  const Attributes ours = axes_of(a), theirs = axes_of(b);
  for (int axis = 0; axis < domain.rank(); axis++) {
    const auto reduces = [axis](const Attributes& axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    if (domain[axis] != 1 && reduces(ours) == reduces(theirs)) return false;
  }
  return true;
}

}  // namespace

// Groups of rows become part of the one with which they share most, over the same axes or, of
// columns, over the others.  Whether any did.
bool Grouping::share_rows(bool columns) {
  bool took = false;
  std::vector<int> groups = order_;
  std::erase_if(groups, [&](int group) { return !is_rows(draft(group)); });
  for (const int other : groups) {
    int best = -1, most = 0;
    for (const int rows : groups) {
      const int shared = rows == other ? 0 : shared_by(rows, other, columns);
      if (shared > most) best = rows, most = shared;
    }
    if (best < 0) continue;
    if (columns) part_from_columns(other);
    take(best, other);
    took = true;
  }
  return took;
}

// What follows the columns of group `other` becomes a group of its own, which runs after it.
void Grouping::part_from_columns(int other) {
  std::vector<int> follow;
  std::erase_if(drafts_[size_t(other)].nodes, [&](int n) {
    const bool follows = kept_[size_t(n)] && !is_reduce(node(n).op);
    if (follows) follow.push_back(n);
    return follows;
  });
  if (follow.empty()) return;
  Draft made;
  made.domain = draft(other).result;
  made.nodes = follow;
  const int group = int(drafts_.size());
  drafts_.push_back(std::move(made));
  const int position = position_[size_t(other)] + 1;
  position_.push_back(position);
  order_.insert(order_.begin() + position, group);
  for (size_t i = 0; i < order_.size(); i++) position_[size_t(order_[i])] = int(i);
  for (const int n : follow) {
    group_[size_t(n)] = group;
    kept_[size_t(n)] = false;
  }
  for (int n = 0; n < int(group_.size()); n++) {
    if (is_view(node(n).op)) group_[size_t(n)] = group_of(node(n).inputs[0]);
  }
  const auto find_sources = [&](int of) {
    Draft& own = drafts_[size_t(of)];
    own.sources.clear();
    own.inputs = 0;
    for (const int n : own.nodes) {
      for (const int input : node(n).inputs) own.inputs += group_of(input) != of;
      own.add_sources(operand_groups(n));
    }
    std::erase(own.sources, of);
  };
  for (int reader = 0; reader <= group; reader++) find_sources(reader);
}

// How many values of the domain's shape group `other` reads that group `rows` reads or makes, or of
// columns makes that `rows` reads; 0 where it cannot become part of that, or the backend would not
// have it.
int Grouping::shared_by(int rows, int other, bool columns) const {
  const Draft &into = draft(rows), &from = draft(other);
  if (!is_rows(into) || !is_rows(from) || into.domain != from.domain) return 0;
  const Attributes &axes = node(into.anchor).attributes, &others = node(from.anchor).attributes;
  if (columns ? !are_other_axes(into.domain, axes, others) : axes != others) return 0;
  if (!backend_.shares_rows(into.domain, axes_of(axes)) ||
      into.nodes.size() + from.nodes.size() > size_t(kLargestGroup) ||
      reads_more_than(kMostInputs, rows, from.nodes, from.inputs) ||
      !may_be_one(rows, other, columns)) {
    return 0;
  }
  std::set<int> shared;
  for (const int n : from.nodes) {
    if (columns && !kept_[size_t(n)] && reads_kept(n, other)) return 0;
    const bool follows = columns && kept_[size_t(n)] && !is_reduce(node(n).op);
    if (follows && !shares_columns(rows, other)) return 0;
    for (const int input : node(n).inputs) {
      const bool known = group_of(input) == rows || reads(rows, input);
      if (known && type_of(input).shape == into.domain) shared.insert(input);
    }
  }
  for (const int n : into.nodes) {
    if (!columns) break;
    for (const int input : node(n).inputs) {
      if (group_of(input) == other && type_of(input).shape == into.domain) shared.insert(input);
    }
  }
  return int(shared.size());
}

// Whether the later group can run as early as the other, and reads what that makes as its rows.
bool Grouping::may_be_one(int rows, int other, bool columns) const {
  const bool in_order = position_[size_t(rows)] < position_[size_t(other)];
  const int early = in_order ? rows : other, late = in_order ? other : rows;
  std::vector<int> sources = draft(late).sources;
  std::erase(sources, early);
  const std::vector<int>& nodes = draft(late).nodes;
  const auto fits = [&](int n) {
    if (columns && in_order && kept_[size_t(n)] && !is_reduce(node(n).op)) return true;
    if (columns && !in_order && reads_kept(n, early)) return false;
    return reads_rows(n, early) && !reads_columns(n, early);
  };
  std::vector<bool> seen;
  return can_wait(early, sources, seen) && std::all_of(nodes.begin(), nodes.end(), fits);
}

// Whether node n reads what `group` reduces, or makes of that.
bool Grouping::reads_kept(int n, int group) const {
  const std::vector<int>& inputs = node(n).inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](int input) {
    return group_of(input) == group && kept_[size_t(source_in_group(input, group) - leaves_)];
  });
}

bool Grouping::reads_columns(int n, int group) const {
  const std::vector<int>& inputs = node(n).inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](int input) {
    return group_of(input) == group && is_column(source_in_group(input, group) - leaves_);
  });
}

// Whether all that the columns `other` reduce follows from what group `rows` reads or makes.
bool Grouping::shares_columns(int rows, int other) const {
  std::set<int> known;
  for (const int n : draft(rows).nodes) add_matrices(n, other, known);
  const std::vector<int>& nodes = draft(other).nodes;
  return std::all_of(nodes.begin(), nodes.end(), [&](int n) {
    return !is_reduce(node(n).op) || follows(node(n).inputs[0], other, known);
  });
}
// Adds what node n reads of the domain's shape of group `other`, and what that computes it from.
void Grouping::add_matrices(int n, int other, std::set<int>& known) const {
  for (const int input : node(n).inputs) {
    if (type_of(input).shape != draft(other).domain || !known.insert(input).second) continue;
    if (group_of(input) != other) continue;
    add_matrices(source_in_group(input, other) - leaves_, other, known);
  }
}
// Whether `input` is known, or group `other` computes it from what is.
bool Grouping::follows(int input, int other, const std::set<int>& known) const {
  if (known.contains(input)) return true;
  if (group_of(input) != other) return false;
  const std::vector<int>& inputs = node(source_in_group(input, other) - leaves_).inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](int operand) { return follows(operand, other, known); });
}

// Group `rows` takes the place of the earlier one of the two.
void Grouping::take(int rows, int other) {
  const bool in_order = position_[size_t(rows)] < position_[size_t(other)];
  const int early = in_order ? rows : other, late = in_order ? other : rows;
  std::vector<int> sources = draft(late).sources;
  std::erase(sources, early);
  hoist(early, sources);
  order_[size_t(position_[size_t(early)])] = rows;
  order_.erase(order_.begin() + position_[size_t(late)]);
  for (size_t i = 0; i < order_.size(); i++) position_[size_t(order_[i])] = int(i);
  Draft& into = drafts_[size_t(rows)];
  const Draft from = std::exchange(drafts_[size_t(other)], {});
  into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
  std::sort(into.nodes.begin(), into.nodes.end());
  into.inputs += from.inputs;
  into.add_sources(from.sources);
  std::replace(group_.begin(), group_.end(), other, rows);
  for (Draft& reader : drafts_) {
    if (std::erase(reader.sources, other) > 0) reader.add_sources({rows});
  }
  std::erase(into.sources, rows);
}

bool Grouping::reads(int group, int input) const {
  const std::vector<int>& nodes = draft(group).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](int member) {
    const std::vector<int>& inputs = node(member).inputs;
    return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
  });
}

}  // namespace fornax
