#include "backends/flex/row_plan.h"

#include <algorithm>

#include "backends/flex/compile.h"
#include "backends/flex/folder.h"

namespace fornax::flex {
namespace {

constexpr double kDear = 0.2;  // nanoseconds per element: more than saving it takes

}  // namespace

RowPlan::RowPlan(const Group& g) : group(g) {
  find_levels(step(group.anchor).type.shape);
  levels.resize(size_t(*std::max_element(level.begin(), level.end())) + 1);
  const int count = int(group.graph.steps.size());
  for (int i = group.inputs; i < count; i++) {
    if (is_column(i)) {
      if (is_output(i)) levels[size_t(level[size_t(i)])].columns.push_back(i);
    } else if (is_reduce(step(i).op)) {
      levels[size_t(level[size_t(i)]) - 1].reductions.push_back(i);
    }
    if (!kept[size_t(i)] && is_output(i)) levels[size_t(level[size_t(i)])].whole.push_back(i);
  }
  find_kept();
  for (int l = int(levels.size()); l-- > 0;) {
    Level& own = levels[size_t(l)];
    for (int i = group.inputs; i < count; i++) {
      if (saved[size_t(i)] && level[size_t(i)] == l) own.saved.push_back(i);
    }
    std::vector<bool> seen(size_t(count), false);
    for (const std::vector<int>* list : {&own.whole, &own.saved}) {
      for (const int i : *list) save_for(i, l, seen);
    }
    for (const std::vector<int>* list : {&own.reductions, &own.columns}) {
      for (const int i : *list) save_for(step(i).inputs[0], l, seen);
    }
  }
}

void RowPlan::find_levels(const Shape& result) {
  const size_t count = group.graph.steps.size();
  level.assign(count, 0);
  kept.assign(count, false);
  saved.assign(count, false);
  for (size_t i = size_t(group.inputs); i < count; i++) {
    const Step& own = group.graph.steps[i];
    for (const int input : own.inputs) level[i] = std::max(level[i], level[size_t(input)]);
    kept[i] = is_reduce(own.op) || (own.type.shape == result && result != group.domain);
    level[i] += is_reduce(own.op) && !is_column(int(i));
  }
}

void RowPlan::find_kept() {
  std::vector<bool> wanted(group.graph.steps.size(), false);
  for (const int output : group.graph.outputs) wanted[size_t(output)] = true;
  for (size_t i = size_t(group.inputs); i < wanted.size(); i++) {
    for (const int input : group.graph.steps[i].inputs) {
      if (!kept[i] || level[i] > level[size_t(input)]) wanted[size_t(input)] = true;
    }
  }
  for (int i = group.inputs; i < int(wanted.size()); i++) {
    if (!wanted[size_t(i)] || !kept[size_t(i)] || is_reduce(step(i).op)) continue;
    levels[size_t(level[size_t(i)])].kept.push_back(i);
  }
}

bool RowPlan::is_output(int step) const {
  const std::vector<int>& outputs = group.graph.outputs;
  return std::find(outputs.begin(), outputs.end(), step) != outputs.end();
}

bool RowPlan::is_column(int number) const {
  return is_reduce(step(number).op) && step(number).attributes != step(group.anchor).attributes;
}

bool RowPlan::has_columns() const {
  return std::any_of(levels.begin(), levels.end(),
                     [](const Level& own) { return !own.columns.empty(); });
}

// Nanoseconds per element that computing `number` again takes, as far as `most`.
double RowPlan::cost_to(int number, double most) const {
  if (number < group.inputs || kept[size_t(number)]) return 0;
  double cost = cost_of(step(number).op);
  for (const int input : step(number).inputs) {
    if (cost < most) cost += cost_to(input, most - cost);
  }
  return cost;
}

// Marks what the pass of level `own` had better find than compute again for `number`.
void RowPlan::save_for(int number, int own, std::vector<bool>& seen) {
  if (number < group.inputs || kept[size_t(number)] || seen[size_t(number)]) return;
  seen[size_t(number)] = true;
  if (level[size_t(number)] < own && cost_to(number, kDear) >= kDear) {
    saved[size_t(number)] = true;
    return;
  }
  for (const int input : step(number).inputs) save_for(input, own, seen);
}

bool RowPart::is_source(int step) const {
  if (step < plan_.group.inputs) return true;
  const size_t i = size_t(step);
  if (is_reduce(plan_.step(step).op)) return true;
  if (!kept_) return plan_.kept[i] || (plan_.saved[i] && plan_.level[i] < level_);
  return plan_.level[i] < level_;
}

int RowPart::want(int number) {
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& entry) { return entry.first == number; });
  if (known != known_.end()) return known->second;
  if (!is_source(number)) return compute(number);
  Step step = plan_.step(number);
  if (step.op != Op::full) step.op = Op::leaf;
  step.inputs.clear();
  graph.steps.push_back(std::move(step));
  sources.push_back(number);
  known_.emplace_back(number, int(sources.size()) - 1);
  return int(sources.size()) - 1;
}

int RowPart::compute(int number) {
  Step step = plan_.step(number);
  for (int& input : step.inputs) input = want(input);
  const auto equal = [&](const Step& other) {
    return other.op == step.op && other.type == step.type && other.inputs == step.inputs &&
           other.attributes == step.attributes;
  };
  const auto found = std::find_if(work_.begin(), work_.end(), equal);
  known_.emplace_back(number, kWork + int(found - work_.begin()));
  if (found == work_.end()) work_.push_back(std::move(step));
  return known_.back().second;
}

// Whether the step is computed here in lanes of 8 bytes, whatever it gives.
bool RowPart::has_wide_operand(int number) const {
  if (is_source(number)) return false;
  const std::vector<int>& inputs = plan_.step(number).inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](int input) { return size_of(plan_.step(input).type.dtype) == 8; });
}

int RowPart::operand(int reduction) {
  const Op op = plan_.step(reduction).op;
  const Type& type = plan_.operand_of(reduction).type;
  const DType computed = computed_in(op, type.dtype);
  int number = want(plan_.step(reduction).inputs[0]);
  if (is_question(op)) number = add(Op::cast, {DType::bool_, type.shape}, number);
  if (is_question(op) || type.dtype != computed) {
    number = add(Op::cast, {computed, type.shape}, number);
  } else if (size_of(computed) == 4 && has_wide_operand(plan_.step(reduction).inputs[0])) {
    number = add(Op::copy, type, number);
  }
  return number;
}

int RowPart::add(Op op, const Type& type, int input) {
  work_.push_back({op, type, {input}, {}, {}});
  return kWork + int(work_.size()) - 1;
}

void RowPart::finish(size_t outputs) {
  for (size_t i = 0; i < std::min(outputs, graph.outputs.size()); i++) {
    int& output = graph.outputs[i];
    if (output < kWork) output = add(Op::copy, graph.steps[size_t(output)].type, output);
  }
  const int inputs = int(sources.size());
  const auto renumber = [&](int& number) {
    if (number >= kWork) number += inputs - kWork;
  };
  for (Step& step : work_) {
    for (int& input : step.inputs) renumber(input);
    graph.steps.push_back(std::move(step));
  }
  for (int& output : graph.outputs) renumber(output);
}

}  // namespace fornax::flex
