#include "stream/grouping.h"

#include <algorithm>
#include <set>
#include <utility>

#include "graph/attributes.h"
#include "stream/alike.h"

namespace fornax {
namespace {

constexpr int kLookBack = 4;  // newest groups that are tried

// Reductions of few elements take no longer than a launch does: as many as this share one.
constexpr int kMostTogether = 4;
constexpr int64_t kFewElements = 1 << 20;
constexpr int kFarBack = 64;  // groups that are tried for it

}  // namespace

void Draft::add_sources(const std::vector<int>& more) {
  sources.insert(sources.end(), more.begin(), more.end());
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
}

Grouping::Grouping(const Segment& segment, const Backend& backend)
    : segment_(segment), leaves_(int(segment.leaves.size())), backend_(backend) {
  group_.assign(segment.nodes.size(), -1);
  kept_.assign(segment.nodes.size(), false);
  for (int n = 0; n < int(segment.nodes.size()); n++) {
    const SegmentNode& x = node(n);
    if (is_view(x.op)) {
      group_[size_t(n)] = group_of(x.inputs[0]);
    } else {
      absorb_for(n);
      const int group = group_for(n);
      add(n, group >= 0 ? group : open_group(n));
    }
  }
  if (!backend_.fuses_rows()) return;
  share_rows(false);
  if (!share_rows(true)) return;
  // What the first columns brought with them may be what others share, or all that stood between.
  share_rows(true);
  share_rows(false);
}

// -1: none.
int Grouping::group_for(int n) const {
  const std::vector<int> sources = operand_groups(n);
  for (const int group : sources) {
    std::vector<bool> seen;
    if (joins(n, group) && can_wait(group, sources, seen)) return group;
  }
  const bool reduces = is_reduce(node(n).op);
  if (!works_by_element(node(n).op) && !reduces) return -1;
  const int newest = int(order_.size()) - 1;
  const int last = sources.empty() ? -1 : position_[size_t(sources[0])];
  for (int position = newest; position > std::max(last, newest - kLookBack); position--) {
    const int group = order_[size_t(position)];
    const bool beside = reduces ? is_rows(draft(group)) : draft(group).anchor < 0;
    if (beside && joins(n, group) && (position == newest || shares_operand(n, group))) return group;
  }
  return reduces ? group_together_with(n, sources) : -1;
}

// A group of reductions alone, and what follows them, which can wait for the operand of reduction
// n.
int Grouping::group_together_with(int n, const std::vector<int>& sources) const {
  if (type_of(node(n).inputs[0]).shape.element_count() > kFewElements) return -1;
  const int newest = int(order_.size()) - 1;
  for (int position = newest; position > newest - kFarBack && position >= 0; position--) {
    const int group = order_[size_t(position)];
    const std::vector<int>& nodes = draft(group).nodes;
    const auto is_kept = [&](int member) { return bool(kept_[size_t(member)]); };
    const auto reduces = [&](int member) { return is_reduce(node(member).op); };
    std::vector<bool> seen;
    if (is_rows(draft(group)) && std::all_of(nodes.begin(), nodes.end(), is_kept) &&
        std::count_if(nodes.begin(), nodes.end(), reduces) < kMostTogether && joins(n, group) &&
        can_wait(group, sources, seen)) {
      return group;
    }
  }
  return -1;
}

// Where node n joins a group that ends in something else than pointwise work, pointwise groups that
// only it reads become part of that.
void Grouping::absorb_for(int n) {
  const std::vector<int> sources = operand_groups(n);
  if (sources.size() < 2 || !works_by_element(node(n).op)) return;
  for (const int group : sources) {
    const int anchor = draft(group).anchor;
    // In rows, it has a value per row.
    const bool takes = is_rows(draft(group)) ? node(n).type.shape != draft(group).domain
                                             : anchor >= 0 && !is_reduce(node(anchor).op);
    std::vector<bool> seen;
    if (!takes || !joins(n, group) || !can_wait(group, sources, seen)) continue;
    for (const int other : sources) {
      if (other != group && may_absorb(group, other)) absorb(group, other);
    }
    return;
  }
}

bool Grouping::may_absorb(int group, int other) const {
  const Draft &into = draft(group), &from = draft(other);
  const auto reads_it = [&](const Draft& reader) {
    return std::find(reader.sources.begin(), reader.sources.end(), other) != reader.sources.end();
  };
  return from.anchor < 0 && same_but_for_ones(from.domain, into.result) &&
         into.nodes.size() + from.nodes.size() < size_t(kLargestGroup) &&
         !reads_more_than(kMostInputs - 1, group, from.nodes, from.inputs) &&
         std::none_of(drafts_.begin(), drafts_.end(), reads_it);
}

void Grouping::absorb(int group, int other) {
  Draft from = std::exchange(drafts_[size_t(other)], {});
  hoist(group, from.sources);
  Draft& into = drafts_[size_t(group)];
  for (const int n : from.nodes) kept_[size_t(n)] = true;
  into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
  into.inputs += from.inputs;
  into.add_sources(from.sources);
  std::replace(group_.begin(), group_.end(), other, group);
  order_.erase(order_.begin() + position_[size_t(other)]);
  for (size_t i = 0; i < order_.size(); i++) position_[size_t(order_[i])] = int(i);
}

// Whether node n of a group of rows reduces other axes than its anchor does.
bool Grouping::is_column(int n) const {
  const Draft& own = draft(group_[size_t(n)]);
  return is_reduce(node(n).op) && node(n).attributes != node(own.anchor).attributes;
}

// The groups that make node n's operands, those that run last first.
std::vector<int> Grouping::operand_groups(int n) const {
  std::vector<int> groups;
  for (const int input : node(n).inputs) {
    if (group_of(input) >= 0) groups.push_back(group_of(input));
  }
  std::sort(groups.begin(), groups.end(),
            [&](int a, int b) { return position_[size_t(a)] > position_[size_t(b)]; });
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

// Whether `sources` other than `group` can run before it; those that come after it now, and what
// they in turn need of that, are marked in `seen`.
bool Grouping::can_wait(int group, const std::vector<int>& sources, std::vector<bool>& seen) const {
  for (const int source : sources) {
    if (position_[size_t(source)] <= position_[size_t(group)]) continue;
    seen.resize(drafts_.size());
    if (seen[size_t(source)]) continue;
    seen[size_t(source)] = true;
    const std::vector<int>& needed = draft(source).sources;
    if (std::find(needed.begin(), needed.end(), group) != needed.end()) return false;
    if (!can_wait(group, needed, seen)) return false;
  }
  return true;
}

void Grouping::hoist(int group, const std::vector<int>& sources) {
  std::vector<bool> seen;
  can_wait(group, sources, seen);
  if (seen.empty()) return;
  const size_t from = size_t(position_[size_t(group)]);
  std::stable_partition(order_.begin() + int64_t(from), order_.end(),
                        [&](int g) { return seen[size_t(g)]; });
  for (size_t i = from; i < order_.size(); i++) position_[size_t(order_[i])] = int(i);
}

int Grouping::open_group(int n) {
  const SegmentNode& x = node(n);
  const bool by_element = works_by_element(x.op);
  Draft draft;
  draft.open = by_element || backend_.fuses_after(x.op);
  draft.domain = by_element || x.inputs.empty() ? x.type.shape : type_of(x.inputs[0]).shape;
  const int group = int(drafts_.size());
  drafts_.push_back(std::move(draft));
  position_.push_back(int(order_.size()));
  order_.push_back(group);
  return group;
}

void Grouping::add(int n, int group) {
  const std::vector<int> sources = operand_groups(n);
  hoist(group, sources);
  Draft& draft = drafts_[size_t(group)];
  const SegmentNode& x = node(n);
  kept_[size_t(n)] = is_reduce(x.op) || (draft.anchor >= 0 && x.type.shape != draft.domain);
  if (!works_by_element(x.op) && draft.anchor < 0) {
    draft.anchor = n;
    draft.result = x.type.shape;
  }
  if (may_split(draft, x.type.shape)) {
    draft.domain = split_rows(draft.domain, x.type.shape);
    draft.result = x.type.shape;
  }
  for (const int input : x.inputs) draft.inputs += group_of(input) != group;
  draft.add_sources(sources);
  std::erase(draft.sources, group);
  draft.nodes.push_back(n);
  group_[size_t(n)] = group;
}

// Whether a group and `nodes`, which have `inputs` inputs at most, together read more than so many
// values.  In rows they are counted: what follows several reductions reads the same numbers.
bool Grouping::reads_more_than(int most, int group, const std::vector<int>& nodes,
                               int inputs) const {
  const Draft& draft = drafts_[size_t(group)];
  if (draft.inputs + inputs <= most) return false;
  if (!is_rows(draft)) return true;
  const int other = group_[size_t(nodes[0])];
  std::set<int> read;
  for (const std::vector<int>* members : {&draft.nodes, &nodes}) {
    for (const int member : *members) {
      for (const int input : node(member).inputs) {
        const int maker = group_of(input);
        if (maker < 0 || (maker != group && maker != other)) read.insert(input);
      }
    }
  }
  return int(read.size()) > most;
}

// Whether node n reads what a member of the group reads; for a reduction it is enough that its
// operand does, which may be computed with it.
bool Grouping::shares_operand(int n, int group) const {
  std::vector<int> ours = node(n).inputs;
  const int maker = ours[0] - leaves_;
  if (is_reduce(node(n).op) && maker >= 0 && works_by_element(node(maker).op)) {
    ours.insert(ours.end(), node(maker).inputs.begin(), node(maker).inputs.end());
  }
  for (const int member : draft(group).nodes) {
    for (const int theirs : node(member).inputs) {
      if (std::find(ours.begin(), ours.end(), theirs) != ours.end()) return true;
    }
  }
  return false;
}

// Whether the group is a product alone, and `shape` that of its result with its rows split.
bool Grouping::may_split(const Draft& draft, const Shape& shape) const {
  return draft.anchor >= 0 && node(draft.anchor).op == Op::matmul && draft.nodes.size() == 1 &&
         splits_rows(draft.result, shape);
}

bool Grouping::is_rows(const Draft& draft) const {
  return backend_.fuses_rows() && draft.anchor >= 0 && is_reduce(node(draft.anchor).op);
}

// Whether node n fits into `group`.
bool Grouping::joins(int n, int group) const {
  const Draft& draft = drafts_[size_t(group)];
  const SegmentNode& x = node(n);
  if (!draft.open || int(draft.nodes.size()) >= kLargestGroup ||
      reads_more_than(kMostInputs, group, {n}, int(x.inputs.size()))) {
    return false;
  }
  if (is_rows(draft)) return joins_rows(n, group);
  const bool by_element = works_by_element(x.op);
  if (!by_element && (!is_reduce(x.op) || draft.anchor >= 0)) return false;
  const Shape& wanted = may_split(draft, x.type.shape) ? x.type.shape
                        : draft.anchor >= 0            ? draft.result
                                                       : draft.domain;
  if (by_element && !same_but_for_ones(x.type.shape, wanted)) return false;
  for (const int input : x.inputs) {
    if (group_of(input) != group) continue;
    const int producer = source_in_group(input, group) - leaves_;
    // Another view of what the group makes needs that in memory; and after a reduction only what
    // has its result's shape because it comes after it can be read.
    if (is_view(node(producer).op)) return false;
    if (by_element ? !same_but_for_ones(type_of(input).shape, wanted)
                   : type_of(input).shape != draft.domain) {
      return false;
    }
    if (draft.anchor >= 0 && is_reduce(node(draft.anchor).op) && producer < draft.anchor) {
      return false;
    }
  }
  return true;
}

// Whether node n fits into a group of rows: it has the domain's shape or the reduced one.
bool Grouping::joins_rows(int n, int group) const {
  const Draft& draft = drafts_[size_t(group)];
  const SegmentNode& x = node(n);
  const bool by_element = works_by_element(x.op);
  const bool whole = by_element && x.type.shape == draft.domain;
  if (!by_element) {
    if (!is_reduce(x.op) || x.attributes != node(draft.anchor).attributes ||
        type_of(x.inputs[0]).shape != draft.domain) {
      return false;
    }
  } else if (!whole && !same_but_for_ones(x.type.shape, draft.result)) {
    return false;
  }
  return reads_rows(n, group);
}

// Whether node n reads what a group of rows makes as that broadcasts to it.
bool Grouping::reads_rows(int n, int group) const {
  const Draft& draft = drafts_[size_t(group)];
  const SegmentNode& x = node(n);
  const bool by_element = works_by_element(x.op);
  const bool whole = by_element && x.type.shape == draft.domain;
  for (const int input : x.inputs) {
    if (group_of(input) != group) continue;
    const int producer = source_in_group(input, group) - leaves_;
    if (is_view(node(producer).op)) return false;
    const bool reduced = kept_[size_t(producer)];
    if (!by_element ? reduced : !whole && !reduced) return false;
    if (whole && reduced && !broadcasts_alike(viewed_shape(input, draft), draft.result)) {
      return false;
    }
    if (!whole && by_element && !same_but_for_ones(type_of(input).shape, draft.result)) {
      return false;
    }
  }
  return true;
}

// The shape of `input` before it is expanded to the domain.
const Shape& Grouping::viewed_shape(int input, const Draft& draft) const {
  while (input >= leaves_ && type_of(input).shape == draft.domain &&
         (node(input - leaves_).op == Op::expand || node(input - leaves_).op == Op::detach)) {
    input = node(input - leaves_).inputs[0];
  }
  return type_of(input).shape;
}

// What it looks at; in rows through an expansion to the domain too, after a product through a
// reshape that splits its rows.
int Grouping::source_in_group(int input, int group) const {
  const Draft& draft = drafts_[size_t(group)];
  const int source = seen_through(input);
  if (source < leaves_ || draft.anchor < 0) return source;
  const SegmentNode& view = node(source - leaves_);
  if (is_rows(draft) && view.op == Op::expand && view.type.shape == draft.domain) {
    return seen_through(view.inputs[0]);
  }
  const int anchor = draft.anchor + leaves_;
  const bool split = node(draft.anchor).op == Op::matmul && view.op == Op::reshape &&
                     seen_through(view.inputs[0]) == anchor &&
                     splits_rows(type_of(anchor).shape, view.type.shape);
  return split ? anchor : source;
}

// What `input` looks at through views that only drop or insert axes of extent 1.
int Grouping::seen_through(int input) const {
  while (input >= leaves_) {
    const SegmentNode& view = node(input - leaves_);
    if (view.op != Op::reshape && view.op != Op::expand && view.op != Op::detach) break;
    if (!same_but_for_ones(type_of(view.inputs[0]).shape, view.type.shape)) break;
    input = view.inputs[0];
  }
  return input;
}

const Shape& Grouping::shape_in_group(int n) const {
  const Draft& draft = drafts_[size_t(group_[size_t(n)])];
  if (n == draft.anchor) return draft.result;
  if (is_rows(draft) && is_column(n)) return node(n).type.shape;
  if (is_rows(draft)) return kept_[size_t(n)] ? draft.result : draft.domain;
  const bool after = draft.anchor >= 0 && (n > draft.anchor || !is_reduce(node(draft.anchor).op));
  return after ? draft.result : draft.domain;
}

}  // namespace fornax
