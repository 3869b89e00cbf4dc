// prepare_pointwise(): groups without an anchor.
#include <algorithm>

#include "backends/flex/kernels.h"
#include "backends/flex/memory.h"
#include "backends/flex/program.h"
#include "backends/flex/transposed.h"

namespace fornax::flex {
namespace {

constexpr int64_t kLeastTransposed = 1 << 15;  // elements that pay for a copy in order

char* first_byte(const Argument& argument, size_t size) {
  return static_cast<char*>(argument.buffer->data) + size_t(argument.offset) * size;
}

// An input that is put in order before the program runs.
struct Ordered {
  int input;
  Transposed transposed;
  size_t bytes;
};

// Takes the inputs that are walked against their order out of the layouts.
std::vector<Ordered> order_inputs(const Group& group, std::vector<Layout>& layouts) {
  std::vector<Ordered> ordered;
  const int64_t count = group.domain.element_count();
  for (int i = 0; i < group.inputs; i++) {
    const Type& type = group.graph.steps[size_t(i)].type;
    Layout& layout = layouts[size_t(i)];
    if (group.graph.steps[size_t(i)].op != Op::leaf || type.shape != group.domain ||
        count < kLeastTransposed || !Transposed::fits(type, layout)) {
      continue;
    }
    ordered.push_back({i, Transposed(type, layout), size_t(count) * size_of(type.dtype)});
    layout = row_major(type.shape);
  }
  return ordered;
}

class PointwiseKernel : public Kernel {
 public:
  explicit PointwiseKernel(const Group& group) : PointwiseKernel(group, group.layouts) {}
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  PointwiseKernel(const Group& group, std::vector<Layout> layouts)
      : ordered_(order_inputs(group, layouts)),
        program_(group.graph, group.inputs, group.domain, layouts),
        count_(group.domain.element_count()) {
    for (int output : group.graph.outputs) {
      sizes_.push_back(size_of(group.graph.steps[size_t(output)].type.dtype));
    }
  }
  void run_ordered(std::span<const Argument> inputs, std::span<const Argument> outputs) const;
  Stores stores_for(std::span<const Argument> inputs, std::span<const Argument> outputs) const;

  std::vector<Ordered> ordered_;
  Program program_;
  int64_t count_;
  std::vector<size_t> sizes_;
};

// An output in an input's buffer is in the cache already when it is written.
Stores PointwiseKernel::stores_for(std::span<const Argument> inputs,
                                   std::span<const Argument> outputs) const {
  const size_t smallest = sizes_.empty() ? 0 : *std::min_element(sizes_.begin(), sizes_.end());
  for (const Argument& output : outputs) {
    for (const Argument& input : inputs) {
      if (input.buffer == output.buffer) return Stores::cached;
    }
  }
  return stores_of(count_ * int64_t(smallest));
}

void PointwiseKernel::run_ordered(std::span<const Argument> inputs,
                                  std::span<const Argument> outputs) const {
  std::vector<char*> pointers;
  for (size_t i = 0; i < outputs.size(); i++) pointers.push_back(first_byte(outputs[i], sizes_[i]));
  program_.run_whole(inputs, pointers, stores_for(inputs, outputs));
}

void PointwiseKernel::run(std::span<const Argument> inputs,
                          std::span<const Argument> outputs) const {
  if (count_ == 0) return;
  if (ordered_.empty()) return run_ordered(inputs, outputs);
  std::vector<Argument> arguments(inputs.begin(), inputs.end());
  std::vector<Ref<Buffer>> copies;
  for (const Ordered& ordered : ordered_) {
    copies.push_back(allocate_buffer(0, ordered.bytes));
    ordered.transposed.copy(inputs[size_t(ordered.input)], static_cast<char*>(copies.back()->data));
    arguments[size_t(ordered.input)] = {copies.back().get(), 0, {}};
  }
  run_ordered(arguments, outputs);
}

// A plain copy of such a tensor.
class TransposeKernel : public Kernel {
 public:
  TransposeKernel(const Type& type, const Layout& layout)
      : transposed_(type, layout), size_(size_of(type.dtype)) {}
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    transposed_.copy(inputs[0], first_byte(outputs[0], size_));
  }

 private:
  Transposed transposed_;
  size_t size_;
};

bool is_plain_copy(const Group& group) {
  const auto& steps = group.graph.steps;
  return steps.size() == 2 && group.inputs == 1 && steps[0].op == Op::leaf &&
         steps[1].op == Op::copy && steps[0].type.shape == group.domain &&
         group.graph.outputs == std::vector<int>{1};
}

}  // namespace

std::unique_ptr<Kernel> prepare_pointwise(const Group& group) {
  const Type& type = group.graph.steps[0].type;
  if (is_plain_copy(group) && Transposed::fits(type, group.layouts[0])) {
    return std::make_unique<TransposeKernel>(type, group.layouts[0]);
  }
  return std::make_unique<PointwiseKernel>(group);
}

}  // namespace fornax::flex
