// Indexing, assigning, gathering and scattering: src/tensor/index.cpp and indexing.cpp.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

TEST_ON_DEVICES(Indexing, basic) {
  const Tensor x = iota({2, 3, 4}, device);
  EXPECT_EQ(x(1, 2, 3).item<float>(), 23);
  EXPECT_EQ(x(-1, -1, -1).item<float>(), 23);
  expect_tensor(x(0), {3, 4}, counting(12));
  expect_tensor(x(ellipsis, 0), {2, 3}, {0, 4, 8, 12, 16, 20});
  expect_tensor(x(slice(), 1, slice(none, none, 2)), {2, 2}, {4, 6, 16, 18});
  expect_tensor(x(0, new_axis, 1), {1, 4}, {4, 5, 6, 7});
  expect_tensor(x(new_axis, ellipsis, new_axis, 3), {1, 2, 3, 1}, {3, 7, 11, 15, 19, 23});
  expect_tensor(tensor(5.0, {.device = device})(ellipsis), {}, {5});
}

TEST_ON_DEVICES(Indexing, integer_tensors) {
  const Tensor x = iota({3, 4}, device);
  expect_tensor(x(integers({2, 0, -1}, device)), {3, 4}, {8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11});
  const Tensor rows = integers({0, 2}, device), columns = integers({3, -4}, device);
  expect_tensor(x(rows, columns), {2}, {3, 8});
  expect_tensor(x(rows.unsqueeze(1), columns), {2, 2}, {3, 0, 11, 8});
  expect_tensor(x(slice(), integers({1}, device)), {3, 1}, {1, 5, 9});
  expect_tensor(x(tensor(1, {.device = device})), {4}, {4, 5, 6, 7});
  expect_tensor(x(from(std::vector<uint8_t>{2, 1}, device), -1), {2}, {11, 7});
  EXPECT_EQ(x(integers({}, device)).shape(), (Shape{0, 4}));
}

TEST_ON_DEVICES(Indexing, separated_tensors_come_first) {
  const Tensor x = iota({2, 3, 4}, device);
  const Tensor i = integers({0, 1}, device);
  expect_tensor(x(i, slice(), i), {2, 3}, {0, 4, 8, 13, 17, 21});
  expect_tensor(x(0, slice(), i), {2, 3}, {0, 4, 8, 1, 5, 9});
  expect_tensor(x(slice(), 0, i), {2, 2}, {0, 1, 12, 13});
  expect_tensor(x(slice(), i, i), {2, 2}, {0, 5, 12, 17});
}

TEST_ON_DEVICES(Indexing, masks) {
  const Tensor x = iota({2, 3}, device);
  expect_tensor(x(x > 2), {3}, {3, 4, 5});
  expect_tensor(x(tensor({false, true}, {.device = device})), {1, 3}, {3, 4, 5});
  expect_tensor(x(slice(), tensor({true, false, true}, {.device = device})), {2, 2}, {0, 2, 3, 5});
  EXPECT_EQ(x(x > 9).shape(), (Shape{0}));
  expect_tensor((x % 2 == 1).nonzero(), {3, 2}, {0, 1, 1, 0, 1, 2});
}

TEST_ON_DEVICES(Indexing, assigning_regions) {
  Tensor x = iota({3, 3}, device);
  x.at(1) = -1;
  expect_values(x, {0, 1, 2, -1, -1, -1, 6, 7, 8});
  x.at(slice(), 0) = floats({10, 20, 30}, device);
  expect_values(x, {10, 1, 2, 20, -1, -1, 30, 7, 8});
  x.at(slice(none, none, 2), slice(none, none, 2)) = 0;
  expect_values(x, {0, 1, 0, 20, -1, -1, 0, 7, 0});
  x.at(0, slice(none, none, -1)) = floats({1, 2, 3}, device);
  expect_values(x, {3, 2, 1, 20, -1, -1, 0, 7, 0});
  x.at(slice(none, none, -2), 1) += floats({100, 200}, device);
  expect_values(x, {3, 202, 1, 20, -1, -1, 0, 107, 0});
  x.at(ellipsis) = 7;
  expect_values(x, std::vector<double>(9, 7));
}

TEST_ON_DEVICES(Indexing, assigning_rebinds_one_handle) {
  Tensor x = iota({3}, device);
  const Tensor before = x;
  x.at(0) = 9;
  expect_values(before, {0, 1, 2});
  expect_values(x, {9, 1, 2});
  x.at(1) = x.at(0);
  expect_values(x, {9, 9, 2});
}

TEST_ON_DEVICES(Indexing, assigning_by_tensors) {
  Tensor x = iota({4}, device);
  x.at(integers({0, -1}, device)) = floats({10, 20}, device);
  expect_values(x, {10, 1, 2, 20});
  x.at(integers({1, 1, 2}, device)) += 1;
  expect_values(x, {10, 3, 3, 20});
  x.at(integers({0}, device)) /= 4;
  x.at(integers({3, 3}, device)) *= 2;
  x.at(integers({1}, device)) -= 5;
  expect_values(x, {2.5, -2, 3, 80});
  x.at(x > 50) = 0;
  expect_values(x, {2.5, -2, 3, 0});
  x.at(x != 0) = floats({1, 2, 3}, device);
  expect_values(x, {1, 2, 3, 0});

  Tensor y = zeros({2, 3}, {.device = device});
  y.at(slice(1), integers({2, 0}, device)) = floats({5, 6}, device);
  expect_values(y, {0, 0, 0, 6, 0, 5});
  y.at(integers({0, 1}, device), integers({1, 1}, device)) += 1;
  expect_values(y, {0, 1, 0, 6, 1, 5});
}

TEST_ON_DEVICES(Scatter, take_and_gather) {
  const Tensor x = iota({2, 3}, device);
  expect_tensor(x.take(integers({2, 0, 2, 1}, device).reshape({2, 2}), 1), {2, 2, 2},
                {2, 0, 2, 1, 5, 3, 5, 4});
  const Tensor index = integers({0, 2, 1, 1}, device).reshape({2, 2});
  expect_tensor(x.gather(1, index), {2, 2}, {0, 2, 4, 4});
  expect_tensor(embedding(integers({1, 0}, device), x), {2, 3}, {3, 4, 5, 0, 1, 2});
}

TEST_ON_DEVICES(Cases, C092_scatter_add_with_repeats) {
  const Tensor out =
      ones({3}, {.device = device})
          .scatter_add(0, integers({0, 0, 2, 0}, device), floats({10, 20, 30, 40}, device));
  expect_values(out, {71, 1, 31});
}

TEST_ON_DEVICES(Cases, C093_scatter_with_a_smaller_index) {
  const Tensor index = integers({0, 4, 0, 1, 1, 1}, device).reshape({2, 3});
  const Tensor out = zeros({2, 5}, {.device = device}).scatter_add(1, index, 1);
  expect_values(out, {2, 0, 0, 0, 1, 0, 3, 0, 0, 0});
}

TEST_ON_DEVICES(Cases, C096_max_scatter) {
  const Tensor twice = integers({0, 0}, device), once = integers({0}, device);
  expect_values(zeros({1}, {.device = device}).scatter_max(0, twice, floats({2, 3}, device)), {3});
  expect_values(full({1}, -kInf, {.device = device}).scatter_max(0, once, 1), {1});
  expect_values(full({1}, 4, {.device = device}).scatter_min(0, twice, floats({2, 3}, device)),
                {2});
}

TEST_ON_DEVICES(Cases, C097_assigning_scatter_with_repeats) {
  const Tensor out =
      zeros({2}, {.device = device}).scatter(0, integers({0, 0}, device), floats({1, 2}, device));
  expect_values(out, {2, 0});
}

TEST_ON_DEVICES(Scatter, masked_fill_keeps_the_dtype) {
  const Tensor x = arange(4, {.device = device});
  const Tensor filled = x.masked_fill(x > 1, -1);
  EXPECT_EQ(filled.dtype(), DType::i64);
  expect_values(filled, {0, 1, -1, -1});
}

}  // namespace
}  // namespace fornax
