// Reductions and scans: known answers, NaN, ties, emptiness, wide sums.
#include "tests/reference/program.h"

namespace fornax {
namespace {

using Integers = std::vector<int64_t>;

std::vector<double> reduced(Op op, DType dtype, Shape shape, std::vector<Scalar> x,
                            Attributes attributes) {
  Program p;
  p.step(op, {p.leaf(dtype, shape, std::move(x))}, std::move(attributes));
  return p.doubles();
}

TEST(Reduce, over_any_axes) {
  const std::vector<Scalar> x = {1, 2, 3, 4, 5, 6};
  expect_numbers(reduced(Op::sum, DType::f32, {2, 3}, x, {1}), {6, 15});
  expect_numbers(reduced(Op::sum, DType::f32, {2, 3}, x, {0}), {5, 7, 9});
  expect_numbers(reduced(Op::sum, DType::f32, {2, 3}, x, {0, 1}), {21});
  expect_numbers(reduced(Op::sum, DType::f32, {2, 3}, x, {}), {1, 2, 3, 4, 5, 6});
  expect_numbers(reduced(Op::prod, DType::f32, {2, 3}, x, {0}), {4, 10, 18});
  expect_numbers(reduced(Op::max, DType::i8, {2, 3}, x, {1}), {3, 6});
  expect_numbers(reduced(Op::min, DType::u64, {2, 3}, x, {0}), {1, 2, 3});
}

TEST(Reduce, of_nothing_is_the_identity) {
  expect_numbers(reduced(Op::sum, DType::f32, {2, 0}, {}, {1}), {0, 0});
  expect_numbers(reduced(Op::prod, DType::i32, {2, 0}, {}, {1}), {1, 1});
  expect_numbers(reduced(Op::any, DType::f32, {0}, {}, {0}), {0});
  expect_numbers(reduced(Op::all, DType::f32, {0}, {}, {0}), {1});
}

TEST(Reduce, nan_is_the_first_extreme) {  // C029, C030
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (Op op : {Op::argmax, Op::argmin}) {
      expect_numbers(reduced(op, dtype, {4}, {3, kNan, 1, 5}, {0}), {1});
      expect_numbers(reduced(op, dtype, {3}, {kNan, 1, 2}, {0}), {0});
      expect_numbers(reduced(op, dtype, {3}, {1, 2, kNan}, {0}), {2});
      expect_numbers(reduced(op, dtype, {3}, {kInfinity, kNan, -kInfinity}, {0}), {1});
      expect_numbers(reduced(op, dtype, {3}, {1, kNan, kNan}, {0}), {1});
    }
    for (int length : {1, 3, 8, 33, 1000}) {
      std::vector<Scalar> x(size_t(length), 1.0);
      x[size_t(length / 2)] = kNan;
      expect_numbers(reduced(Op::max, dtype, {length}, x, {0}), {kNan});
      expect_numbers(reduced(Op::min, dtype, {length}, x, {0}), {kNan});
      expect_numbers(reduced(Op::argmax, dtype, {length}, x, {0}), {double(length / 2)});
    }
  }
}

TEST(Reduce, ties_go_to_the_first) {
  expect_numbers(reduced(Op::argmax, DType::i32, {5}, {1, 3, 3, 0, 0}, {0}), {1});
  expect_numbers(reduced(Op::argmin, DType::i32, {5}, {1, 3, 3, 0, 0}, {0}), {3});
  expect_numbers(reduced(Op::argmax, DType::bool_, {3}, {false, true, true}, {0}), {1});
  expect_numbers(reduced(Op::argmax, DType::f32, {2, 2}, {1, 2, 4, 3}, {0}), {1, 1});
}

TEST(Reduce, truth) {  // C038
  expect_numbers(reduced(Op::any, DType::f32, {2, 2}, {0, -0.0, 0, kNan}, {1}), {0, 1});
  expect_numbers(reduced(Op::all, DType::i32, {2, 2}, {1, 256, 1, 0}, {1}), {1, 0});
  Program p;
  const int a = p.f32({3}, {0, 1, -1});
  p.step(Op::all, {p.step(Op::less_equal, {a, a})}, {0});
  EXPECT_EQ(text_of(p.type()), "bool[1]");
  EXPECT_EQ(p.integers(), Integers{1});
}

TEST(Reduce, sums_are_wide) {  // C044, C046, C053
  expect_numbers(reduced(Op::sum, DType::bool_, {300}, std::vector<Scalar>(300, true), {0}), {300});
  expect_numbers(reduced(Op::sum, DType::i32, {2}, {2147483647, 2147483647}, {0}), {4294967294});
  expect_numbers(reduced(Op::sum, DType::u8, {2}, {200, 100}, {0}), {300});
  expect_numbers(reduced(Op::sum, DType::f16, {4096}, std::vector<Scalar>(4096, 1), {0}), {4096});
  expect_numbers(reduced(Op::sum, DType::bf16, {70000}, std::vector<Scalar>(70000, 1), {0}),
                 {70144});
  expect_numbers(reduced(Op::sum, DType::f32, {3}, {1e30, 1, -1e30}, {0}), {0}, 1);
}

TEST(Reduce, stands_between_pointwise_steps) {
  Program p;
  const int x = p.f32({2, 2}, {1, 2, 3, 4}), four = p.number(DType::f32, 4);
  const int sum = p.step(Op::sum, {p.step(Op::square, {x})}, {0, 1});
  p.step(Op::div, {sum, four});
  expect_numbers(p.doubles(), {7.5});
}

TEST(Reduce, reads_a_domain_larger_than_its_input) {
  Program p;
  const int x = p.f32({2, 1}, {1, 2});
  p.step(Op::sum, {x}, {1});
  p.group().domain = {2, 3};
  expect_numbers(p.doubles(), {3, 6});
}

TEST(Scan, runs_along_one_axis) {
  expect_numbers(reduced(Op::cumsum, DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}, {1}),
                 {1, 3, 6, 4, 9, 15});
  expect_numbers(reduced(Op::cumsum, DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}, {0}),
                 {1, 2, 3, 5, 7, 9});
  expect_numbers(reduced(Op::cummin, DType::i32, {4}, {3, 4, 1, 2}, {0}), {3, 3, 1, 1});
  expect_numbers(reduced(Op::cumsum, DType::f32, {2, 0}, {}, {1}), {});
}

TEST(Scan, widens_narrow_integers) {  // C045
  expect_numbers(reduced(Op::cumsum, DType::u8, {3}, {200, 100, 50}, {0}), {200, 300, 350});
  expect_numbers(reduced(Op::cumsum, DType::i8, {3}, {100, 100, 50}, {0}), {100, 200, 250});
  expect_numbers(reduced(Op::cumprod, DType::u8, {3}, {200, 100, 50}, {0}), {200, 20000, 1000000});
  expect_numbers(reduced(Op::cumsum, DType::bool_, {3}, {true, false, true}, {0}), {1, 1, 2});
}

TEST(Scan, nan_stays) {  // C032
  expect_numbers(reduced(Op::cummax, DType::f32, {5}, {1, 3, kNan, 5, 4}, {0}),
                 {1, 3, kNan, kNan, kNan});
  expect_numbers(reduced(Op::cummin, DType::f32, {3}, {1, kNan, 0}, {0}), {1, kNan, kNan});
}

TEST(Scan, sorts_stably_with_nan_the_greatest) {  // C033, C034
  const auto sorted = [](std::vector<Scalar> x, bool descending) {
    const int64_t length = int64_t(x.size());
    return reduced(Op::argsort, DType::f32, {length}, std::move(x),
                   SortSettings::pack(0, descending));
  };
  expect_numbers(sorted({1, kNan, 2, 0}, false), {3, 0, 2, 1});
  expect_numbers(sorted({1, kNan, 2, 0}, true), {1, 2, 0, 3});
  expect_numbers(sorted({2, 1, 2, 1, 2}, false), {1, 3, 0, 2, 4});
  expect_numbers(sorted({2, 1, 2, 1, 2}, true), {0, 2, 4, 1, 3});
  expect_numbers(sorted({kNan, 1, kNan}, true), {0, 2, 1});
  expect_numbers(sorted({0.0, -0.0}, false), {0, 1});
}

}  // namespace
}  // namespace fornax
