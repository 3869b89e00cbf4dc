// cat: parts of every layout, in vectors and without, in one launch and in several.
#include "tests/cube/anchor.h"

namespace fornax::cube::testing {
namespace {

class Cat : public ::testing::Test {
 protected:
  void check(const std::vector<Operand>& operands, int64_t axis) {
    testing::check(*device_, prepare_cat, Op::cat, operands, {axis});
  }
  Operand random(const Shape& shape, Style style = Style::plain, DType dtype = DType::f32) {
    return random_operand(dtype, shape, style, random_);
  }

  std::unique_ptr<Device> device_ = new_device();
  std::mt19937 random_{1};
};

TEST_F(Cat, EveryLayoutAndAxis) {
  for (const Style style : kStyles) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::bool_}) {
      check({random({2, 3, 8}, style, dtype), random({2, 5, 8}, Style::plain, dtype)}, 1);
      check({random({4, 3, 8}, Style::plain, dtype), random({2, 3, 8}, style, dtype)}, 0);
      check({random({5, 8}, style, dtype), random({5, 4}, style, dtype)}, 1);
      check({random({5, 3}, style, dtype), random({5, 1}, style, dtype)}, 1);
    }
  }
}

TEST_F(Cat, NumbersAndNothing) {
  check({number_operand(DType::f32, {3, 4}, 0.5), random({3, 8}), random({3, 0}),
         number_operand(DType::f32, {3, 4}, -1)},
        1);
  check({random({0, 4}), number_operand(DType::f32, {2, 4}, 7)}, 0);
  check({random({0, 4}), random({0, 4})}, 0);
  check({random({3, 0}), random({2, 0})}, 0);
  check({random({6, 4})}, 0);
}

TEST_F(Cat, ManyParts) {
  std::vector<Operand> parts;
  for (int64_t i = 0; i < 19; i++) parts.push_back(random({2, i % 4, 12}));
  check(parts, 1);
  for (Operand& part : parts) part = random({2, 1, 12}, Style::spaced);
  check(parts, 1);
}

TEST_F(Cat, OneProgramForAllSizesOfAClass) {
  check({random({3, 5, 8}), random({3, 2, 8})}, 1);
  const size_t programs = device_->program_count();
  check({random({7, 4, 16}), random({7, 9, 16})}, 1);
  EXPECT_EQ(device_->program_count(), programs);
}

}  // namespace
}  // namespace fornax::cube::testing
