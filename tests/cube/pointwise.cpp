// Elementwise work on cube: which kernels are made, and what they give.
#include <algorithm>
#include <cmath>

#include "backends/cube/operand.h"
#include "tests/cube/run.h"
#include "tests/errors.h"

namespace fornax::cube {
namespace {

std::vector<double> negative(std::vector<double> list) {
  for (double& x : list) x = -x;
  return list;
}

TEST_F(CubeTest, NewSizesFindOldPrograms) {
  for (const int64_t size : {64, 128, 4096, 4}) {
    const Tensor x = counting({DType::f32, {size}});
    EXPECT_EQ(negated(x), negative(values(x))) << size;
  }
  EXPECT_EQ(programs(), 1u);
  // Axes that are walked as one are no other class.
  const Tensor matrix = counting({DType::f32, {8, 16}});
  EXPECT_EQ(negated(matrix), negative(values(matrix)));
  EXPECT_EQ(programs(), 1u);
}

TEST_F(CubeTest, WhatIsLeftOverOfVectorsIsAnotherClass) {
  for (const int64_t size : {65, 66, 67, 1, 1023}) {
    const Tensor x = counting({DType::f32, {size}});
    EXPECT_EQ(negated(x), negative(values(x))) << size;
  }
  EXPECT_EQ(programs(), 1u);
}

TEST_F(CubeTest, VectorsAreSixteenBytesOfTheWidest) {
  const struct {
    DType dtype;
    const char* vector;
  } rows[] = {
      {DType::f32, "f32x4"}, {DType::f16, "f16x8"}, {DType::f64, "f64x2"}, {DType::i8, "i8x16"}};
  for (const auto& row : rows) {
    const Tensor x = counting({row.dtype, {64}});
    EXPECT_EQ(negated(x), negative(values(x)));
    EXPECT_NE(last_source().find(row.vector), std::string::npos) << last_source();
  }
  Case c;
  const int x = c.input(counting({DType::bf16, {64}}));
  const int wide = c.add(Op::cast, {x}, {int64_t(DType::f32)});
  c.group.graph.outputs = {wide};
  run(c);
  EXPECT_NE(last_source().find("bf16x4"), std::string::npos) << last_source();
}

// Of many blocks that compute functions a thread has two vectors: all blocks are full, the last one
// has one turn alone, the last vector is not whole, the operand has a position.
TEST_F(CubeTest, ManyFunctionsTakeTurns) {
  const struct {
    int64_t rows, columns;
    size_t programs;
  } cases[] = {{1, 1 << 15, 1}, {1, (1 << 15) + 1028, 1}, {1, (1 << 15) + 1027, 2}, {8, 5000, 3}};
  for (const auto& [rows, columns, made] : cases) {
    Case c;
    const Tensor x = counting({DType::f32, {rows, columns}}), y = counting({DType::f32, {columns}});
    const int sum = c.add(Op::add, {c.input(x), rows > 1 ? c.input(y) : c.input(x)});
    c.group.graph.outputs = {c.add(Op::sqrt, {c.add(Op::mul, {sum, sum})})};
    const std::vector<double> result = values(run(c)[0]), a = values(x), b = values(y);
    for (size_t i = 0; i < a.size(); i++) {
      const float whole = float(a[i]) + float(rows > 1 ? b[i % b.size()] : a[i]);
      ASSERT_EQ(result[i], std::abs(whole)) << columns << " at " << i;
    }
    EXPECT_EQ(programs(), made) << columns;
  }
}

TEST_F(CubeTest, FewerLanesWhereMemoryBeginsElsewhere) {
  const struct {
    int64_t offset;
    size_t programs;
    const char* vector;
  } rows[] = {{0, 1, "f32x4"}, {4, 1, "f32x4"}, {2, 2, "f32x2"}, {6, 2, "f32x2"}, {3, 3, "f32"}};
  for (const auto& row : rows) {
    const Tensor x = counting({DType::f32, {64}}, row.offset);
    EXPECT_EQ(negated(x), negative(values(x)));
    EXPECT_EQ(programs(), row.programs);
    EXPECT_NE(last_source().find(row.vector), std::string::npos) << last_source();
  }
  EXPECT_EQ(last_source().find("f32x"), std::string::npos) << last_source();
}

TEST_F(CubeTest, LayoutsOfAllKinds) {
  Tensor x = counting({DType::f32, {6, 8}});
  x.layout.strides[0] = 1, x.layout.strides[1] = 6;  // transposed
  EXPECT_EQ(negated(x), negative(values(x)));
  x.layout = {47, {-8, -1}};  // reversed
  EXPECT_EQ(negated(x), negative(values(x)));
  x.layout = {40, {-8, 1}};
  EXPECT_EQ(negated(x), negative(values(x)));
  x.layout = {3, {8, 0}};  // repeated
  EXPECT_EQ(negated(x), negative(values(x)));
  x.layout = {0, {0, 2}};
  x.type.shape = {6, 4};
  EXPECT_EQ(negated(x), negative(values(x)));
}

TEST_F(CubeTest, TransposedOperandsGoThroughSharedMemory) {
  for (const Shape& shape : {Shape{40, 50}, Shape{33, 31}, Shape{64, 8}}) {
    Case c;
    Tensor x = counting({DType::f32, shape});
    x.layout.strides[0] = 1, x.layout.strides[1] = shape[0];
    const Tensor plain = counting({DType::f32, shape});
    c.group.graph.outputs = {c.add(Op::sub, {c.input(x), c.input(plain)})};
    const auto y = values(run(c)[0]), a = values(x), b = values(plain);
    for (size_t i = 0; i < y.size(); i++) ASSERT_EQ(y[i], a[i] - b[i]) << i;
  }
  EXPECT_NE(last_source().find("shared"), std::string::npos) << last_source();
  EXPECT_EQ(programs(), 1u);
}

TEST_F(CubeTest, RowsAndColumnsBroadcast) {
  for (const int64_t columns : {8, 7}) {
    Case c;
    const Tensor matrix = counting({DType::f32, {5, columns}});
    const Tensor row = counting({DType::f32, {columns}});
    const Tensor column = counting({DType::f32, {5, 1}});
    const int m = c.input(matrix), r = c.input(row), k = c.input(column);
    const int scale = c.number(DType::f32, 0.5);
    const int first = c.add(Op::add, {m, r});
    const int second = c.add(Op::mul, {first, k});
    c.group.graph.outputs = {first, c.add(Op::mul, {second, scale})};
    const std::vector<Tensor> y = run(c);
    const auto a = values(matrix), b = values(row), d = values(column);
    const auto y0 = values(y[0]), y1 = values(y[1]);
    for (size_t i = 0; i < a.size(); i++) {
      const size_t at = i % size_t(columns), line = i / size_t(columns);
      EXPECT_EQ(y0[i], a[i] + b[at]);
      EXPECT_EQ(y1[i], (a[i] + b[at]) * d[line] * 0.5);
    }
  }
}

TEST_F(CubeTest, AnOutputMayTakeAnInputsMemory) {
  Case c;
  Tensor x = counting({DType::f32, {133}});
  const auto before = values(x);
  const int step = c.add(Op::square, {c.input(x)});
  c.group.graph.outputs = {c.add(Op::neg, {step})};
  run(c, {x});
  const auto after = values(x);
  for (size_t i = 0; i < before.size(); i++) EXPECT_EQ(after[i], -before[i] * before[i]);
}

TEST_F(CubeTest, NumbersAreArguments) {
  std::vector<double> results;
  for (const double number : {1.5, -2.25}) {
    Case c;
    const int x = c.input(counting({DType::f32, {8}}));
    c.group.graph.outputs = {c.add(Op::mul, {x, c.number(DType::f32, number)})};
    results.push_back(values(run(c)[0])[0]);
  }
  EXPECT_EQ(results, (std::vector<double>{-4.5, 6.75}));
  EXPECT_EQ(programs(), 1u);
}

TEST_F(CubeTest, NumbersOfEveryDType) {
  for (int d = 0; d < kDTypeCount; d++) {
    const DType dtype = DType(d);
    Case c;
    const Scalar number = is_signed(dtype) ? Scalar(-1) : Scalar(1);
    c.group.graph.outputs = {c.add(Op::copy, {c.number(dtype, number, {5})})};
    const double wanted = is_signed(dtype) ? -1 : 1;
    EXPECT_EQ(values(run(c)[0]), std::vector<double>(5, wanted)) << name_of(dtype);
    Case one;
    one.group.graph.outputs = {one.add(Op::copy, {one.number(dtype, number)})};
    EXPECT_EQ(values(run(one)[0]), std::vector<double>(1, wanted)) << name_of(dtype);
  }
}

TEST_F(CubeTest, NothingIsLaunchedForNothing) {
  const Tensor x = counting({DType::f32, {3, 0}});
  EXPECT_EQ(negated(x).size(), 0u);
  EXPECT_EQ(runtime.grids.size(), 0u);
}

TEST_F(CubeTest, AccessesBeyondTheEndAreTold) {
  const Tensor x = counting({DType::f32, {8}});
  Arguments arguments;
  arguments.buffer(Place::input(0), DType::f32, 0, 3);
  const KernelRecipe recipe{"too_far", [] {
                              Builder k("too_far", {.threads = 32});
                              const Value y = k.output("y", DType::f32);
                              k.when(k.thread() < 4, [&] { k.store(y, k.thread(), 1.0); });
                              return k.finish();
                            }};
  const Launch launch(device, recipe, {1, 1, 1}, arguments);
  const Argument argument{x.buffer.get(), 0, {}};
  launch.run(device, {&argument, 1}, {}, {});
  const std::string message = message_of([&] { throw_late_error(device); });
  EXPECT_NE(message.find("too_far: store of y[3]"), std::string::npos) << message;
  EXPECT_NE(message.find("which has 3 elements"), std::string::npos) << message;
  EXPECT_EQ(values(x)[3], 0);
}

TEST_F(CubeTest, PowersOfWholeNumbersWorkInVectors) {
  Case c;
  const Tensor x = counting({DType::i32, {64}});
  c.group.graph.outputs = {c.add(Op::pow, {c.input(x), c.number(DType::i32, 3)})};
  const auto y = values(run(c)[0]), before = values(x);
  for (size_t i = 0; i < y.size(); i++) EXPECT_EQ(y[i], before[i] * before[i] * before[i]);
}

}  // namespace
}  // namespace fornax::cube
