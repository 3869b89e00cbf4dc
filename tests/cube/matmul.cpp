// Products of matrices: shapes around the tiles' edges, every layout, every number type.
#include "tests/cube/anchor.h"

namespace fornax::cube::testing {
namespace {

class Matmul : public ::testing::Test {
 protected:
  void check(DType dtype, const Shape& a, const Shape& b, Style a_style = Style::plain,
             Style b_style = Style::plain) {
    const std::vector<Operand> operands = {random_operand(dtype, a, a_style, random_),
                                           random_operand(dtype, b, b_style, random_)};
    // Products of numbers up to 2.
    testing::check(*device_, prepare_matmul, Op::matmul, operands, {}, 4 * double(a[a.rank() - 1]));
  }

  std::unique_ptr<Device> device_ = new_device();
  std::mt19937 random_{1};
};

TEST_F(Matmul, ShapesAroundTheTiles) {
  for (const int64_t m : {1, 2, 63, 64, 65, 131}) {
    for (const int64_t n : {1, 4, 64, 67, 129}) {
      for (const int64_t k : {1, 3, 16, 37}) check(DType::f32, {m, k}, {k, n});
    }
  }
}

TEST_F(Matmul, EveryLayoutAndType) {
  for (const Style a : kStyles) {
    for (const Style b : kStyles) {
      for (const DType dtype :
           {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::u8, DType::i64}) {
        check(dtype, {11, 20}, {20, 8}, a, b);
      }
      check(DType::f32, {3, 2, 5, 9}, {3, 2, 9, 4}, a, b);
      check(DType::f32, {1, 40}, {40, 33}, a, b);
      check(DType::f32, {70, 40}, {40, 1}, a, b);
    }
  }
}

TEST_F(Matmul, BlocksShareLongSums) {
  std::string absence;
  runtime::RuntimeDevice wide = interpreter().devices(absence).at(0);
  wide.capabilities.processors = 64;
  device_ = std::make_unique<Device>(interpreter(), 0, wide);
  for (const auto& [m, k, n] : {std::tuple(5, 700, 3), std::tuple(64, 128, 64),
                                std::tuple(65, 333, 70), std::tuple(1, 4096, 1)}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
      check(dtype, {m, k}, {k, n});
    }
  }
  check(DType::f32, {3, 20, 500}, {3, 500, 9});
  check(DType::f32, {20, 500}, {500, 9}, Style::reversed_axes, Style::reversed_axes);
  const size_t programs = device_->program_count();
  check(DType::f32, {20, 1000}, {1000, 9}, Style::reversed_axes, Style::reversed_axes);
  EXPECT_EQ(device_->program_count(), programs);
}

TEST_F(Matmul, NothingToDo) {
  for (const DType dtype : {DType::f32, DType::i8}) {
    check(dtype, {0, 3}, {3, 4});
    check(dtype, {3, 0}, {0, 4});
    check(dtype, {3, 4}, {4, 0});
    check(dtype, {0, 3, 4}, {0, 4, 5});
    check(dtype, {2, 3, 0}, {2, 0, 5});
  }
}

TEST_F(Matmul, NumbersAndSmallFloats) {
  const std::vector<Operand> operands = {number_operand(DType::f32, {5, 7}, 0.5),
                                         random_operand(DType::f32, {7, 9}, Style::plain, random_)};
  testing::check(*device_, prepare_matmul, Op::matmul, operands, {}, 14);
  check(DType::f8e4m3, {5, 7}, {7, 9});
  check(DType::f8e5m2, {5, 7}, {7, 1});
}

TEST_F(Matmul, WholeNumbersWrap) {
  const auto large = [&](DType dtype) {
    return operand({dtype, {5, 5}}, Style::plain, [&] { return int64_t(random_()) << 20; });
  };
  for (const DType dtype :
       {DType::i8, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
    testing::check(*device_, prepare_matmul, Op::matmul, {large(dtype), large(dtype)});
  }
}

TEST_F(Matmul, OneProgramForAllSizesOfAClass) {
  for (const int64_t columns : {3, 33}) {  // narrow tiles, and those that are not
    check(DType::f32, {5, 7}, {7, columns});
    const size_t programs = device_->program_count();
    check(DType::f32, {71, 13}, {13, columns + 6});
    check(DType::f32, {3, 101}, {101, columns + 20});
    EXPECT_EQ(device_->program_count(), programs);
  }
}

}  // namespace
}  // namespace fornax::cube::testing
