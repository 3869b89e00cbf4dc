// The kernel that reads its steps computes what the work's own kernel does, to the bit.
#include "backends/cube/stepwise.h"

#include <cstring>
#include <future>

#include "backends/cube/operand.h"
#include "tests/cube/run.h"

namespace fornax::cube {
namespace {

class CubeStepwise : public CubeTest {
 protected:
  // What the group's outputs are when `prepared` has run, as bits.
  std::vector<uint32_t> results(const Case& c, const PreparedGroup& prepared) {
    std::vector<Tensor> outputs;
    std::vector<Argument> to;
    for (const int step : c.group.graph.outputs) {
      outputs.push_back(empty(c.group.graph.steps[size_t(step)].type));
      to.push_back({outputs.back().buffer.get(), 0, {}});
    }
    prepared.run(c.arguments, to);
    std::vector<uint32_t> bits;
    for (const Tensor& output : outputs) {
      const size_t count = size_t(output.type.shape.element_count());
      const size_t before = bits.size();
      bits.resize(before + count);
      std::memcpy(&bits[before], output.buffer->data, count * sizeof(float));
    }
    return bits;
  }
  void expect_same(Case& c) {
    c.group.domain = c.group.graph.steps[size_t(c.group.graph.outputs[0])].type.shape;
    const auto stepwise = prepare_stepwise(device, elementwise_of(c.group));
    ASSERT_TRUE(stepwise);
    const std::vector<uint32_t> own = results(c, *prepare(c.group));
    EXPECT_EQ(results(c, *stepwise), own);
    EXPECT_NE(last_source().find("stepwise"), std::string::npos);
    EXPECT_EQ(results(c, *stepwise), own);  // the program is there already
  }
};

TEST_F(CubeStepwise, DoesEveryOpAsItsOwnKernelDoes) {
  int ops = 0;
  for (int number = 0; number < op_count(); number++) {
    const Op op = Op(number);
    if (!is_pointwise(op) || info(op).rule == Rule::bitwise) continue;
    SCOPED_TRACE(info(op).name);
    Case c;
    std::vector<int> operands;
    for (int i = 0; i < info(op).inputs; i++) {
      operands.push_back(c.input(counting({DType::f32, {3, 21}}, i)));
    }
    if (op == Op::where) operands[0] = c.add(Op::less, {operands[0], operands[1]});
    int result = c.add(op, operands);
    if (c.group.graph.steps[size_t(result)].type.dtype == DType::bool_) {
      result = c.add(Op::where, {result, operands[0], c.add(Op::neg, {operands[0]})});
    }
    c.group.graph.outputs = {result};
    expect_same(c);
    ops++;
  }
  EXPECT_GT(ops, 40);
}

TEST_F(CubeStepwise, DoesBoolsNumbersLayoutsAndSeveralResults) {
  Case c;
  Tensor turned = counting({DType::f32, {5, 4}});
  turned.type.shape = {4, 5};
  turned.layout.strides[0] = 1;
  turned.layout.strides[1] = 4;
  Tensor row = counting({DType::f32, {1, 5}}, 3);
  const int x = c.input(turned), y = c.input(row), two = c.number(DType::f32, 2.0);
  const int product = c.add(Op::mul, {x, two}), sum = c.add(Op::add, {product, y});
  const int less = c.add(Op::less, {x, y}), equal = c.add(Op::equal, {sum, two});
  const int both = c.add(Op::bitwise_and, {c.add(Op::bitwise_not, {less}), equal});
  const int either = c.add(Op::bitwise_or, {c.add(Op::bitwise_xor, {both, less}), equal});
  c.group.graph.outputs = {sum, c.add(Op::where, {either, sum, c.add(Op::exp, {x})})};
  expect_same(c);
}

TEST_F(CubeStepwise, LeavesOtherWorkAlone) {
  Case whole;
  whole.group.graph.outputs = {whole.add(Op::neg, {whole.input(counting({DType::i32, {4}}))})};
  whole.group.domain = {4};
  EXPECT_FALSE(prepare_stepwise(device, elementwise_of(whole.group)));
  Case large;
  int x = large.input(counting({DType::f32, {4}}));
  for (int i = 0; i < 60; i++) x = large.add(Op::neg, {x});
  large.group.graph.outputs = {x};
  large.group.domain = {4};
  EXPECT_FALSE(prepare_stepwise(device, elementwise_of(large.group)));
}

TEST_F(CubeStepwise, ServesWhileTheOwnKernelCompiles) {
  Case c;
  c.group.graph.outputs = {c.add(Op::neg, {c.input(counting({DType::f32, {64}}))})};
  c.group.domain = {64};
  auto stepwise = prepare_stepwise(device, elementwise_of(c.group));
  const std::vector<uint32_t> expected = results(c, *stepwise);
  std::promise<void> go, begun;
  runtime.before_compiling = [&, may_go = go.get_future().share()] {
    begun.set_value();
    may_go.wait();
  };
  auto own = std::make_unique<LaunchList>(device);
  const KernelRecipe recipe{"slow", [] {
                              Builder k("slow", {.threads = 1});
                              const Value x = k.buffer("x", DType::f32);
                              const Value y = k.output("y", DType::f32);
                              k.store(y, k.block(), -k.load(x, k.block()));
                              return k.finish();
                            }};
  Arguments arguments;
  arguments.buffer(Place::input(0), DType::f32, 0, 64);
  arguments.buffer(Place::output(0), DType::f32, 0, 64);
  own->add(Launch(device, recipe, {64, 1, 1}, std::move(arguments)));
  const Meanwhile meanwhile(std::move(own), std::move(stepwise));
  begun.get_future().wait();
  EXPECT_EQ(results(c, meanwhile), expected);
  EXPECT_NE(last_source().find("stepwise"), std::string::npos);
  go.set_value();
  device.program(recipe)->get();
  EXPECT_EQ(results(c, meanwhile), expected);
  EXPECT_NE(last_source().find("slow"), std::string::npos);
}

}  // namespace
}  // namespace fornax::cube
