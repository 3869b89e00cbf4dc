// Columns that are reduced beside rows: the bits of both are those of groups of their own, on few
// processors and on many, and gradients of norms are right in every shape.
#include <fornax/grad.h>
#include <fornax/ops.h>

#include <cmath>
#include <limits>

#include "backends/cube/row_shape.h"
#include "tests/cube/run.h"

namespace fornax {
namespace {

using cube::CubeTest, cube::Device, cube::may_have_columns, cube::rows_of_part;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

runtime::RuntimeDevice with_processors(runtime::RuntimeDevice described, int processors) {
  described.capabilities.processors = processors;
  return described;
}

// ── Groups ───────────────────────────────────────────────────────────────────────────────────────
using Results = std::vector<std::vector<double>>;

class BesideRows : public CubeTest {
 protected:
  // Inputs of `dtype`: the gradient %0, x %1, [1, columns] %2 and [rows, 1] %3, and a number %4.
  Case inputs(int64_t rows, int64_t columns, DType dtype) {
    Case c;
    for (const Shape& shape :
         {Shape{rows, columns}, Shape{rows, columns}, Shape{1, columns}, Shape{rows, 1}}) {
      cube::Tensor tensor = empty({dtype, shape});
      for (int64_t i = 0; i < shape.element_count(); i++) {
        const double value = std::sin(double(i * 7 + c.group.inputs * 3)) * 3;
        store(dtype, tensor.buffer->data, i, word_of(dtype, value));
      }
      for (const auto& [at, value] : odd_) {
        if (c.group.inputs < 2) store(dtype, tensor.buffer->data, at, word_of(dtype, value));
      }
      c.input(tensor);
    }
    c.number(dtype, 0.125);
    c.group.domain = {rows, columns};
    return c;
  }

  enum Which { rows = 1, columns = 2, both = 3 };
  // As a norm's gradient: two reductions of each row, what is made of them, and `ops` of columns.
  Case gradient(Which which, int64_t height, int64_t width, DType dtype,
                const std::vector<Op>& ops) {
    Case c = inputs(height, width, dtype);
    const int part = c.add(Op::mul, {0, 1});
    std::vector<int> outputs;
    if (which & rows) {
      const int g = c.add(Op::mul, {0, 2});
      const int sum = c.group.anchor = c.add(Op::sum, {c.add(Op::mul, {g, 1})}, {1});
      const int most = c.add(Op::max, {g}, {1});
      const int factor = c.add(Op::mul, {c.add(Op::mul, {sum, 4}), 3});
      outputs = {c.add(Op::sub, {g, c.add(Op::mul, {1, factor})}), most};
    }
    for (const Op op : ops) {
      if (!(which & columns)) break;
      const int column = c.add(op, {outputs.size() % 2 == 0 ? part : 0}, {0});
      if (c.group.anchor < 0) c.group.anchor = column;
      outputs.push_back(column);
    }
    c.group.graph.outputs = outputs;
    return c;
  }

  Results run_on(Device& on, const Case& c) {
    std::vector<cube::Tensor> outputs;
    std::vector<Argument> to;
    for (const int output : c.group.graph.outputs) {
      outputs.push_back(empty(c.group.graph.steps[size_t(output)].type));
      to.push_back({outputs.back().buffer.get(), 0, {}});
    }
    prepare_rows(on, c.group)->run(c.arguments, to);
    Results results;
    for (const cube::Tensor& output : outputs) results.push_back(values(output));
    return results;
  }

  // NaN equals NaN.
  static void expect_equal(const Results& got, const Results& want, const std::string& where) {
    ASSERT_EQ(got.size(), want.size()) << where;
    for (size_t o = 0; o < got.size(); o++) {
      ASSERT_EQ(got[o].size(), want[o].size()) << where;
      for (size_t i = 0; i < got[o].size(); i++) {
        const double a = got[o][i], b = want[o][i];
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
            << where << ", output " << o << ", element " << i << ": " << a << " and " << b;
      }
    }
  }

  void check(Device& on, int64_t height, int64_t width, DType dtype,
             const std::vector<Op>& ops = {Op::sum, Op::sum}) {
    const int processors = on.capabilities().processors;
    const std::string where =
        fmt::format("{} x {} {} on {} processors", height, width, name_of(dtype), processors);
    ASSERT_TRUE(may_have_columns({height, width}, {1}, processors)) << where;
    const Case together = gradient(both, height, width, dtype, ops);
    runtime.grids.clear();
    const Results got = run_on(on, together);
    EXPECT_EQ(runtime.grids.size(), 2u) << where;
    expect_equal(run_on(on, together), got, where + ", again");
    Results apart = run_on(on, gradient(rows, height, width, dtype, ops));
    // Together outputs are the rows' and the columns'; alone, columns begin with the same operand.
    const Results alone = run_on(on, gradient(columns, height, width, dtype, ops));
    apart.insert(apart.end(), alone.begin(), alone.end());
    expect_equal(got, apart, where + ", together and apart");
  }

  std::vector<std::pair<int64_t, double>> odd_;  // elements of the matrices
  Device few_{runtime, 0, with_processors(described(), 1)};
  Device many_{runtime, 0, with_processors(described(), 4)};
};

TEST_F(BesideRows, BitsAreThoseOfGroupsOfTheirOwn) {
  for (Device* on : {&few_, &many_}) {
    const int64_t least = 12 * on->capabilities().processors;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      check(*on, 4 * least, 128, dtype);
      check(*on, 4 * least + 5, 131, dtype);
      check(*on, 4 * least + 90, 260, dtype);
      check(*on, 2 * least + 1, 1030, dtype);
      check(*on, least + 1, 2052, dtype);
    }
  }
}

TEST_F(BesideRows, LongRowsOfPrimeLengthAndMany) {
  check(few_, 13, 8191, DType::f32);
  check(few_, 17, 8192, DType::bf16);
  check(few_, 1201, 130, DType::f32);
}

TEST_F(BesideRows, EveryReductionOfColumns) {
  const std::vector<Op> ops = {Op::sum, Op::prod,   Op::max,    Op::min,
                               Op::any, Op::argmax, Op::argmin, Op::all};
  check(few_, 101, 130, DType::f32, ops);
  check(many_, 210, 132, DType::bf16, ops);
}

TEST_F(BesideRows, NanAndInfinityStayInTheirRowsAndColumns) {
  odd_ = {{131 * 3 + 5, kNan}, {131 * 50 + 7, kInfinity}, {131 * 60 + 9, -kInfinity}};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    check(few_, 103, 131, dtype, {Op::sum, Op::sum, Op::argmax, Op::max});
  }
  const Results got = run_on(few_, gradient(both, 103, 131, DType::f32, {Op::sum, Op::sum}));
  for (int64_t i = 0; i < 131; i++) {
    EXPECT_EQ(std::isfinite(got[2][size_t(i)]), i != 5 && i != 7 && i != 9) << i;
  }
  for (int64_t row = 0; row < 103; row++) {
    EXPECT_EQ(std::isfinite(got[0][size_t(row * 131)]), row != 3 && row != 50 && row != 60) << row;
  }
}

TEST_F(BesideRows, StandWhereRowsAreManyAndFitRegisters) {
  EXPECT_EQ(rows_of_part(4096, 4096, 132), 16);
  EXPECT_EQ(rows_of_part(32768, 1024, 132), 32);
  EXPECT_EQ(rows_of_part(1 << 24, 1024, 132), 128);
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 4096}, {4096, 1}, {0, 4096}, {4096, 0}, {2048, 128}, {8192, 32768}, {64, 1 << 20}}) {
    EXPECT_EQ(rows_of_part(rows, columns, 132), 0) << rows << " x " << columns;
  }
  EXPECT_TRUE(may_have_columns({8, 512, 1, 4096}, {3}, 132));
  EXPECT_TRUE(may_have_columns({4096, 64, 64}, {1, 2}, 132));
  EXPECT_FALSE(may_have_columns({8, 512, 4096}, {0}, 132));
  EXPECT_FALSE(may_have_columns({4096, 64, 64}, {0, 2}, 132));
}

// ── Gradients ────────────────────────────────────────────────────────────────────────────────────
using fornax::Tensor;

std::vector<Tensor> gradients(const Shape& shape, DType dtype, bool centred, fornax::Device on) {
  const int64_t width = shape[shape.rank() - 1];
  const auto wave = [&](double by, const Shape& of) {
    const Tensor all = arange(of.element_count(), {.device = on}) * by;
    return all.sin().reshape(of).cast(dtype).contiguous();
  };
  const Tensor x = wave(0.37, shape).require_grad(), seed = wave(1.7, shape);
  const Tensor weight = wave(0.9, {width}).require_grad(), bias = wave(0.3, {width}).require_grad();
  const Tensor y = centred ? layer_norm(x, 1, {.weight = weight, .bias = bias})
                           : rms_norm(x, {.weight = weight});
  std::vector<Tensor> of = {x, weight};
  if (centred) of.push_back(bias);
  return grad({y}, of, {.seeds = {seed}});
}

void check_gradients(const Shape& shape, DType dtype, bool centred) {
  const fornax::Device on("interpreter");
  const auto want = gradients(shape, dtype, centred, fornax::Device("reference"));
  const auto fused = gradients(shape, dtype, centred, on.fused());
  const auto again = gradients(shape, dtype, centred, on.fused());
  const auto eager = gradients(shape, dtype, centred, on.eager());
  const double unit = dtype == DType::f32 ? 2e-5 : 1.6e-2;
  for (size_t t = 0; t < want.size(); t++) {
    const auto exact = want[t].to_vector<double>(), got = fused[t].to_vector<double>();
    EXPECT_EQ(got, again[t].to_vector<double>()) << text_of(shape);
    EXPECT_EQ(got, eager[t].to_vector<double>()) << text_of(shape) << " gradient " << t;
    double most = 1;
    for (const double e : exact) most = std::max(most, std::abs(e));
    for (size_t i = 0; i < exact.size(); i++) {
      ASSERT_NEAR(got[i], exact[i], unit * most) << text_of(shape) << " gradient " << t;
    }
  }
}

TEST(NormGradients, AreRightFusedEagerAndRepeatedInEveryShape) {
  for (const Shape& shape :
       {Shape{1, 1}, Shape{1, 512}, Shape{64, 1}, Shape{3, 131}, Shape{53, 128}, Shape{97, 131},
        Shape{5, 13, 260}, Shape{19, 1030}, Shape{16, 3, 129}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      check_gradients(shape, dtype, true);
      check_gradients(shape, dtype, false);
    }
  }
}

}  // namespace
}  // namespace fornax
