// The planner: one pass that groups nodes greedily, one that finds what must be in memory, one that
// builds the groups and their memory plan.
//
// Groups run in the order of their numbers.  A node may join the last group that any of its
// operands comes from, because everything else that it reads is then ready before that group runs.
// It does if that group, or a later one, is still open to it:
//   - a pointwise node joins a group whose steps so far have its shape: the one that makes its
//     operand, else one of the newest that reads what it reads, else the newest of all;
//   - a reduction joins the pointwise group that makes its operand, and becomes the group's anchor;
//   - a pointwise node of the reduced shape joins the reduction that it reads;
//   - where the backend fuses rows, further reductions over the same axes join, and pointwise nodes
//     of the domain's shape that read what was reduced.
// Axes of extent 1 make no difference between shapes here: in the group's graph a node has the
// shape of the domain or of the anchor's result, its inputs are given axes to match, and views that
// only drop or insert such axes are seen through.  Other views join nothing: they are layouts of
// the value that they look at.
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "stream/alike.h"
#include "stream/plan.h"

namespace fornax {
namespace {

constexpr int kLargestGroup = 64;  // steps of work
constexpr int kMostInputs = 24;
constexpr int kLookBack = 4;  // newest groups that are tried

// Casts work element by element like the ops with a value column.
bool works_by_element(Op op) { return is_pointwise(op) || op == Op::cast; }

struct Draft {
  std::vector<int> nodes;
  int anchor = -1;  // node
  Shape domain;
  Shape result;  // of the anchor
  bool open = false;
  int inputs = 0;  // upper bound
};

// Where a value's elements lie.
struct Location {
  int value = -1;
  Layout layout;
};

class Planner {
 public:
  Planner(const Segment& segment, Backend& backend, int ordinal)
      : segment_(segment),
        leaves_(int(segment.leaves.size())),
        backend_(backend),
        ordinal_(ordinal),
        fuses_rows_(backend.fuses_rows()) {}

  Plan run() {
    group_nodes();
    find_stored();
    plan_.values = plan_.leaves = leaves_;
    locations_.resize(segment_.nodes.size());
    for (const Draft& draft : drafts_) emit(draft);
    for (int n = 0; n < int(segment_.nodes.size()); n++) {
      if (!segment_.nodes[size_t(n)].outlives) continue;
      const Location& location = locate(n + leaves_);
      plan_.results.push_back({n, location.value, location.layout});
    }
    find_last_uses();
    return std::move(plan_);
  }

 private:
  const SegmentNode& node(int n) const { return segment_.nodes[size_t(n)]; }
  const Type& type_of(int input) const {
    return input < leaves_ ? segment_.leaves[size_t(input)].type : node(input - leaves_).type;
  }

  // The group that computes what `input` looks at, -1 for leaves.
  int group_of(int input) const { return input < leaves_ ? -1 : group_[size_t(input - leaves_)]; }

  void group_nodes() {
    group_.assign(segment_.nodes.size(), -1);
    kept_.assign(segment_.nodes.size(), false);
    for (int n = 0; n < int(segment_.nodes.size()); n++) {
      const SegmentNode& x = node(n);
      if (is_view(x.op)) {
        group_[size_t(n)] = group_of(x.inputs[0]);
        continue;
      }
      int last = -1;
      for (int input : x.inputs) last = std::max(last, group_of(input));
      add(n, group_for(n, last));
    }
  }

  int group_for(int n, int last) {
    if (last >= 0 && joins(n, last)) return last;
    if (!works_by_element(node(n).op)) return open_group(n);
    const int newest = int(drafts_.size()) - 1;
    for (int group = newest; group > std::max(last, newest - kLookBack); group--) {
      if (drafts_[size_t(group)].anchor < 0 && joins(n, group) &&
          (group == newest || shares_operand(n, group))) {
        return group;
      }
    }
    return open_group(n);
  }

  bool shares_operand(int n, int group) const {
    for (int member : drafts_[size_t(group)].nodes) {
      for (int theirs : node(member).inputs) {
        const auto& ours = node(n).inputs;
        if (std::find(ours.begin(), ours.end(), theirs) != ours.end()) return true;
      }
    }
    return false;
  }

  int open_group(int n) {
    const SegmentNode& x = node(n);
    Draft draft;
    draft.open = works_by_element(x.op) || is_reduce(x.op);
    const bool own_shape = works_by_element(x.op) || x.inputs.empty();
    draft.domain = own_shape ? x.type.shape : type_of(x.inputs[0]).shape;
    drafts_.push_back(std::move(draft));
    return int(drafts_.size()) - 1;
  }

  void add(int n, int group) {
    Draft& draft = drafts_[size_t(group)];
    const SegmentNode& x = node(n);
    kept_[size_t(n)] = is_reduce(x.op) || (draft.anchor >= 0 && x.type.shape != draft.domain);
    if (!works_by_element(x.op) && draft.anchor < 0) {
      draft.anchor = n;
      draft.result = x.type.shape;
    }
    for (int input : x.inputs) draft.inputs += group_of(input) != group;
    draft.nodes.push_back(n);
    group_[size_t(n)] = group;
  }

  // Whether node n may become part of `group`.  Requires: its operands come from no later group.
  bool joins(int n, int group) const {
    const Draft& draft = drafts_[size_t(group)];
    const SegmentNode& x = node(n);
    if (!draft.open || int(draft.nodes.size()) >= kLargestGroup ||
        draft.inputs + int(x.inputs.size()) > kMostInputs) {
      return false;
    }
    if (fuses_rows_ && is_rows(draft)) return joins_rows(n, group);
    const bool by_element = works_by_element(x.op);
    if (!by_element && (!is_reduce(x.op) || draft.anchor >= 0)) return false;
    const Shape& wanted = draft.anchor >= 0 ? draft.result : draft.domain;
    if (by_element && !same_but_for_ones(x.type.shape, wanted)) return false;
    for (int input : x.inputs) {
      if (group_of(input) != group) continue;
      const int producer = seen_through(input) - leaves_;
      // Another view of what the group makes needs that in memory; and after the anchor only what
      // has the anchor's shape because it comes after it can be read.
      if (is_view(node(producer).op)) return false;
      if (by_element ? !same_but_for_ones(node(producer).type.shape, wanted)
                     : type_of(input).shape != draft.domain) {
        return false;
      }
      if (draft.anchor >= 0 && producer < draft.anchor) return false;
    }
    return true;
  }

  bool is_rows(const Draft& draft) const {
    return draft.anchor >= 0 && is_reduce(node(draft.anchor).op);
  }

  // Whether node n may become part of a group of rows: it has the domain's shape or the reduced
  // one, and reads what the group makes as that broadcasts to it.
  bool joins_rows(int n, int group) const {
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
    for (int input : x.inputs) {
      if (group_of(input) != group) continue;
      const int producer = row_source(input, draft) - leaves_;
      if (is_view(node(producer).op)) return false;
      const bool reduced = is_kept(producer);
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
  const Shape& viewed_shape(int input, const Draft& draft) const {
    while (input >= leaves_ && type_of(input).shape == draft.domain &&
           (node(input - leaves_).op == Op::expand || node(input - leaves_).op == Op::detach)) {
      input = node(input - leaves_).inputs[0];
    }
    return type_of(input).shape;
  }
  // As seen_through(), also through an expansion to the domain.
  int row_source(int input, const Draft& draft) const {
    int source = seen_through(input);
    if (source >= leaves_ && node(source - leaves_).op == Op::expand &&
        node(source - leaves_).type.shape == draft.domain) {
      source = seen_through(node(source - leaves_).inputs[0]);
    }
    return source;
  }
  // Whether node n of a group of rows has one value per row.
  bool is_kept(int n) const { return kept_[size_t(n)]; }

  // What `input` looks at through views that only drop or insert axes of extent 1.
  int seen_through(int input) const {
    while (input >= leaves_) {
      const SegmentNode& view = node(input - leaves_);
      if (view.op != Op::reshape && view.op != Op::expand && view.op != Op::detach) break;
      if (!same_but_for_ones(type_of(view.inputs[0]).shape, view.type.shape)) break;
      input = view.inputs[0];
    }
    return input;
  }

  // The shape that node n has in its group's graph.
  const Shape& shape_in_group(int n) const {
    const Draft& draft = drafts_[size_t(group_[size_t(n)])];
    if (n == draft.anchor) return node(n).type.shape;
    if (fuses_rows_ && is_rows(draft)) return is_kept(n) ? draft.result : draft.domain;
    return draft.anchor >= 0 && n > draft.anchor ? draft.result : draft.domain;
  }

  // Values read outside their group, or by somebody after the segment, are stored; of a view what
  // it looks at.
  void find_stored() {
    stored_.assign(segment_.nodes.size(), false);
    for (int n = int(segment_.nodes.size()); n-- > 0;) {
      if (node(n).outlives) stored_[size_t(n)] = true;
      for (int input : node(n).inputs) {
        if (input < leaves_) continue;
        if (is_view(node(n).op) ? stored_[size_t(n)] : group_of(input) != group_[size_t(n)]) {
          stored_[size_t(input - leaves_)] = true;
        }
      }
    }
  }

  // Where a leaf, a stored node or a view lies; copies where a view has no layout.
  Location locate(int input) {
    if (input < leaves_) return {input, segment_.leaves[size_t(input)].layout};
    Location& known = locations_[size_t(input - leaves_)];
    if (known.value >= 0) return known;
    const SegmentNode& view = node(input - leaves_);
    FORNAX_CHECK(is_view(view.op));
    Location source = locate(view.inputs[0]);
    Location result = source;
    if (!view_layout(view.op, view.attributes, type_of(view.inputs[0]), source.layout, view.type,
                     result.layout)) {
      source = copy(view.inputs[0], source, input - leaves_);
      result.value = source.value;
      FORNAX_CHECK(view_layout(view.op, view.attributes, type_of(view.inputs[0]), source.layout,
                               view.type, result.layout));
    }
    known = result;
    return result;
  }

  Location copy(int input, const Location& source, int for_node) {
    Group group;
    const Type& type = type_of(input);
    group.domain = type.shape;
    group.inputs = 1;
    group.layouts = {source.layout};
    group.layouts[0].offset = 0;
    group.graph.steps = {leaf_step(type, source.value), Step{Op::copy, type, {0}, {}, {}}};
    group.graph.outputs = {1};
    const int value = plan_.values++;
    PlanStep step;
    step.inputs = {source.value};
    step.outputs = {{value, type, Op::copy, -1}};
    step.node = for_node;
    finish(std::move(step), group, {source.layout.offset});
    return {value, row_major(type.shape)};
  }

  Step leaf_step(const Type& type, int value) const {
    const bool constant = value < leaves_ && segment_.leaves[size_t(value)].constant;
    Attributes attributes{int64_t(type.dtype)};
    attributes.insert(attributes.end(), type.shape.begin(), type.shape.end());
    return {constant ? Op::full : Op::leaf, type, {}, std::move(attributes), Scalar(0)};
  }

  // A group under way.
  struct Building {
    Group group;
    PlanStep step;
    std::vector<int64_t> offsets;             // of the inputs
    std::vector<std::pair<int, Shape>> read;  // by the inputs: what, and the axes it is given
    std::map<int, int> steps;                 // per node
  };

  // The step for an operand of node n.
  int operand(Building& building, int n, int input) {
    if (group_of(input) == group_[size_t(n)]) {
      return building.steps.at(row_source(input, drafts_[size_t(group_[size_t(n)])]) - leaves_);
    }
    auto& [group, step, offsets, read, steps] = building;
    const Location location = locate(input);
    Type type = type_of(input);
    Layout layout = location.layout;
    match_axes(node(n).type.shape, shape_in_group(n), type, layout);
    const auto known = std::find(read.begin(), read.end(), std::pair(input, type.shape));
    if (known != read.end()) return int(known - read.begin());
    read.emplace_back(input, type.shape);
    offsets.push_back(std::exchange(layout.offset, 0));
    group.graph.steps.push_back(leaf_step(type, location.value));
    group.layouts.push_back(layout);
    step.inputs.push_back(location.value);
    return group.inputs++;
  }

  void emit(const Draft& draft) {
    Building building;
    auto& [group, step, offsets, read, steps] = building;
    group.domain = draft.domain;
    step.node = draft.anchor >= 0 ? draft.anchor : draft.nodes.back();
    for (int n : draft.nodes) {  // inputs come before all work
      for (int input : node(n).inputs) {
        if (group_of(input) != group_[size_t(n)]) operand(building, n, input);
      }
    }
    for (int n : draft.nodes) {
      const Type type{node(n).type.dtype, shape_in_group(n)};
      Step work{node(n).op, type, {}, node(n).attributes, Scalar(0)};
      for (int input : node(n).inputs) work.inputs.push_back(operand(building, n, input));
      const int number = int(group.graph.steps.size());
      steps[n] = number;
      if (n == draft.anchor) group.anchor = number;
      group.graph.steps.push_back(std::move(work));
      if (!stored_[size_t(n)]) continue;
      group.graph.outputs.push_back(number);
      const int value = plan_.values++;
      locations_[size_t(n)] = {value, row_major(node(n).type.shape)};
      step.outputs.push_back({value, type, node(n).op, -1});
    }
    if (group.graph.outputs.empty()) return;  // only its views' views were wanted, or nothing
    finish(std::move(step), group, offsets);
  }

  void finish(PlanStep step, const Group& group, const std::vector<int64_t>& offsets) {
    if (settings().verify) verify(group.graph);
    for (size_t i = size_t(group.inputs); i < group.graph.steps.size(); i++) {
      if (!step.ops.empty()) step.ops += ' ';
      step.ops += info(group.graph.steps[i].op).name;
    }
    for (int i = 0; i < group.inputs; i++) {
      const Step& input = group.graph.steps[size_t(i)];
      if (input.op == Op::leaf) {
        step.bytes += size_t(input.type.shape.element_count()) * size_of(input.type.dtype);
      }
    }
    for (const PlanOutput& output : step.outputs) {
      step.bytes += size_t(output.type.shape.element_count()) * size_of(output.type.dtype);
    }
    log(5, "group {}:\n{}", step.ops, logs(5) ? text_of(group.graph) : "");
    prepare(step, group);
    step.input_offsets = offsets;
    donors_of(step, group);
    plan_.steps.push_back(std::move(step));
  }

  // A group that the backend refuses fails by itself when it is run, like any other error.
  void prepare(PlanStep& step, const Group& group) {
    try {
      step.prepared = backend_.prepare(ordinal_, group);
    } catch (const Error& error) {
      step.failure = std::make_shared<const Error>(error);
    } catch (const std::exception& error) {
      step.failure = std::make_shared<const Error>(ErrorKind::internal,
                                                   fmt::format("{}: {}", step.ops, error.what()));
    }
    plan_.complete &= step.prepared != nullptr;
  }

  // Inputs that an output of the same type could overwrite; whether they die there is found later.
  void donors_of(PlanStep& step, const Group& group) {
    candidates_.emplace_back();
    if (group.anchor >= 0) return;
    for (int i = 0; i < group.inputs; i++) {
      const Step& input = group.graph.steps[size_t(i)];
      const int value = step.inputs[size_t(i)];
      const bool writable = value >= leaves_ || segment_.leaves[size_t(value)].dies;
      // A value that comes in twice under different layouts is read after the output is written.
      const bool once = std::count(step.inputs.begin(), step.inputs.end(), value) == 1;
      if (input.op == Op::leaf && writable && once && step.input_offsets[size_t(i)] == 0 &&
          is_contiguous(input.type.shape, group.layouts[size_t(i)])) {
        candidates_.back().push_back({i, input.type});
      }
    }
  }

  void find_last_uses() {
    std::vector<int> last(size_t(plan_.values), -1);
    for (int s = 0; s < int(plan_.steps.size()); s++) {
      for (int value : plan_.steps[size_t(s)].inputs) last[size_t(value)] = s;
      for (const PlanOutput& output : plan_.steps[size_t(s)].outputs)
        last[size_t(output.value)] = s;
    }
    for (const PlanResult& result : plan_.results) last[size_t(result.value)] = -1;
    for (int value = 0; value < plan_.values; value++) {
      if (last[size_t(value)] < 0) continue;
      if (value < leaves_ && !segment_.leaves[size_t(value)].dies) continue;
      plan_.steps[size_t(last[size_t(value)])].last_uses.push_back(value);
    }
    for (size_t s = 0; s < plan_.steps.size(); s++) choose_donors(plan_.steps[s], candidates_[s]);
  }

  struct Candidate {
    int input;
    Type type;
  };

  static void choose_donors(PlanStep& step, std::vector<Candidate>& candidates) {
    for (PlanOutput& output : step.outputs) {
      for (Candidate& candidate : candidates) {
        if (candidate.input < 0 || candidate.type != output.type) continue;
        const int value = step.inputs[size_t(candidate.input)];
        auto dies = std::find(step.last_uses.begin(), step.last_uses.end(), value);
        if (dies == step.last_uses.end()) continue;
        output.donor = candidate.input;
        candidate.input = -1;
        break;
      }
    }
  }

  const Segment& segment_;
  const int leaves_;
  Backend& backend_;
  const int ordinal_;
  const bool fuses_rows_;
  Plan plan_;
  std::vector<Draft> drafts_;
  std::vector<int> group_;    // per node; of a view the group of what it looks at
  std::vector<bool> kept_;    // per node: of a group of rows, one value per row
  std::vector<bool> stored_;  // per node
  std::vector<Location> locations_;
  std::vector<std::vector<Candidate>> candidates_;  // per plan step
};

}  // namespace

Plan make_plan(const Segment& segment, Backend& backend, int ordinal) {
  Plan plan = Planner(segment, backend, ordinal).run();
  if (backend.wants_arenas()) plan_arena(segment, plan);
  return plan;
}

}  // namespace fornax
