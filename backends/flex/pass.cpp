#include "backends/flex/pass.h"

#include <algorithm>
#include <optional>

namespace fornax::flex {
namespace {

constexpr int64_t kWide = 256;  // columns that are folded as they are computed

char* first_byte(const Argument& argument, DType dtype) {
  return static_cast<char*>(argument.buffer->data) + argument.offset * int64_t(size_of(dtype));
}

// Where the elements of a folded value come from.
struct Operand {
  DType dtype;
  int input;  // that holds them as they are to be folded; -1: the program computes them
};

class PassKernel : public Kernel {
 public:
  explicit PassKernel(PassPlan plan);
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  friend class PassValues;
  double cost() const;

  const std::vector<Op> reductions_;
  const Walk walk_;
  std::vector<Operand> operands_;
  std::vector<DType> stored_;
  std::optional<Program> program_;
  Stores stores_ = Stores::cached;
  bool folds_columns_ = false;
};

// One thread's.
class PassValues : public Values {
 public:
  PassValues(const PassKernel& kernel, std::span<const Argument> inputs,
             std::span<const Argument> outputs)
      : kernel_(kernel), inputs_(inputs) {
    if (!kernel.program_) return;
    run_.emplace(*kernel.program_, inputs, kernel.stores_);
    for (const Operand& operand : kernel.operands_) {
      if (operand.input < 0) to_.push_back(nullptr);
    }
    for (size_t i = 0; i < kernel.stored_.size(); i++) {
      to_.push_back(first_byte(outputs[i], kernel.stored_[i]));
    }
  }

  void get(int64_t begin, int64_t end, char* const* buffers, const char** data) override {
    for (size_t k = 0; k < kernel_.operands_.size(); k++) {
      data[k] = in_memory(k, begin);
      if (!data[k]) data[k] = buffers[k];
    }
    run(begin, end, buffers);
  }
  bool folds_columns() const override { return kernel_.folds_columns_; }
  void fold(int64_t begin, int64_t end, char* const* into) override { run(begin, end, into); }
  const char* in_memory(size_t k, int64_t begin) const override {
    const auto& [dtype, input] = kernel_.operands_[k];
    if (input < 0) return nullptr;
    return first_byte(inputs_[size_t(input)], dtype) + begin * int64_t(size_of(dtype));
  }

 private:
  // Computed values go to `to`.
  void run(int64_t begin, int64_t end, char* const* to) {
    if (!run_) return;
    size_t computed = 0;
    for (size_t k = 0; k < kernel_.operands_.size(); k++) {
      const auto& [dtype, input] = kernel_.operands_[k];
      if (input >= 0) continue;
      // Where element 0 would lie, if element `begin` lay there.
      const uintptr_t before = uintptr_t(begin) * size_of(dtype);
      to_[computed++] = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(to[k]) - before);
    }
    run_->run(to_, begin, end);
  }

  const PassKernel& kernel_;
  const std::span<const Argument> inputs_;
  std::optional<ProgramRun> run_;
  std::vector<char*> to_;
};

PassKernel::PassKernel(PassPlan plan)
    : reductions_(plan.reductions), walk_(plan.domain, plan.axes) {
  Graph& graph = plan.graph;
  const auto dtype_of = [&](int step) { return graph.steps[size_t(step)].type.dtype; };
  const size_t stored = graph.outputs.size() - reductions_.size();
  std::vector<int> computed;
  std::vector<FoldedOutput> folds;
  for (size_t k = 0; k < reductions_.size(); k++) {
    const int step = graph.outputs[stored + k];
    const bool in_memory = step < int(plan.layouts.size()) &&
                           graph.steps[size_t(step)].op == Op::leaf &&
                           is_contiguous(plan.domain, plan.layouts[size_t(step)]) &&
                           graph.steps[size_t(step)].type.shape == plan.domain;
    operands_.push_back({dtype_of(step), in_memory ? step : -1});
    if (in_memory) continue;
    computed.push_back(step);
    folds.push_back({fold_of(reductions_[k]), false});
  }
  for (size_t i = 0; i < stored; i++) stored_.push_back(dtype_of(graph.outputs[i]));
  graph.outputs.resize(stored);
  graph.outputs.insert(graph.outputs.begin(), computed.begin(), computed.end());
  if (graph.outputs.empty()) return;
  CompileOptions options{.apart = true, .close = int(computed.size()), .ahead = true};
  folds_columns_ = walk_.width >= kWide && !is_position(reductions_[0]);
  if (folds_columns_) options.folds = std::move(folds);
  program_.emplace(graph, int(plan.layouts.size()), plan.domain, plan.layouts, std::move(options));
  if (stored > 0) {
    stores_ = stores_of(plan.domain.element_count() * int64_t(size_of(stored_.back())));
  }
}

double PassKernel::cost() const {
  double cost = program_ ? program_->cost() : 0;
  for (const Operand& operand : operands_) {
    if (operand.input >= 0) cost += 0.08 * double(size_of(operand.dtype));
  }
  return cost;
}

void PassKernel::run(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
  const auto values = [&]() -> std::unique_ptr<Values> {
    return std::make_unique<PassValues>(*this, inputs, outputs);
  };
  const std::span<const Argument> results = outputs.subspan(stored_.size());
  if (is_position(reductions_[0])) {
    return find_position(walk_, fold_of(reductions_[0]), operands_[0].dtype, cost(), values,
                         data_of<int64_t>(results[0]));
  }
  std::vector<Folding> foldings;
  for (size_t k = 0; k < operands_.size(); k++) {
    const DType computed = operands_[k].dtype;
    foldings.push_back({fold_of(reductions_[k]), computed, first_byte(results[k], computed)});
    if (walk_.empty && is_question(reductions_[k])) {
      std::fill_n(data_of<int64_t>(results[k]), walk_.outputs(),
                  int64_t(reductions_[k] == Op::all));
      foldings.pop_back();
    }
  }
  fold_values(walk_, foldings, cost(), values);
}

}  // namespace

std::unique_ptr<Kernel> prepare_pass(PassPlan plan) {
  return std::make_unique<PassKernel>(std::move(plan));
}

}  // namespace fornax::flex
