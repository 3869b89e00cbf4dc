// Running results: every op along every axis, of every layout and number type.
#include "tests/cube/anchor.h"

namespace fornax::cube::testing {
namespace {

constexpr Op kOps[] = {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin};

class Scan : public ::testing::Test {
 protected:
  // Results of cumprod grow, which `range` keeps in bounds.
  void check(Op op, DType dtype, const Shape& shape, int axis, Style style = Style::plain) {
    const double range = op == Op::cumprod ? 1.1 : 2;
    const std::vector<Operand> operands = {
        random_operand(dtype, shape, style, random_, -range, range)};
    testing::check(*device_, prepare_scan, op, operands, {axis}, double(shape[axis]));
  }

  std::unique_ptr<Device> device_ = new_device();
  std::mt19937 random_{1};
};

TEST_F(Scan, EveryLayoutAxisAndType) {
  for (const Op op : kOps) {
    for (const Style style : kStyles) {
      for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                                DType::u16, DType::i64, DType::bool_}) {
        for (const int axis : {0, 1, 2}) check(op, dtype, {3, 70, 5}, axis, style);
      }
    }
  }
}

TEST_F(Scan, LinesThatBlocksShare) {
  for (const Op op : kOps) {
    for (const int64_t length : {65, 127, 1024, 1025, 2311}) {
      check(op, DType::f32, {2, length}, 1);
      check(op, DType::i32, {length, 3}, 0, Style::negative);
    }
  }
}

TEST_F(Scan, LinesThatThreadsWalk) {
  for (const Op op : kOps) {
    check(op, DType::f32, {65, 1100}, 0);
    check(op, DType::f32, {1, 1, 1}, 1);
    check(op, DType::i32, {300, 1}, 1);
    check(op, DType::i32, {300, 0}, 1);
    check(op, DType::i32, {0, 3}, 0);
  }
}

TEST_F(Scan, NanStaysAndZerosHaveSigns) {
  const double numbers[] = {1, 3, -0.0, NAN, 5, INFINITY, -INFINITY, 0.0, -7};
  for (const Op op : kOps) {
    for (const int64_t length : {9, 90, 2000}) {
      size_t next = 0;
      const std::vector<Operand> operands = {operand({DType::f32, {3, length}}, Style::plain, [&] {
        return ++next % 31 == 0 ? numbers[next / 31 % std::size(numbers)] : -0.0;
      })};
      testing::check(*device_, prepare_scan, op, operands, {1}, 10);
    }
  }
}

TEST_F(Scan, NoOrderOverflows) {
  size_t next = 0;
  const double numbers[] = {3e38, 3e38, -3e38, -3e38};
  const std::vector<Operand> sums = {
      operand({DType::f32, {200}}, Style::plain, [&] { return numbers[next++ % 4]; })};
  testing::check(*device_, prepare_scan, Op::cumsum, sums, {0});
  const double factors[] = {1e-30, 1e-30, 1e30, 1e30};
  const std::vector<Operand> products = {
      operand({DType::f32, {200}}, Style::plain, [&] { return factors[next++ % 4]; })};
  testing::check(*device_, prepare_scan, Op::cumprod, products, {0});
}

TEST_F(Scan, ANumberIsScanned) {
  testing::check(*device_, prepare_scan, Op::cumsum, {number_operand(DType::i8, {3, 100}, 3)}, {1});
}

TEST_F(Scan, OneProgramForAllSizesOfAClass) {
  check(Op::cumsum, DType::f32, {3, 100}, 1);
  const size_t programs = device_->program_count();
  check(Op::cumsum, DType::f32, {7, 1300}, 1);
  EXPECT_EQ(device_->program_count(), programs);
}

}  // namespace
}  // namespace fornax::cube::testing
