// prepare_pointwise(): groups without an anchor, and plain copies of transposed memory.
#include <algorithm>

#include "backends/flex/gather.h"
#include "backends/flex/kernels.h"
#include "backends/flex/pool.h"
#include "backends/flex/program.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr double kChunk = 20000;                 // nanoseconds of work that a thread takes at a time
constexpr int64_t kStreamBytes = int64_t(2) << 20;  // per thread, from here on caches do not help

class PointwiseKernel : public Kernel {
 public:
  explicit PointwiseKernel(const Group& group)
      : program_(group.graph, group.inputs, group.domain, group.layouts),
        count_(group.domain.element_count()) {
    for (int output : group.graph.outputs) {
      sizes_.push_back(size_of(group.graph.steps[size_t(output)].type.dtype));
    }
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (count_ == 0) return;
    std::vector<char*> pointers;
    pointers.reserve(outputs.size());
    for (size_t i = 0; i < outputs.size(); i++) {
      pointers.push_back(static_cast<char*>(outputs[i].buffer->data) +
                         size_t(outputs[i].offset) * sizes_[i]);
    }
    const Stores stores = stores_for(inputs, outputs);
    const int64_t granule = program_.granule();
    const auto grain = int64_t(kChunk / (program_.cost() * double(granule))) + 1;
    parallel((count_ + granule - 1) / granule, grain, [&](int64_t begin, int64_t end) {
      program_.run(inputs, pointers, begin * granule, std::min(end * granule, count_), stores);
    });
  }

 private:
  // An output in an input's buffer is in the cache already when it is written.
  Stores stores_for(std::span<const Argument> inputs, std::span<const Argument> outputs) const {
    size_t smallest = sizes_.empty() ? 0 : *std::min_element(sizes_.begin(), sizes_.end());
    if (count_ * int64_t(smallest) < kStreamBytes * thread_count()) return Stores::cached;
    for (const Argument& output : outputs) {
      for (const Argument& input : inputs) {
        if (input.buffer == output.buffer) return Stores::cached;
      }
    }
    return Stores::streamed;
  }

  Program program_;
  int64_t count_;
  std::vector<size_t> sizes_;
};

// A copy whose input has its dense axis elsewhere than last.
class TransposeKernel : public Kernel {
 public:
  // False where the strides are of another kind.
  bool fits(const Group& group) {
    const Graph& graph = group.graph;
    if (group.inputs != 1 || graph.steps.size() != 2 || graph.steps[1].op != Op::copy) return false;
    if (graph.steps[0].op != Op::leaf || graph.outputs != std::vector<int>{1}) return false;
    if (graph.steps[0].type.shape != group.domain) return false;
    shape_ = group.domain;
    strides_ = group.layouts[0];
    size_ = int(size_of(graph.steps[0].type.dtype));
    last_ = shape_.rank() - 1;
    while (last_ >= 0 && shape_[last_] == 1) last_--;
    for (int axis = 0; axis < last_; axis++) {
      if (strides_.strides[axis] == 1 && shape_[axis] >= kLeast) dense_ = axis;
    }
    return dense_ >= 0 && shape_[last_] >= kLeast && strides_.strides[last_] > 1;
  }

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    const int64_t count = shape_.element_count();
    if (count == 0) return;
    const int64_t blocks = (shape_[dense_] + kRows - 1) / kRows;
    const int64_t slices = count / (shape_[dense_] * shape_[last_]);
    const int64_t grain = int64_t(kChunk / double(kRows * shape_[last_])) + 1;
    const Layout to = row_major(shape_);
    parallel(slices * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        copy_block(i / blocks, i % blocks * kRows, inputs[0], outputs[0], to);
      }
    });
  }

 private:
  static constexpr int64_t kLeast = 8, kRows = 64;

  void copy_block(int64_t slice, int64_t row, const Argument& input, const Argument& output,
                  const Layout& to) const {
    int64_t from_offset = input.offset + row, to_offset = output.offset + row * to.strides[dense_];
    for (int axis = shape_.rank() - 1; axis >= 0; axis--) {
      if (axis == dense_ || axis == last_) continue;
      from_offset += slice % shape_[axis] * strides_.strides[axis];
      to_offset += slice % shape_[axis] * to.strides[axis];
      slice /= shape_[axis];
    }
    transpose(static_cast<const char*>(input.buffer->data) + from_offset * size_, size_,
              std::min(kRows, shape_[dense_] - row), shape_[last_], strides_.strides[last_],
              to.strides[dense_], static_cast<char*>(output.buffer->data) + to_offset * size_);
  }

  Shape shape_;
  Layout strides_;
  int size_ = 0, dense_ = -1, last_ = -1;
};

}  // namespace

std::unique_ptr<Kernel> prepare_pointwise(const Group& group) {
  auto transposed = std::make_unique<TransposeKernel>();
  if (transposed->fits(group)) return transposed;
  return std::make_unique<PointwiseKernel>(group);
}

}  // namespace fornax::flex
