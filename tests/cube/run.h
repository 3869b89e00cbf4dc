// Running groups on the kernels of cube, on the interpreter, and looking at what was compiled.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cube/kernels.h"
#include "base/error.h"
#include "graph/evaluate.h"
#include "runtime/registry.h"
#include "tests/cube/late.h"

namespace fornax::cube {

// Before any setting is read.  All accesses to memory are tested here.
inline const int kSet = setenv("FORNAX_INTERPRETER", "1", 1) + setenv("FORNAX_CHECK", "1", 1);

// A runtime that keeps what was launched and counts what was compiled, on whatever thread.
class Watched : public runtime::Runtime {
 public:
  Watched() {
    for (runtime::Runtime* runtime : runtime::runtimes()) {
      if (runtime->name() == "interpreter") inner_ = runtime;
    }
  }
  std::string last_source;
  std::atomic<int> compiled = 0;
  std::atomic<bool> refuses = false;  // to compile
  std::function<void()> before_compiling = [] {};
  std::vector<runtime::Grid> grids;
  int recordings = 0, runs = 0, changes = 0;

  std::string_view name() const override { return inner_->name(); }
  const std::vector<runtime::RuntimeDevice>& devices(std::string& absence) override {
    return inner_->devices(absence);
  }
  runtime::Address allocate(int device, size_t bytes) override {
    return inner_->allocate(device, bytes);
  }
  void release(int device, runtime::Address memory) noexcept override {
    inner_->release(device, memory);
  }
  runtime::MemoryUse memory(int device) override { return inner_->memory(device); }
  void trim(int device) override { inner_->trim(device); }
  void write(int device, runtime::Address to, const void* from, size_t bytes) override {
    inner_->write(device, to, from, bytes);
  }
  void read(int device, void* to, runtime::Address from, size_t bytes) override {
    inner_->read(device, to, from, bytes);
  }
  void copy(int to_device, runtime::Address to, int from_device, runtime::Address from,
            size_t bytes) override {
    inner_->copy(to_device, to, from_device, from, bytes);
  }
  std::shared_ptr<runtime::Program> find(int device, const runtime::Recipe& recipe) override {
    return inner_->find(device, recipe);
  }
  std::shared_ptr<runtime::Program> compile(int device, const runtime::Recipe& recipe) override {
    compiled++;
    before_compiling();
    if (refuses) fail(ErrorKind::internal, "refused");
    return inner_->compile(device, recipe);
  }
  void launch(int device, const runtime::Program& program, runtime::Grid grid,
              std::span<const uint64_t> arguments) override {
    last_source = program.source.text;
    grids.push_back(grid);
    inner_->launch(device, program, grid, arguments);
  }
  runtime::TensorMap tensor_map(int device, const runtime::TensorMapRequest& request) override {
    return inner_->tensor_map(device, request);
  }
  void synchronize(int device) override { inner_->synchronize(device); }
  std::unique_ptr<runtime::Mark> mark(int device) override { return inner_->mark(device); }
  double milliseconds(const runtime::Mark& from, const runtime::Mark& to) override {
    return inner_->milliseconds(from, to);
  }
  void begin_recording(int device) override { inner_->begin_recording(device); }
  void record(int device, const runtime::Program& program, runtime::Grid grid,
              std::span<const uint64_t> arguments, std::span<const uint32_t> after) override {
    grids.push_back(grid);
    inner_->record(device, program, grid, arguments, after);
  }
  std::unique_ptr<runtime::Recording> end_recording(int device) override {
    recordings++;
    return inner_->end_recording(device);
  }
  void run(int device, const runtime::Recording& recording) override {
    runs++;
    inner_->run(device, recording);
  }
  void change(int device, runtime::Recording& recording, size_t launch,
              std::span<const uint64_t> arguments) override {
    changes++;
    inner_->change(device, recording, launch, arguments);
  }

 private:
  runtime::Runtime* inner_ = nullptr;
};

// Elements in memory of the device, which may lie anywhere in it.
struct Tensor {
  Type type;
  Layout layout;
  std::shared_ptr<Buffer> buffer;
};

class CubeTest : public ::testing::Test {
 protected:
  CubeTest() : device(runtime, 0, described()) {}

  Tensor empty(const Type& type, int64_t spare = 0) {
    Tensor tensor{type, row_major(type.shape), nullptr};
    auto* buffer = new Buffer;
    buffer->bytes = size_t(type.shape.element_count() + spare) * size_of(type.dtype);
    buffer->data = reinterpret_cast<void*>(runtime.allocate(0, buffer->bytes));
    tensor.buffer = std::shared_ptr<Buffer>(buffer, [this](Buffer* old) {
      runtime.release(0, reinterpret_cast<runtime::Address>(old->data));
      delete old;
    });
    return tensor;
  }
  // i -> i % 7 - 3, from element `offset` of its memory on.
  Tensor counting(const Type& type, int64_t offset = 0) {
    Tensor tensor = empty(type, offset);
    tensor.layout.offset = offset;
    for (int64_t i = 0; i < type.shape.element_count() + offset; i++) {
      store(type.dtype, tensor.buffer->data, i, word_of(type.dtype, double((i - offset) % 7 - 3)));
    }
    return tensor;
  }

  // The elements in row-major order.
  static std::vector<double> values(const Tensor& tensor) {
    std::vector<double> list;
    const Shape& shape = tensor.type.shape;
    for (int64_t i = 0; i < shape.element_count(); i++) {
      int64_t at = tensor.layout.offset, rest = i;
      for (int axis = shape.rank() - 1; axis >= 0; axis--) {
        at += rest % shape[axis] * tensor.layout.strides[axis];
        rest /= shape[axis];
      }
      const Word word = load(tensor.type.dtype, tensor.buffer->data, at);
      list.push_back(scalar_of(tensor.type.dtype, word).as_double());
    }
    return list;
  }

  struct Case {
    Group group;
    std::vector<Argument> arguments;
    std::vector<Tensor> kept;

    int input(const Tensor& tensor) {
      group.graph.steps.push_back({Op::leaf, tensor.type, {}, {}, {}});
      group.layouts.push_back(tensor.layout);
      group.layouts.back().offset = 0;
      arguments.push_back({tensor.buffer.get(), tensor.layout.offset, {}});
      kept.push_back(tensor);
      return group.inputs++;
    }
    int number(DType dtype, Scalar scalar, const Shape& shape = {}) {
      group.graph.steps.push_back({Op::full, {dtype, shape}, {}, {}, scalar});
      group.layouts.push_back({});
      arguments.push_back({nullptr, 0, scalar});
      return group.inputs++;
    }
    int add(Op op, std::vector<int> operands, Attributes attributes = {}) {
      return group.graph.add(op, std::move(operands), std::move(attributes));
    }
    // An op that stands alone.
    void anchor(Op op, std::vector<int> operands, Attributes attributes = {}) {
      group.anchor = add(op, std::move(operands), std::move(attributes));
      group.graph.outputs = {group.anchor};
    }
  };

  std::unique_ptr<PreparedGroup> prepare(const Group& group) {
    return prepare_group(device, group);
  }
  std::vector<Tensor> run(Case& c, std::vector<Tensor> outputs = {}) {
    std::vector<Argument> to;
    if (c.group.anchor < 0) {
      c.group.domain = c.group.graph.steps[size_t(c.group.graph.outputs[0])].type.shape;
    }
    for (size_t i = outputs.size(); i < c.group.graph.outputs.size(); i++) {
      outputs.push_back(empty(c.group.graph.steps[size_t(c.group.graph.outputs[i])].type));
    }
    for (const Tensor& tensor : outputs) to.push_back({tensor.buffer.get(), 0, {}});
    prepare(c.group)->run(c.arguments, to);
    throw_late_error(device);
    return outputs;
  }

  // -x, and the text of the kernel that computed it.
  std::vector<double> negated(const Tensor& x) {
    Case c;
    c.group.graph.outputs = {c.add(Op::neg, {c.input(x)})};
    return values(run(c)[0]);
  }
  std::string last_source() const { return runtime.last_source; }
  size_t programs() { return device.program_count(); }

  static const runtime::RuntimeDevice& described() {
    std::string absence;
    for (runtime::Runtime* candidate : runtime::runtimes()) {
      if (candidate->name() == "interpreter") return candidate->devices(absence).at(0);
    }
    throw std::runtime_error("there is no interpreter");
  }

  Watched runtime;
  Device device;
};

}  // namespace fornax::cube
