// argsort: along every axis, of every layout and number type, within a run and across runs.
#include "tests/cube/anchor.h"

namespace fornax::cube::testing {
namespace {

class ArgSort : public ::testing::Test {
 protected:
  // Few different numbers, so that many are equal.
  void check(DType dtype, const Shape& shape, int axis, bool descending,
             Style style = Style::plain) {
    const std::vector<Operand> operands = {operand({dtype, shape}, style, [&]() -> Scalar {
      const double kSpecial[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40, -1e-40, 200, -100};
      if (random_() % 3 == 0) return kSpecial[random_() % std::size(kSpecial)];
      return double(random_() % 64) / 2 - 16;
    })};
    testing::check(*device_, prepare_argsort, Op::argsort, operands,
                   SortSettings::pack(axis, descending));
  }

  std::unique_ptr<Device> device_ = new_device();
  std::mt19937 random_{1};
};

TEST_F(ArgSort, EveryLayoutAxisAndType) {
  for (const bool descending : {false, true}) {
    for (const Style style : kStyles) {
      for (const DType dtype :
           {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::i8, DType::u16,
            DType::i32, DType::u32, DType::i64, DType::u64, DType::bool_}) {
        for (const int axis : {0, 1}) check(dtype, {7, 70}, axis, descending, style);
      }
    }
  }
}

TEST_F(ArgSort, Lengths) {
  for (const bool descending : {false, true}) {
    for (const int64_t length : {0, 1, 2, 63, 64, 65, 513, 2048}) {
      check(DType::f32, {2, length}, 1, descending);
    }
    check(DType::i32, {0, 3}, 1, descending);
  }
}

TEST_F(ArgSort, LinesOfSeveralRuns) {
  for (const bool descending : {false, true}) {
    check(DType::f32, {2049}, 0, descending);
    check(DType::f64, {2, 4500}, 1, descending, Style::negative);
    check(DType::i16, {9000, 2}, 0, descending);
  }
}

TEST_F(ArgSort, ANumberIsSorted) {
  testing::check(*device_, prepare_argsort, Op::argsort, {number_operand(DType::f32, {2, 9}, 1)},
                 SortSettings::pack(1, true));
}

TEST_F(ArgSort, OneProgramForAllSizesOfAClass) {
  check(DType::f32, {3, 70}, 1, false);
  const size_t programs = device_->program_count();
  check(DType::f32, {5, 500}, 1, false);
  EXPECT_EQ(device_->program_count(), programs);
}

}  // namespace
}  // namespace fornax::cube::testing
