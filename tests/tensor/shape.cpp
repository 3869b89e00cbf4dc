// Ops of src/tensor/shape.cpp.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

TEST_ON_DEVICES(Shapes, reshape_infers_one_size) {
  const Tensor x = iota({2, 3, 4}, device);
  expect_tensor(x.reshape({-1, 6}), {4, 6}, counting(24));
  expect_tensor(x.reshape({24}), {24}, counting(24));
  expect_tensor(x.flatten(1), {2, 12}, counting(24));
  expect_tensor(x.flatten(0, 1), {6, 4}, counting(24));
  expect_tensor(iota({1}, device).reshape({}).flatten(), {1}, {0});
  EXPECT_EQ(zeros({0, 3}, {.device = device}).reshape({-1, 3}).shape(), (Shape{0, 3}));
}

TEST_ON_DEVICES(Shapes, squeeze_and_unsqueeze) {
  const Tensor x = iota({1, 2, 1}, device);
  EXPECT_EQ(x.squeeze().shape(), (Shape{2}));
  EXPECT_EQ(x.squeeze(0).shape(), (Shape{2, 1}));
  EXPECT_EQ(x.squeeze({0, -1}).shape(), (Shape{2}));
  EXPECT_EQ(x.unsqueeze(-1).shape(), (Shape{1, 2, 1, 1}));
  EXPECT_EQ(x.unsqueeze(0).shape(), (Shape{1, 1, 2, 1}));
}

TEST_ON_DEVICES(Shapes, orders_of_axes) {
  const Tensor x = iota({2, 3}, device);
  expect_tensor(x.transpose(), {3, 2}, {0, 3, 1, 4, 2, 5});
  const Tensor y = iota({2, 3, 4}, device);
  EXPECT_EQ(y.permute({2, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(y.move_axis(0, -1).shape(), (Shape{3, 4, 2}));
  EXPECT_EQ(y.move_axis(2, 0).shape(), (Shape{4, 2, 3}));
  expect_values(y.permute({2, 0, 1}).flatten(),
                y.move_axis(-1, 0).reshape({-1}).to_vector<double>());
}

TEST_ON_DEVICES(Shapes, expand_and_repeat) {
  const Tensor x = iota({2, 1}, device);
  expect_tensor(x.expand({-1, 3}), {2, 3}, {0, 0, 0, 1, 1, 1});
  expect_tensor(x.expand({2, -1, -1}), {2, 2, 1}, {0, 1, 0, 1});
  expect_tensor(iota({2}, device).repeat({3}), {6}, {0, 1, 0, 1, 0, 1});
  expect_tensor(iota({2, 2}, device).repeat({1, 2}), {2, 4}, {0, 1, 0, 1, 2, 3, 2, 3});
  expect_tensor(iota({2}, device).repeat({2, 2}), {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_EQ(iota({2}, device).repeat({0}).shape(), (Shape{0}));
  const Tensor many = iota({1, 2, 1, 2, 1, 1, 1}, device).repeat({2, 1, 2, 1, 2, 2, 2});
  EXPECT_EQ(many.shape(), (Shape{2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(many.sum().item<float>(), 6 * 32);
  EXPECT_EQ(many(1, 1, 1, 0, 1, 1, 1).item<float>(), 2);
}

TEST_ON_DEVICES(Shapes, flip_and_roll) {
  const Tensor x = iota({2, 3}, device);
  expect_values(x.flip({0, 1}), {5, 4, 3, 2, 1, 0});
  expect_values(x.flip(-1), {2, 1, 0, 5, 4, 3});
  expect_values(x.roll(1, 1), {2, 0, 1, 5, 3, 4});
  expect_values(x.roll(-1, 0), {3, 4, 5, 0, 1, 2});
  expect_values(x.roll(300, 1), {0, 1, 2, 3, 4, 5});
}

TEST_ON_DEVICES(Shapes, parts) {
  const Tensor x = iota({5}, device);
  expect_values(x.narrow(0, 1, 3), {1, 2, 3});
  EXPECT_EQ(x.narrow(0, 5, 0).shape(), (Shape{0}));
  EXPECT_EQ(iota({2, 3}, device).select(1, -1).to_vector<int64_t>(), (std::vector<int64_t>{2, 5}));
  const std::vector<Tensor> parts = x.split(2);
  ASSERT_EQ(parts.size(), 3u);
  expect_values(parts[2], {4});
  ASSERT_EQ(x.chunk(2).size(), 2u);
  expect_values(x.chunk(2)[0], {0, 1, 2});
  EXPECT_EQ(zeros({0}, {.device = device}).split(2).size(), 1u);
}

TEST_ON_DEVICES(Shapes, pad_adds_and_crops) {
  const Tensor x = iota({2, 2}, device);
  expect_tensor(x.pad({{1, 0}}, 9), {2, 3}, {9, 0, 1, 9, 2, 3});
  expect_tensor(x.pad({{1, 0}, {0, 1}}), {3, 3}, {0, 0, 0, 0, 1, 0, 2, 3, 0});
  expect_tensor(x.pad({{-1, 1}}), {2, 2}, {1, 0, 3, 0});
}

TEST_ON_DEVICES(Shapes, unfold_makes_windows) {
  expect_tensor(iota({5}, device).unfold(0, 3, 2), {2, 3}, {0, 1, 2, 2, 3, 4});
  expect_tensor(iota({2, 3}, device).unfold(0, 2, 1), {1, 3, 2}, {0, 3, 1, 4, 2, 5});
}

TEST_ON_DEVICES(Shapes, triangles_and_diagonals) {
  const Tensor x = iota({3, 3}, device);
  expect_values(x.triu(), {0, 1, 2, 0, 4, 5, 0, 0, 8});
  expect_values(x.triu(1), {0, 1, 2, 0, 0, 5, 0, 0, 0});
  expect_values(x.tril(), {0, 0, 0, 3, 4, 0, 6, 7, 8});
  expect_values(x.tril(-1), {0, 0, 0, 3, 0, 0, 6, 7, 0});
  expect_values(x.diagonal(), {0, 4, 8});
  expect_values(iota({4, 2}, device).diagonal(), {0, 3});
  expect_values(iota({2, 2, 3}, device).diagonal(), {0, 4, 6, 10});
}

TEST_ON_DEVICES(Shapes, joining) {
  const Tensor a = iota({2}, device), b = iota({2}, device) + 5;
  expect_tensor(stack({a, b}), {2, 2}, {0, 1, 5, 6});
  expect_tensor(stack({a, b}, -1), {2, 2}, {0, 5, 1, 6});
  const Tensor mixed = cat({a.cast(DType::i32), b});
  EXPECT_EQ(mixed.dtype(), DType::f32);
  expect_values(mixed, {0, 1, 5, 6});
}

}  // namespace
}  // namespace fornax
