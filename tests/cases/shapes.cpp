// Cases about shapes, sizes of 0, slices and values that overlap, by their ids (sections A to C).
#include "tests/cases/setting.h"
#include "tests/errors.h"

namespace fornax {
namespace {

CASE(C002_broadcast_with_size_zero) {
  EXPECT_EQ((s.zeros({0}) * s.zeros({1})).shape(), (Shape{0}));
  EXPECT_EQ((s.zeros({3, 0}) + s.zeros({3, 1})).shape(), (Shape{3, 0}));
  EXPECT_EQ((s.zeros({1, 4}) + s.zeros({0, 1})).shape(), (Shape{0, 4}));
  EXPECT_TRUE((s.zeros({1, 4}) + s.zeros({0, 1})).to_vector<float>().empty());
  EXPECT_THROW(s.zeros({0}) + s.zeros({2}), Error);
}

CASE(C004_matmul_of_a_sliced_row) {
  const Tensor x = s.iota({1, 3, 4})(slice(), 2, slice());
  expect_tensor(x.matmul(s.ones({2, 4}).transpose()), {1, 2}, {38, 38});
}

CASE(C005_matmul_of_constants) {
  expect_tensor(s.zeros({1, 2}).matmul(s.zeros({2, 2})), {1, 2}, {0, 0});
}

CASE(C006_matmul_overflow) {
  const Tensor a = s.floats({1e30, -1e30}, {1, 2}), b = s.floats({1e30, 1e30}, {2, 1});
  EXPECT_FALSE(std::isfinite(a.matmul(b).item<float>()));
}

CASE(C008_permute_and_reshape_under_fusion) {
  const Tensor y = s.iota({2, 2, 256}).permute({1, 0, 2}).reshape({2, 512}) * 1 + 0;
  std::vector<double> wanted;
  for (int64_t start : {0, 512, 256, 768}) {
    for (double number : counting(256, double(start))) wanted.push_back(number);
  }
  expect_tensor(y, {2, 512}, wanted);
}

CASE(C009_swap_dims_then_variance) {
  const Tensor x = s.floats({0.03365147, 0.64734447, 0.74192876, 0.06468803, 0.39552283, 0.55383015,
                             0.4253056, 0.8396726},
                            {1, 2, 4});
  const std::vector<double> mean{0.21458715, 0.60058731, 0.58361721, 0.45218033};
  const std::vector<double> variance{0.03273772, 0.00218623, 0.02506256, 0.15015028};
  expect_values(x.mean(1), mean);
  expect_values(x.variance(1, {.correction = 0}), variance);
  const Tensor swapped = x.transpose(1, 2);
  expect_values(swapped.mean(2), mean);
  expect_values(swapped.variance(2, {.correction = 0}), variance);
}

CASE(C012_element_count_overflow) {
  const Options o{.device = s.device};
  const size_t before = s.device.memory().in_use;
  const int64_t far = int64_t(1) << 33;
  const auto message = [&](Shape shape) {
    return message_of(ErrorKind::shape, [&] { ones(shape, o); });
  };
  expect_words(message({2, 2, 1, 2305843009213693952}), "element count overflows");
  expect_words(message({far, far}), "element count overflows");
  EXPECT_EQ(s.device.memory().in_use, before);
}

CASE(C013_cat_with_a_part_of_length_zero) {
  const Tensor joined = cat({s.zeros({2, 3}), s.zeros({2, 0})}, 1);
  expect_tensor(joined, {2, 3}, std::vector<double>(6, 0));
  expect_tensor(cat({s.zeros({2, 0}), s.zeros({2, 0})}, 1), {2, 0}, {});
}

CASE(C014_reductions_over_nothing) {
  const Tensor x = s.zeros({0});
  EXPECT_EQ(x.sum().item<float>(), 0);
  EXPECT_EQ(x.prod().item<float>(), 1);
  EXPECT_TRUE(std::isnan(x.mean().item<float>()));
  EXPECT_FALSE(x.any().item<bool>());
  EXPECT_TRUE(x.all().item<bool>());
  EXPECT_THROW(x.max(), Error);
  EXPECT_THROW(x.argmax(), Error);
  expect_tensor(s.zeros({0, 3}).sum(0), {3}, {0, 0, 0});
  expect_tensor(s.zeros({2, 0}).sum(1), {2}, {0, 0});
}

CASE(C016_matmul_with_inner_size_zero) {
  expect_tensor(s.zeros({2, 0}).matmul(s.zeros({0, 3})), {2, 3}, std::vector<double>(6, 0));
  expect_tensor(s.zeros({0, 4}).matmul(s.zeros({4, 3})), {0, 3}, {});
  expect_tensor(s.zeros({2, 2, 0}).matmul(s.zeros({0, 1})), {2, 2, 1}, {0, 0, 0, 0});
}

CASE(C018_slices_without_elements) {
  Tensor x = s.floats({1, 2, 3});
  expect_tensor(x(slice(1, 1)), {0}, {});
  expect_tensor(x(slice(3, 3)), {0}, {});
  expect_tensor(x(slice(2, 1)), {0}, {});
  x.at(slice(1, 1)) = s.zeros({0});
  expect_values(x, {1, 2, 3});
}

CASE(C020_negative_and_long_steps) {
  const Tensor a = s.iota({10});
  expect_values(a(slice(none, none, -1)), counting(10, 9, -1));
  expect_values(a(slice(8, 2, -2)), {8, 6, 4});
  expect_values(a(slice(2, 8, 3)), {2, 5});
  expect_values(a(slice(none, none, -3)), {9, 6, 3, 0});
  expect_values(a(slice(-20, 20, 4)), {0, 4, 8});
  expect_tensor(a(slice(7, 3)), {0}, {});
  expect_values(a(slice(-3)), {7, 8, 9});
  expect_values(a(slice(none, none, std::numeric_limits<int64_t>::min())), {9});
  expect_values(a(slice(4, none, std::numeric_limits<int64_t>::max())), {4});
}

CASE(C024_overlapping_shift) {
  Tensor a = s.iota({3, 3});
  a.at(slice(), slice(1)) = a(slice(), slice(none, -1));
  expect_values(a, {0, 0, 1, 3, 3, 4, 6, 6, 7});
}

CASE(C025_overlapping_subtract) {
  Tensor a = s.iota({20});
  a.at(slice(1)) -= a(slice(none, -1));
  std::vector<double> wanted(20, 1);
  wanted[0] = 0;
  expect_values(a, wanted);
}

CASE(C026_broadcast_of_itself) {
  Tensor c = s.iota({101}).expand({50, 101});
  c /= c(slice(), slice(100, 101));
  EXPECT_EQ(c.max().item<float>(), 1);
  Tensor a = s.floats({1, 2, 3, 5}, {2, 2});
  a -= a(slice(), slice(0, 1));
  expect_values(a, {0, 1, 0, 2});
}

CASE(C028_values_stay) {
  const Tensor x = s.iota({3});
  Tensor y = x;
  y = y + 1;
  expect_values(x, {0, 1, 2});
  expect_values(y, {1, 2, 3});
}

}  // namespace
}  // namespace fornax
