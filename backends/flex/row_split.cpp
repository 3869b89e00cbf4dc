// prepare_split(): a row plan as groups of one reduction at most, for rows that no cache holds or
// that do not lie along memory.  What is saved lies in memory of its own while the kernel runs.
#include "backends/flex/memory.h"
#include "backends/flex/rows.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

// Where a step's value lies.
struct Home {
  enum class Kind : uint8_t { input, output, temporary };
  Kind kind;
  int index;
};

struct Stage {
  std::unique_ptr<Kernel> kernel;
  std::vector<Home> inputs, outputs;
};

class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(const RowPlan& plan);
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  Home home_for(const RowPlan& plan, int step);
  void add_stage(const RowPlan& plan, RowPart part, const std::vector<int>& given, int anchor,
                 const Shape& domain);

  std::vector<Home> homes_;  // per step, while the stages are made
  std::vector<Stage> stages_;
  std::vector<size_t> temporaries_;  // bytes
};

SplitKernel::SplitKernel(const RowPlan& plan) {
  for (int i = 0; i < int(plan.level.size()); i++) homes_.push_back({Home::Kind::input, i});
  const Shape& result = plan.step(plan.group.anchor).type.shape;
  for (int l = 0; l < int(plan.levels.size()); l++) {
    const RowPlan::Level& level = plan.levels[size_t(l)];
    if (!level.kept.empty()) {
      RowPart part(plan, l, true);
      for (const int step : level.kept) part.give(part.want(step));
      add_stage(plan, std::move(part), level.kept, -1, result);
    }
    std::vector<int> given = level.saved;
    for (const int step : level.whole) {
      if (!plan.saved[size_t(step)]) given.push_back(step);
    }
    if (level.reductions.empty() && !given.empty()) {
      RowPart part(plan, l, false);
      for (const int step : given) part.give(part.want(step));
      add_stage(plan, std::move(part), given, -1, plan.group.domain);
    }
    for (const int reduction : level.reductions) {
      RowPart part(plan, l, false);
      for (const int step : given) part.give(part.want(step));
      part.give(part.compute(reduction));
      given.push_back(reduction);
      add_stage(plan, std::move(part), given, reduction, plan.group.domain);
      given.clear();
    }
  }
  homes_.clear();
}

Home SplitKernel::home_for(const RowPlan& plan, int step) {
  const std::vector<int>& outputs = plan.group.graph.outputs;
  for (int i = 0; i < int(outputs.size()); i++) {
    if (outputs[size_t(i)] == step) return {Home::Kind::output, i};
  }
  const Type& type = plan.step(step).type;
  temporaries_.push_back(size_t(type.shape.element_count()) * size_of(type.dtype));
  return {Home::Kind::temporary, int(temporaries_.size()) - 1};
}

// `given`: the steps that are the part's outputs; the last one is the anchor, where there is one.
void SplitKernel::add_stage(const RowPlan& plan, RowPart part, const std::vector<int>& given,
                            int anchor, const Shape& domain) {
  part.finish();
  Stage stage;
  Group group;
  group.inputs = int(part.sources.size());
  group.domain = domain;
  if (anchor >= 0) group.anchor = part.graph.outputs.back();
  for (const int step : part.sources) {
    stage.inputs.push_back(homes_[size_t(step)]);
    group.layouts.push_back(step < plan.group.inputs ? plan.group.layouts[size_t(step)]
                                                     : row_major(plan.step(step).type.shape));
  }
  for (const int step : given) {
    homes_[size_t(step)] = home_for(plan, step);
    stage.outputs.push_back(homes_[size_t(step)]);
  }
  group.graph = std::move(part.graph);
  stage.kernel = anchor >= 0 ? prepare_reduce(group) : prepare_pointwise(group);
  stages_.push_back(std::move(stage));
}

void SplitKernel::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  std::vector<Ref<Buffer>> buffers;
  for (const size_t bytes : temporaries_) buffers.push_back(allocate_buffer(0, bytes));
  const auto arguments = [&](const std::vector<Home>& homes) {
    std::vector<Argument> list;
    for (const Home& home : homes) {
      const size_t index = size_t(home.index);
      list.push_back(home.kind == Home::Kind::input    ? inputs[index]
                     : home.kind == Home::Kind::output ? outputs[index]
                                                       : Argument{buffers[index].get(), 0, {}});
    }
    return list;
  };
  for (const Stage& stage : stages_) {
    stage.kernel->run(arguments(stage.inputs), arguments(stage.outputs));
  }
}

}  // namespace

std::unique_ptr<Kernel> prepare_split(const RowPlan& plan) {
  return std::make_unique<SplitKernel>(plan);
}

}  // namespace fornax::flex
