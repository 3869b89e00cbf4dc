// The planner: groups nodes (stream/grouping.h), chooses what must be in memory (stream/storage.h)
// and where (stream/placement.h), and builds the groups and their memory plan.
#include <algorithm>
#include <climits>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "stream/alike.h"
#include "stream/placement.h"

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
        grouping_(segment, backend),
        storage_(choose_storage(segment, grouping_, backend)),
        placements_(choose_placements(segment, grouping_, storage_, backend)) {}

  Plan run() {
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
  const Type& type_of(int input) const { return segment_.type_of(input); }

  // Where a leaf, a stored node or a view lies; copies where a view has no layout.  Without
  // recursion: views of views may be many.
  Location locate(int input) {
    std::vector<int> views;
    while (input >= leaves_ && locations_[size_t(input - leaves_)].value < 0) {
      views.push_back(input - leaves_);
      input = node(views.back()).inputs[0];
    }
    Location location = input < leaves_ ? Location{input, segment_.leaves[size_t(input)].layout}
                                        : locations_[size_t(input - leaves_)];
    for (; !views.empty(); views.pop_back()) {
      location = locations_[size_t(views.back())] = locate_view(views.back(), location);
    }
    return location;
  }
  Location locate_view(int number, Location source) {
    const SegmentNode& view = node(number);
    FORNAX_CHECK(is_view(view.op));
    const Type& type = type_of(view.inputs[0]);
    Location result = source;
    if (!view_layout(view.op, view.attributes, type, source.layout, view.type, result.layout)) {
      source = copy(view.inputs[0], source, number);
      result.value = source.value;
      FORNAX_CHECK(
          view_layout(view.op, view.attributes, type, source.layout, view.type, result.layout));
    }
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

  // A group under way.  Its steps are numbered among the inputs, or from kWork on until it is known
  // how many inputs there are.
  static constexpr int kWork = 1 << 20;
  struct Building {
    int number;
    Group group;
    PlanStep step;
    std::vector<int64_t> offsets;             // of the inputs
    std::vector<std::pair<int, Shape>> read;  // by the inputs: what, and the axes it is given
    std::vector<Step> work;
    std::map<int, int> steps;  // per node
  };

  // The shape of node n in the group under way, which may do again what it does elsewhere.
  const Shape& shape_here(const Building& building, int n) const {
    const bool own = grouping_.group_of(n + leaves_) == building.number;
    return own ? grouping_.shape_in_group(n) : node(n).type.shape;
  }
  bool is_inlined(int input) const {
    return input >= leaves_ && storage_.inlined[size_t(input - leaves_)];
  }
  int add_work(Building& building, int n, Step work) {
    building.work.push_back(std::move(work));
    return building.steps[n] = kWork + int(building.work.size()) - 1;
  }

  // The step for operand number `which` of node n.
  int operand(Building& building, int n, size_t which) {
    const int input = node(n).inputs[which];
    if (grouping_.group_of(n + leaves_) == building.number &&
        grouping_.group_of(input) == building.number) {
      return building.steps.at(grouping_.source_in_group(input, building.number) - leaves_);
    }
    const int maker = input - leaves_;
    const auto known = building.steps.find(maker);
    if (known != building.steps.end()) return known->second;
    if (is_inlined(input)) return inlined(building, n, which);
    if (maker >= 0 && !is_view(node(maker).op) && !storage_.stored[size_t(maker)]) {
      return compute(building, maker);
    }
    return input_for(building, n, which, input);
  }

  // The step for operand number `which` of node n, which all who read it do by themselves.
  int inlined(Building& building, int n, size_t which) {
    const int maker = node(n).inputs[which] - leaves_;
    if (node(maker).op != Op::cast) return positions(building, maker);
    const int from = node(maker).inputs[0];
    Step work{Op::cast, {node(maker).type.dtype, {}}, {}, node(maker).attributes, {}};
    if (is_inlined(from)) {
      work.inputs = {positions(building, from - leaves_)};
      work.type.shape = building.work[size_t(work.inputs[0] - kWork)].type.shape;
    } else {
      work.inputs = {input_for(building, n, which, from)};
      work.type.shape = shape_here(building, n);
    }
    return add_work(building, maker, std::move(work));
  }

  // The step for node n, an arange or a view of it.
  int positions(Building& building, int n) {
    while (is_view(node(n).op)) n = node(n).inputs[0] - leaves_;
    const auto known = building.steps.find(n);
    if (known != building.steps.end()) return known->second;
    Step work{Op::arange, node(n).type, {}, node(n).attributes, {}};
    for (const int number : node(n).inputs) {
      const Location location = locate(number);
      work.inputs.push_back(
          add_input(building, number, type_of(number), location.layout, location.value));
    }
    return add_work(building, n, std::move(work));
  }

  int compute(Building& building, int n) {
    Step work{
        node(n).op, {node(n).type.dtype, shape_here(building, n)}, {}, node(n).attributes, {}};
    for (size_t i = 0; i < node(n).inputs.size(); i++) {
      work.inputs.push_back(operand(building, n, i));
    }
    return add_work(building, n, std::move(work));
  }

  // The group's input for `input`, which is read by operand number `which` of node n.
  int input_for(Building& building, int n, size_t which, int input) {
    const Location location = locate(input);
    Type type = type_of(input);
    Layout layout = location.layout;
    const Shape &own = node(n).type.shape, &shape = shape_here(building, n);
    if (is_inlined(node(n).inputs[which])) {
      broadcast_to(shape, type, layout);
    } else if (n != grouping_.draft(building.number).anchor || own == shape) {
      match_axes(own, shape, type, layout);
    } else {
      (which == 0 ? split_left : split_right)(shape, type, layout);
    }
    return add_input(building, input, type, layout, location.value);
  }
  int add_input(Building& building, int input, const Type& type, Layout layout, int value) {
    const auto known =
        std::find(building.read.begin(), building.read.end(), std::pair(input, type.shape));
    if (known != building.read.end()) return int(known - building.read.begin());
    building.read.emplace_back(input, type.shape);
    building.offsets.push_back(std::exchange(layout.offset, 0));
    building.group.graph.steps.push_back(leaf_step(type, value));
    building.group.layouts.push_back(layout);
    building.step.inputs.push_back(value);
    return building.group.inputs++;
  }

  // The group's nodes that its stored ones follow from, and the anchor.
  std::vector<int> needed_nodes(int number) const {
    const Draft& draft = grouping_.draft(number);
    std::set<int> needed;
    for (size_t i = draft.nodes.size(); i-- > 0;) {
      const int n = draft.nodes[i];
      if (!storage_.stored[size_t(n)] && n != draft.anchor && !needed.contains(n)) continue;
      needed.insert(n);
      for (const int input : node(n).inputs) {
        if (grouping_.group_of(input) != number) continue;
        needed.insert(grouping_.source_in_group(input, number) - leaves_);
      }
    }
    std::vector<int> list;
    for (const int n : draft.nodes) {
      if (needed.contains(n)) list.push_back(n);
    }
    return list;
  }

  void emit(int number) {
    const Draft& draft = grouping_.draft(number);
    // Only its views' views may be wanted, or nothing.
    const auto is_stored = [&](int n) { return storage_.stored[size_t(n)]; };
    if (std::none_of(draft.nodes.begin(), draft.nodes.end(), is_stored)) return;
    if (draft.anchor >= 0 && placements_.assembled[size_t(draft.anchor)]) return;
    Building building{number, {}, {}, {}, {}, {}, {}};
    Group& group = building.group;
    group.domain = draft.domain;
    building.step.node = draft.anchor >= 0 ? draft.anchor : draft.nodes.back();
    for (const int n : needed_nodes(number)) {
      const int step = compute(building, n);
      if (n == draft.anchor) group.anchor = step;
      if (!is_stored(n)) continue;
      group.graph.outputs.push_back(step);
      add_output(building, n);
    }
    // Inputs come before all work.
    const auto renumber = [&](int& step) {
      if (step >= kWork) step += group.inputs - kWork;
    };
    for (Step& step : building.work) {
      for (int& input : step.inputs) renumber(input);
      group.graph.steps.push_back(std::move(step));
    }
    for (int& output : group.graph.outputs) renumber(output);
    renumber(group.anchor);
    finish(std::move(building.step), group, building.offsets);
  }

  void add_output(Building& building, int n) {
    const Shape &own = node(n).type.shape, &shape = grouping_.shape_in_group(n);
    PlanOutput output{0, {node(n).type.dtype, shape}, node(n).op, -1};
    const Placement& placement = placements_.of[size_t(n)];
    Location& location = locations_[size_t(n)];
    Layout layout = row_major(shape);
    if (placement.chosen) {
      output.placed = true;
      output.offset = placement.layout.offset;
      Type type{output.type.dtype, own};
      layout = placement.layout;
      match_axes(own, shape, type, layout);
      layout.offset = 0;
    }
    if (placement.within >= 0) {
      Location& whole = locations_[size_t(placement.within)];
      output.type = node(placement.within).type;
      if (whole.value < 0) whole = {plan_.values++, row_major(output.type.shape)};
      location = {whole.value, placement.layout};
    } else {
      location = {plan_.values++, placement.chosen ? placement.layout : row_major(own)};
    }
    output.value = location.value;
    building.group.placed.push_back(layout);
    building.step.outputs.push_back(std::move(output));
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
    for (const int output : group.graph.outputs) {
      const Type& type = group.graph.steps[size_t(output)].type;
      step.bytes += size_t(type.shape.element_count()) * size_of(type.dtype);
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
      // What comes in twice under different layouts is read after the output is written.
      const bool once = std::count_if(step.inputs.begin(), step.inputs.end(), [&](int other) {
                          return other == value || share_memory(other, value);
                        }) == 1;
      if (input.op == Op::leaf && writable && once && step.input_offsets[size_t(i)] == 0 &&
          is_contiguous(input.type.shape, group.layouts[size_t(i)])) {
        candidates_.back().push_back({i, input.type, steps_to_outputs(group, i)});
      }
    }
  }

  // For each output over how few ops it follows from an input; kUnrelated: it does not.
  static std::vector<int> steps_to_outputs(const Group& group, int input) {
    const std::vector<Step>& steps = group.graph.steps;
    std::vector<int> ops(steps.size(), kUnrelated);
    ops[size_t(input)] = 0;
    for (size_t i = size_t(group.inputs); i < steps.size(); i++) {
      for (const int read : steps[i].inputs) ops[i] = std::min(ops[i], ops[size_t(read)] + 1);
    }
    std::vector<int> list;
    for (const int output : group.graph.outputs) list.push_back(ops[size_t(output)]);
    return list;
  }

  bool share_memory(int a, int b) const {
    return a < leaves_ && b < leaves_ && segment_.leaves[size_t(a)].memory >= 0 &&
           segment_.leaves[size_t(a)].memory == segment_.leaves[size_t(b)].memory;
  }

  void find_last_uses() {
    std::vector<int> last(size_t(plan_.values), -1);
    for (int s = 0; s < int(plan_.steps.size()); s++) {
      for (int value : plan_.steps[size_t(s)].inputs) last[size_t(value)] = s;
      for (const PlanOutput& output : plan_.steps[size_t(s)].outputs)
        last[size_t(output.value)] = s;
    }
    constexpr int kNever = INT_MAX;
    for (const PlanResult& result : plan_.results) last[size_t(result.value)] = kNever;
    // Memory is in use as long as any leaf of it is.
    std::map<int, int> last_of_memory;
    for (int leaf = 0; leaf < leaves_; leaf++) {
      int& last_of_all =
          last_of_memory.try_emplace(segment_.leaves[size_t(leaf)].memory, -1).first->second;
      last_of_all = std::max(last_of_all, last[size_t(leaf)]);
    }
    for (int leaf = 0; leaf < leaves_; leaf++) {
      const int memory = segment_.leaves[size_t(leaf)].memory;
      if (memory >= 0) last[size_t(leaf)] = last_of_memory[memory];
    }
    for (int value = 0; value < plan_.values; value++) {
      if (last[size_t(value)] < 0 || last[size_t(value)] == kNever) continue;
      if (value < leaves_ && !segment_.leaves[size_t(value)].dies) continue;
      plan_.steps[size_t(last[size_t(value)])].last_uses.push_back(value);
    }
    for (size_t s = 0; s < plan_.steps.size(); s++) choose_donors(plan_.steps[s], candidates_[s]);
  }

  static constexpr int kUnrelated = INT_MAX / 2;
  struct Candidate {
    int input;
    Type type;
    std::vector<int> ops;  // from it to each output
  };

  // What is brought up to date stays where it was: the nearest pairs come first.
  static void choose_donors(PlanStep& step, std::vector<Candidate>& candidates) {
    std::vector<std::tuple<int, size_t, size_t>> pairs;  // ops, output, candidate
    for (size_t c = 0; c < candidates.size(); c++) {
      const int value = step.inputs[size_t(candidates[c].input)];
      if (std::find(step.last_uses.begin(), step.last_uses.end(), value) == step.last_uses.end()) {
        continue;
      }
      for (size_t i = 0; i < step.outputs.size(); i++) {
        if (step.outputs[i].placed || candidates[c].type != step.outputs[i].type) continue;
        pairs.emplace_back(candidates[c].ops[i], i, c);
      }
    }
    std::sort(pairs.begin(), pairs.end());
    std::vector<char> taken(candidates.size());
    for (const auto& [ops, output, candidate] : pairs) {
      int& donor = step.outputs[output].donor;
      if (donor >= 0 || taken[candidate]) continue;
      donor = candidates[candidate].input;
      taken[candidate] = true;
    }
  }

  const Segment& segment_;
  const int leaves_;
  Backend& backend_;
  const int ordinal_;
  const Grouping grouping_;
  const Storage storage_;
  const Placements placements_;
  Plan plan_;
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
