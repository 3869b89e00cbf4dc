// The planner: groups nodes (stream/grouping.h), finds what must be in memory, and builds the
// groups and their memory plan.
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "stream/alike.h"
#include "stream/grouping.h"

namespace fornax {
namespace {

// Where a value's elements lie.
struct Location {
  int value = -1;
  Layout layout;
};

// Elements that are repeated count once.
size_t bytes_read(const Type& type, const Layout& layout) {
  size_t bytes = size_of(type.dtype);
  for (int axis = 0; axis < type.shape.rank(); axis++) {
    if (layout.strides[axis] != 0 || type.shape[axis] == 0) bytes *= size_t(type.shape[axis]);
  }
  return bytes;
}

class Planner {
 public:
  Planner(const Segment& segment, Backend& backend, int ordinal)
      : segment_(segment),
        leaves_(int(segment.leaves.size())),
        backend_(backend),
        ordinal_(ordinal),
        grouping_(segment, backend) {}

  Plan run() {
    find_inlined();
    find_stored();
    plan_.values = plan_.leaves = leaves_;
    locations_.resize(segment_.nodes.size());
    for (const int group : grouping_.order()) emit(group);
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

  // Casts of what broadcasts, such as weights, are done where they are read, if all who read them
  // can do so and nothing else is computed with them.
  void find_inlined() {
    inlined_.assign(segment_.nodes.size(), false);
    const auto is_cast = [&](int n) { return node(n).op == Op::cast; };
    for (const int group : grouping_.order()) {
      const std::vector<int>& nodes = grouping_.draft(group).nodes;
      if (!std::all_of(nodes.begin(), nodes.end(), is_cast)) continue;
      for (const int n : nodes) inlined_[size_t(n)] = !node(n).outlives;
    }
    for (int n = 0; n < int(segment_.nodes.size()); n++) {
      for (const int input : node(n).inputs) {
        if (input >= leaves_ && !reads_broadcast(n, input))
          inlined_[size_t(input - leaves_)] = false;
      }
    }
  }
  bool reads_broadcast(int n, int input) const {
    const SegmentNode& x = node(n);
    return (is_pointwise(x.op) || x.op == Op::cast) &&
           grouping_.group_of(input) != grouping_.group_of(n + leaves_) &&
           grouping_.shape_in_group(n) == x.type.shape &&
           type_of(input).shape.element_count() < x.type.shape.element_count();
  }
  bool is_inlined(int input) const { return input >= leaves_ && inlined_[size_t(input - leaves_)]; }

  // Values read outside their group, or by somebody after the segment, are stored; of a view what
  // it looks at.
  void find_stored() {
    stored_.assign(segment_.nodes.size(), false);
    for (int n = int(segment_.nodes.size()); n-- > 0;) {
      if (node(n).outlives) stored_[size_t(n)] = true;
      for (int input : node(n).inputs) {
        if (input < leaves_ || is_inlined(input)) continue;
        const bool elsewhere =
            is_inlined(n + leaves_) || grouping_.group_of(input) != grouping_.group_of(n + leaves_);
        if (is_view(node(n).op) ? stored_[size_t(n)] : elsewhere) {
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
    int number;
    Group group;
    PlanStep step;
    std::vector<int64_t> offsets;             // of the inputs
    std::vector<std::pair<int, Shape>> read;  // by the inputs: what, and the axes it is given
    std::map<int, int> steps;                 // per node
  };

  // The step for operand number `which` of node n.
  int operand(Building& building, int n, size_t which) {
    const int input = node(n).inputs[which];
    if (grouping_.group_of(input) == building.number) {
      return building.steps.at(grouping_.source_in_group(input, building.number) - leaves_);
    }
    if (!is_inlined(input)) return input_for(building, n, which, input);
    auto& [_, group, step, offsets, read, steps] = building;
    const int cast = input - leaves_;
    const auto known = steps.find(cast);
    if (known != steps.end()) return known->second;
    const int source = input_for(building, n, which, node(cast).inputs[0]);
    group.graph.steps.push_back({Op::cast,
                                 {node(cast).type.dtype, grouping_.shape_in_group(n)},
                                 {source},
                                 node(cast).attributes,
                                 Scalar(0)});
    return steps[cast] = int(group.graph.steps.size()) - 1;
  }

  // The group's input for `input`, which is read by operand number `which` of node n.
  int input_for(Building& building, int n, size_t which, int input) {
    auto& [number, group, step, offsets, read, steps] = building;
    const Location location = locate(input);
    Type type = type_of(input);
    Layout layout = location.layout;
    const Shape &own = node(n).type.shape, &shape = grouping_.shape_in_group(n);
    if (is_inlined(node(n).inputs[which])) {
      broadcast_to(shape, type, layout);
    } else if (n != grouping_.draft(number).anchor || own == shape) {
      match_axes(own, shape, type, layout);
    } else {
      (which == 0 ? split_left : split_right)(shape, type, layout);
    }
    const auto known = std::find(read.begin(), read.end(), std::pair(input, type.shape));
    if (known != read.end()) return int(known - read.begin());
    read.emplace_back(input, type.shape);
    offsets.push_back(std::exchange(layout.offset, 0));
    group.graph.steps.push_back(leaf_step(type, location.value));
    group.layouts.push_back(layout);
    step.inputs.push_back(location.value);
    return group.inputs++;
  }

  void emit(int number) {
    const Draft& draft = grouping_.draft(number);
    // Only its views' views may be wanted, or nothing.
    const auto is_stored = [&](int n) { return stored_[size_t(n)]; };
    if (std::none_of(draft.nodes.begin(), draft.nodes.end(), is_stored)) return;
    Building building{number, {}, {}, {}, {}, {}};
    auto& [_, group, step, offsets, read, steps] = building;
    group.domain = draft.domain;
    step.node = draft.anchor >= 0 ? draft.anchor : draft.nodes.back();
    for (int n : draft.nodes) {  // inputs come before all work
      for (size_t i = 0; i < node(n).inputs.size(); i++) {
        const int input = node(n).inputs[i];
        if (grouping_.group_of(input) == number) continue;
        input_for(building, n, i, is_inlined(input) ? node(input - leaves_).inputs[0] : input);
      }
    }
    for (int n : draft.nodes) {
      const Type type{node(n).type.dtype, grouping_.shape_in_group(n)};
      Step work{node(n).op, type, {}, node(n).attributes, Scalar(0)};
      for (size_t i = 0; i < node(n).inputs.size(); i++) {
        work.inputs.push_back(operand(building, n, i));
      }
      const int place = int(group.graph.steps.size());
      steps[n] = place;
      if (n == draft.anchor) group.anchor = place;
      group.graph.steps.push_back(std::move(work));
      if (!stored_[size_t(n)]) continue;
      group.graph.outputs.push_back(place);
      const int value = plan_.values++;
      locations_[size_t(n)] = {value, row_major(node(n).type.shape)};
      step.outputs.push_back({value, type, node(n).op, -1});
    }
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
      if (input.op == Op::leaf) step.bytes += bytes_read(input.type, group.layouts[size_t(i)]);
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
    const Step* anchor = group.anchor < 0 ? nullptr : &group.graph.steps[size_t(group.anchor)];
    if (anchor && is_reduce(anchor->op)) return;
    for (int i = 0; i < group.inputs; i++) {
      if (anchor && std::count(anchor->inputs.begin(), anchor->inputs.end(), i) > 0) continue;
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
  const Grouping grouping_;
  Plan plan_;
  std::vector<bool> inlined_, stored_;  // per node
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
