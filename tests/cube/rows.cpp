// Reductions whose rows blocks share out: on many processors, every pass of a group gives what it
// gives on one.
#include <sstream>

#include "tests/cube/run.h"

namespace fornax::cube {
namespace {

runtime::RuntimeDevice with_processors(runtime::RuntimeDevice described, int processors) {
  described.capabilities.processors = processors;
  return described;
}

class SharedRows : public CubeTest {
 protected:
  // Inputs come first in `text` and lie row-major.
  Case case_of(const std::string& text) {
    Case c;
    for (const Step& step : parse_graph(text).steps) {
      if (step.op == Op::leaf) {
        c.input(counting(step.type));
      } else if (step.op == Op::full) {
        c.number(step.type.dtype, 0.5);
      } else if (is_reduce(step.op) && c.group.anchor < 0) {
        c.group.anchor = int(c.group.graph.steps.size());
      }
      if (step.op == Op::leaf || step.op == Op::full) continue;
      c.group.graph.steps.push_back(step);
    }
    const Step& anchor = c.group.graph.steps[size_t(c.group.anchor)];
    c.group.domain = c.group.graph.steps[size_t(anchor.inputs[0])].type.shape;
    c.group.graph.outputs = parse_graph(text).outputs;
    return c;
  }

  std::vector<std::vector<double>> run_on(Device& device, const Case& c) {
    std::vector<Tensor> outputs;
    std::vector<Argument> to;
    for (const int output : c.group.graph.outputs) {
      outputs.push_back(empty(c.group.graph.steps[size_t(output)].type));
      to.push_back({outputs.back().buffer.get(), 0, {}});
    }
    prepare_rows(device, c.group)->run(c.arguments, to);
    std::vector<std::vector<double>> results;
    for (const Tensor& output : outputs) results.push_back(values(output));
    return results;
  }

  // `passes`: launches on many processors, in all of which blocks share rows out.
  void check(const std::string& text, size_t passes = 1) {
    const Case c = case_of(text);
    runtime.grids.clear();
    const auto got = run_on(many_, c);
    ASSERT_EQ(runtime.grids.size(), passes) << text;
    for (const runtime::Grid& grid : runtime.grids) EXPECT_GT(grid[1], 1U) << text;
    EXPECT_EQ(got, run_on(many_, c)) << text;
    runtime.grids.clear();
    const auto want = run_on(device, c);
    EXPECT_EQ(runtime.grids.size(), 1U);
    ASSERT_EQ(got.size(), want.size());
    for (size_t o = 0; o < got.size(); o++) {
      ASSERT_EQ(got[o].size(), want[o].size());
      for (size_t i = 0; i < got[o].size(); i++) {
        ASSERT_NEAR(got[o][i], want[o][i], 1e-5 * std::abs(want[o][i]))
            << text << "output " << o << " element " << i;
      }
    }
  }

  Device many_{runtime, 0, with_processors(described(), 64)};
};

std::string reduction(const std::string& op, const std::string& of, const std::string& axes,
                      const std::string& result) {
  return "%0 = leaf : " + of + "\n%1 = " + op + " %0 {" + axes + "} : " + result + "\nreturn %1\n";
}

TEST_F(SharedRows, EveryReductionOfColumns) {
  for (const char* op : {"sum", "max", "min"}) {
    check(reduction(op, "f32[700,36]", "0", "f32[1,36]"));
    check(reduction(op, "f32[3000,5]", "0", "f32[1,5]"));
    check(reduction(op, "f32[40,30,2,7]", "0,1", "f32[1,1,2,7]"));
  }
  check(reduction("argmax", "f32[700,36]", "0", "i64[1,36]"));
  check(reduction("argmin", "i32[2000,3]", "0", "i64[1,3]"));
  check(reduction("all", "bool[3000,8]", "0", "bool[1,8]"));
  check(reduction("sum", "bf16[3000,130]", "0", "bf16[1,130]"));
}

TEST_F(SharedRows, EveryReductionOfLongRows) {
  for (const char* op : {"sum", "max", "argmin"}) {
    const std::string dtype = op == std::string("argmin") ? "i64" : "f32";
    check(reduction(op, "f32[2,80000]", "1", dtype + "[2,1]"));
    check(reduction(op, "f32[33001]", "0", dtype + "[1]"));
  }
}

TEST_F(SharedRows, WhatFollowsIsDoneByTheLastBlock) {
  check(R"(%0 = leaf : f32[1500,24]
%1 = leaf : f32[1,24]
%2 = full 0 : f32[]
%3 = sum %0 {0} : f32[1,24]
%4 = mul %3 %2 : f32[1,24]
%5 = add %1 %4 : f32[1,24]
%6 = mul %5 %5 : f32[1,24]
return %5 %6
)");
}

TEST_F(SharedRows, MatricesAreStoredByTheirPass) {
  check(R"(%0 = leaf : f32[1500,24]
%1 = leaf : f32[1,24]
%2 = mul %0 %1 : f32[1500,24]
%3 = sum %2 {0} : f32[1,24]
%4 = add %3 %1 : f32[1,24]
return %2 %3 %4
)");
}

TEST_F(SharedRows, SeveralPasses) {
  for (const char* rows : {"f32[2,70000] 1 f32[2,1]", "f32[3000,20] 0 f32[1,20]"}) {
    std::string shape, axis, kept;
    std::istringstream(rows) >> shape >> axis >> kept;
    const std::string wide = " : " + shape + "\n", one = " {" + axis + "} : " + kept + "\n";
    const std::string sums = "%0 = leaf" + wide + "%1 = max %0" + one + "%2 = sub %0 %1" + wide +
                             "%3 = exp %2" + wide + "%4 = sum %3" + one;
    check(sums + "%5 = div %3 %4" + wide + "%6 = log %4 : " + kept + "\nreturn %2 %5 %6\n", 3);
    check(sums + "%5 = sum %0" + one + "%6 = add %4 %5 : " + kept + "\nreturn %1 %6\n", 2);
  }
}

}  // namespace
}  // namespace fornax::cube
