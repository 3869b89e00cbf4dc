// Kernels of the backend cube for compute 90 that no processor can run: how many blocks they have,
// and that they compile without spilling, where NVIDIA's compiler is found.  Their values are
// checked on a device (tests/ops).
#include <gtest/gtest.h>

#include "backends/cube/kernels.h"
#include "compute90.h"
#include "graph/attributes.h"

namespace fornax::test {
namespace {

class OnCompute90 : public ::testing::Test {
 protected:
  OnCompute90() { buffer_.data = reinterpret_cast<void*>(uintptr_t(1) << 20); }

  // An input in memory that is never touched.
  int input(const Type& type, const std::vector<int64_t>& strides) {
    Layout layout = row_major(type.shape);
    for (size_t axis = 0; axis < strides.size(); axis++) layout.strides[axis] = strides[axis];
    group_.graph.steps.push_back({Op::leaf, type, {}, {}, {}});
    group_.layouts.push_back(layout);
    arguments_.push_back({&buffer_, 0, {}});
    return group_.inputs++;
  }
  int number(const Type& type) {
    group_.graph.steps.push_back({Op::full, type, {}, {}, 0});
    group_.layouts.push_back({});
    arguments_.push_back({nullptr, 0, 0});
    return group_.inputs++;
  }
  void launch(int result) {
    group_.graph.outputs = {result};
    const std::vector<Argument> to = {{&buffer_, 0, {}}};
    cube::prepare_group(device, group_)->run(arguments_, to);
    group_ = {};
    arguments_.clear();
  }
  // A weight's gradient, x^T dy; with what is added to it.
  void weight_gradient(int64_t m, int64_t n, int64_t k, bool added = false) {
    const int a = input({DType::bf16, {m, k}}, {1, m}), b = input({DType::bf16, {k, n}}, {n, 1});
    const int c = added ? input({DType::f32, {m, n}}, {n, 1}) : -1;
    group_.anchor = group_.graph.add(Op::matmul, {a, b});
    if (!added) return launch(group_.anchor);
    const int wide = group_.graph.add(Op::cast, {group_.anchor}, {int64_t(DType::f32)});
    launch(group_.graph.add(Op::add, {wide, c}));
  }
  void expect_no_spills() {
    for (const runtime::Program& program : runtime.programs()) {
      EXPECT_LE(program.report.spilled_bytes, 0) << program.source.label;
    }
  }
  Compute90 runtime;
  cube::Device device{runtime, 0, Compute90::described()};
  Group group_;
  std::vector<Argument> arguments_;
  Buffer buffer_;
};

TEST_F(OnCompute90, WeightGradientsAreShared) {
  for (const int64_t depth : {16384, 32768, 65536}) weight_gradient(768, 768, depth);
  weight_gradient(768, 768, 16384, true);
  EXPECT_EQ(runtime.grids.size(), 4u);
  for (const runtime::Grid& grid : runtime.grids) {
    EXPECT_GE(grid[0] * 100, uint32_t(Compute90::kProcessors) * 95);
    EXPECT_LE(grid[0], uint32_t(Compute90::kProcessors));
  }
  for (const runtime::Program& program : runtime.programs()) {
    EXPECT_NE(program.source.text.find("parts_"), std::string::npos) << program.source.label;
    // What lies side by side is left in memory two by two.
    EXPECT_NE(program.source.text.find("(f32x2*)(parts_"), std::string::npos)
        << program.source.text;
  }
  expect_no_spills();
}

TEST_F(OnCompute90, WholeTilesNeedNoParts) {
  weight_gradient(4096, 4096, 4096);
  weight_gradient(768, 2304, 16384);
  for (const runtime::Program& program : runtime.programs()) {
    EXPECT_EQ(program.source.text.find("parts_"), std::string::npos) << program.source.text;
  }
  expect_no_spills();
}

// So many blocks that each reads all places, and no more.
TEST_F(OnCompute90, AnEmbeddingsGradientFillsTheDevice) {
  const int64_t rows = 50304, width = 768, count = 16384;
  const int base = number({DType::f32, {rows, width}});
  const int index = input({DType::i64, {count, width}}, {1, 0});
  const int values = input({DType::f32, {count, width}}, {width, 1});
  group_.anchor = group_.graph.add(Op::scatter, {base, index, values},
                                   ScatterSettings::pack(0, ScatterMode::add));
  launch(group_.anchor);
  EXPECT_EQ(runtime.grids, (std::vector<runtime::Grid>{{654, 1, 1}}));
  expect_no_spills();
  // Five blocks to a processor's registers and shared memory.
  ASSERT_EQ(runtime.programs().size(), 1u);
  EXPECT_LE(runtime.programs()[0].report.registers, 48);
  EXPECT_LE(runtime.programs()[0].source.shared_bytes * 5, 227u << 10);
}

}  // namespace
}  // namespace fornax::test
