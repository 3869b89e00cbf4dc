// prepare_reduce(): groups with reductions.  Rows that fit the caches are a row program; everything
// else is computed pass by pass, each of which goes through memory once and folds all that its
// level reduces along the same axes.  What a later pass had better find than compute again lies in
// memory of its own while the kernel runs.
#include <algorithm>

#include "backends/flex/memory.h"
#include "backends/flex/pass.h"
#include "backends/flex/rows.h"
#include "graph/attributes.h"

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

class PassesKernel : public Kernel {
 public:
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  friend class Maker;

  std::vector<Stage> stages_;
  std::vector<size_t> temporaries_;  // bytes
};

class Maker {
 public:
  Maker(const RowPlan& plan, PassesKernel& kernel)
      : plan_(plan), kernel_(kernel), result_(plan.step(plan.group.anchor).type.shape) {
    for (int i = 0; i < int(plan.level.size()); i++) homes_.push_back({Home::Kind::input, i});
  }

  void make() {
    for (int l = 0; l < int(plan_.levels.size()); l++) {
      const RowPlan::Level& level = plan_.levels[size_t(l)];
      if (!level.kept.empty()) add_pointwise(RowPart(plan_, l, true), level.kept, result_);
      std::vector<int> whole = level.saved, folded;
      for (const int step : level.whole) {
        if (!plan_.saved[size_t(step)]) whole.push_back(step);
      }
      for (const int reduction : level.reductions) {
        if (!is_position(plan_.step(reduction).op)) folded.push_back(reduction);
      }
      if (!folded.empty()) {
        add_pass(RowPart(plan_, l, false), whole, folded);
      } else if (!whole.empty()) {
        add_pointwise(RowPart(plan_, l, false), whole, plan_.group.domain);
      }
      if (!level.columns.empty()) add_pass(RowPart(plan_, l, false), {}, level.columns);
      for (const int reduction : level.reductions) {
        if (is_position(plan_.step(reduction).op))
          add_pass(RowPart(plan_, l, false), {}, {reduction});
      }
    }
  }

 private:
  Home new_temporary(const Type& type) {
    kernel_.temporaries_.push_back(size_t(type.shape.element_count()) * size_of(type.dtype));
    return {Home::Kind::temporary, int(kernel_.temporaries_.size()) - 1};
  }
  Home home_for(int step) {
    const std::vector<int>& outputs = plan_.group.graph.outputs;
    const auto found = std::find(outputs.begin(), outputs.end(), step);
    homes_[size_t(step)] = found == outputs.end()
                               ? new_temporary(plan_.step(step).type)
                               : Home{Home::Kind::output, int(found - outputs.begin())};
    return homes_[size_t(step)];
  }

  // The stage that computes a finished part, and how its inputs lie; outputs are still to come.
  std::pair<Stage, std::vector<Layout>> stage_of(const RowPart& part) const {
    Stage stage;
    std::vector<Layout> layouts;
    for (const int step : part.sources) {
      stage.inputs.push_back(homes_[size_t(step)]);
      layouts.push_back(step < plan_.group.inputs ? plan_.group.layouts[size_t(step)]
                                                  : row_major(plan_.step(step).type.shape));
    }
    return {std::move(stage), std::move(layouts)};
  }

  void add_pointwise(RowPart part, const std::vector<int>& given, const Shape& domain) {
    for (const int step : given) part.give(part.want(step));
    part.finish();
    auto [stage, layouts] = stage_of(part);
    for (const int step : given) stage.outputs.push_back(home_for(step));
    Group group;
    group.inputs = int(part.sources.size());
    group.domain = domain;
    group.layouts = std::move(layouts);
    group.graph = std::move(part.graph);
    stage.kernel = prepare_pointwise(group);
    kernel_.stages_.push_back(std::move(stage));
  }

  void add_pass(RowPart part, const std::vector<int>& whole, const std::vector<int>& reductions) {
    for (const int step : whole) part.give(part.want(step));
    for (const int reduction : reductions) part.give(part.operand(reduction));
    part.finish(whole.size());
    auto [stage, layouts] = stage_of(part);
    for (const int step : whole) stage.outputs.push_back(home_for(step));
    std::vector<Stage> casts;
    PassPlan pass;
    for (const int reduction : reductions) {
      const Step& own = plan_.step(reduction);
      const DType computed = is_position(own.op) ? DType::i64 : computed_of(reduction);
      pass.reductions.push_back(own.op);
      const Home home = home_for(reduction);
      if (own.type.dtype == computed) {
        stage.outputs.push_back(home);
      } else {
        stage.outputs.push_back(new_temporary({computed, own.type.shape}));
        casts.push_back(cast(computed, own.type, stage.outputs.back(), home));
      }
    }
    pass.graph = std::move(part.graph);
    pass.layouts = std::move(layouts);
    pass.domain = plan_.group.domain;
    pass.axes = axes_of(plan_.step(reductions[0]).attributes);
    stage.kernel = prepare_pass(std::move(pass));
    kernel_.stages_.push_back(std::move(stage));
    for (Stage& stage_of_cast : casts) kernel_.stages_.push_back(std::move(stage_of_cast));
  }

  DType computed_of(int reduction) const {
    return computed_in(plan_.step(reduction).op, plan_.operand_of(reduction).type.dtype);
  }

  static Stage cast(DType from, const Type& to, const Home& source, const Home& result) {
    Group group;
    group.inputs = 1;
    group.domain = to.shape;
    group.layouts = {row_major(to.shape)};
    group.graph.steps = {{Op::leaf, {from, to.shape}, {}, {}, {}}, {Op::cast, to, {0}, {}, {}}};
    group.graph.outputs = {1};
    return {prepare_pointwise(group), {source}, {result}};
  }

  const RowPlan& plan_;
  PassesKernel& kernel_;
  const Shape result_;       // of the reductions
  std::vector<Home> homes_;  // per step
};

void PassesKernel::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  std::vector<Ref<Buffer>> buffers;
  for (const size_t bytes : temporaries_) buffers.push_back(allocate_buffer(0, bytes));
  const auto arguments = [&](const std::vector<Home>& homes) {
    std::vector<Argument> list;
    list.reserve(homes.size());
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

// Whether a row program would gain nothing: one reduction alone, which all threads can share.
bool is_single(const RowPlan& plan) {
  return plan.levels.size() == 2 && plan.levels[0].reductions.size() == 1 &&
         plan.levels[1].whole.empty() && !plan.has_columns();
}

}  // namespace

std::unique_ptr<Kernel> prepare_reduce(const Group& group) {
  const RowPlan plan(group);
  if (!is_single(plan) && has_rows(plan)) return prepare_rows(plan);
  auto kernel = std::make_unique<PassesKernel>();
  Maker(plan, *kernel).make();
  return kernel;
}

}  // namespace fornax::flex
