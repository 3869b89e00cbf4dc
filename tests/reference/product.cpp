// Matrix products, convolutions and pooling.
#include "tests/reference/program.h"

namespace fornax {
namespace {

std::vector<Scalar> counted(int count) {
  std::vector<Scalar> elements;
  for (int i = 0; i < count; i++) elements.push_back(i);
  return elements;
}

Window2d window(int64_t size) {
  Window2d w;
  w.size[0] = w.size[1] = size;
  return w;
}

TEST(Matmul, small) {
  for (DType dtype : {DType::f32, DType::f16, DType::i32, DType::u64}) {
    Program p;
    const int a = p.leaf(dtype, {2, 3}, {1, 2, 3, 4, 5, 6});
    const int b = p.leaf(dtype, {3, 2}, {1, 0, 0, 1, 2, 2});
    p.step(Op::matmul, {a, b});
    expect_numbers(p.doubles(), {7, 8, 16, 17});
  }
}

TEST(Matmul, batches_and_nothing) {
  Program p;
  const int a = p.f32({2, 1, 2}, {1, 2, 3, 4}), b = p.f32({2, 2, 1}, {5, 6, 7, 8});
  p.step(Op::matmul, {a, b});
  expect_numbers(p.doubles(), {17, 53});
  Program empty;
  const int c = empty.f32({2, 0}, {}), d = empty.f32({0, 2}, {});
  empty.step(Op::matmul, {c, d});
  expect_numbers(empty.doubles(), {0, 0, 0, 0});
}

TEST(Matmul, integers_wrap) {
  Program p;
  const int a = p.leaf(DType::i8, {1, 2}, {100, 100}), b = p.leaf(DType::i8, {2, 1}, {1, 1});
  p.step(Op::matmul, {a, b});
  expect_numbers(p.doubles(), {-56});
}

TEST(Convolve, slides_the_kernel) {
  Program p;
  const int x = p.f32({1, 1, 3, 3}, counted(9)), k = p.f32({1, 1, 2, 2}, {1, 0, 0, 2});
  p.step(Op::convolve, {x, k}, window(2).pack());
  expect_numbers(p.doubles(), {8, 11, 17, 20});  // x[i, j] + 2 x[i + 1, j + 1]
}

TEST(Convolve, pads_strides_and_dilates) {
  Window2d w = window(2);
  w.stride[0] = 2;
  w.before[0] = w.after[1] = 1;
  w.dilation[1] = 2;
  Program p;
  const int x = p.f32({1, 1, 3, 3}, counted(9)), k = p.f32({1, 1, 2, 2}, {1, 10, 100, 1000});
  p.step(Op::convolve, {x, k}, w.pack());
  // Rows -1 0 and 1 2, columns 0 2 and 1 3.
  EXPECT_EQ(text_of(p.type()), "f32[1,1,2,2]");
  expect_numbers(p.doubles(), {2000, 100, 3 + 50 + 600 + 8000, 4 + 700});
}

TEST(Convolve, groups_see_their_channels_only) {
  Window2d w = window(1);
  w.groups = 2;
  Program p;
  const int x = p.f32({1, 4, 1, 1}, {1, 2, 3, 4});
  const int k = p.f32({2, 2, 1, 1}, {1, 10, 100, 1000});
  p.step(Op::convolve, {x, k}, w.pack());
  expect_numbers(p.doubles(), {21, 4300});
}

// The gradients are adjoints: <dy, convolve(x, k)> = <dx, x> = <dk, k> for any x, k and dy.
TEST(Convolve, gradients_are_adjoint) {
  Window2d w = window(2);
  w.groups = 2;
  w.stride[0] = 2, w.before[1] = 1, w.after[0] = 1, w.dilation[1] = 2;
  w.extent[0] = 4, w.extent[1] = 5;
  const Shape x_shape = {2, 4, 4, 5}, k_shape = {6, 2, 2, 2};
  const auto x = counted(2 * 4 * 4 * 5), k = counted(6 * 2 * 2 * 2);
  Program forward;
  const int fx = forward.leaf(DType::i64, x_shape, x), fk = forward.leaf(DType::i64, k_shape, k);
  forward.step(Op::convolve, {fx, fk}, w.pack());
  const Shape y_shape = forward.type().shape;
  std::vector<Scalar> dy;
  for (int64_t i = 0; i < y_shape.element_count(); i++) dy.push_back(i * i % 17 - 8);
  const auto dot = [](const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
    int64_t sum = 0;
    for (size_t i = 0; i < a.size(); i++) sum += a[i].as_int64() * b[i].as_int64();
    return sum;
  };
  const int64_t want = dot(dy, forward.run());
  EXPECT_NE(want, 0);

  Program input;
  const int idy = input.leaf(DType::i64, y_shape, dy), ik = input.leaf(DType::i64, k_shape, k);
  input.step(Op::convolve_input, {idy, ik}, w.pack());
  EXPECT_EQ(text_of(input.type().shape), text_of(x_shape));
  EXPECT_EQ(dot(input.run(), x), want);

  Program weight;
  const int wx = weight.leaf(DType::i64, x_shape, x), wdy = weight.leaf(DType::i64, y_shape, dy);
  weight.step(Op::convolve_weight, {wx, wdy}, w.pack());
  EXPECT_EQ(text_of(weight.type().shape), text_of(k_shape));
  EXPECT_EQ(dot(weight.run(), k), want);
}

TEST(Convolve, input_gradient_spreads_dy) {
  Window2d w = window(2);
  w.extent[0] = 2, w.extent[1] = 2;
  Program p;
  const int dy = p.f32({1, 1, 1, 1}, {3}), k = p.f32({1, 1, 2, 2}, {1, 2, 3, 4});
  p.step(Op::convolve_input, {dy, k}, w.pack());
  expect_numbers(p.doubles(), {3, 6, 9, 12});
}

TEST(Pool, finds_the_first_largest) {
  Window2d w = window(2);
  w.stride[0] = w.stride[1] = 2;
  Program p;
  const int x = p.f32({1, 1, 2, 4}, {1, 5, kNan, 9, 5, 2, 0, kNan});
  p.step(Op::pool_argmax, {x}, w.pack());
  EXPECT_EQ(p.integers(), (std::vector<int64_t>{1, 2}));
}

TEST(Pool, padding_takes_no_part) {
  Window2d w = window(2);
  w.before[0] = w.before[1] = 1;
  Program p;
  const int x = p.f32({1, 1, 2, 2}, {-4, -3, -2, -1});
  p.step(Op::pool_argmax, {x}, w.pack());
  EXPECT_EQ(p.integers(), (std::vector<int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace fornax
