// Ops of src/tensor/reduce.cpp and scan.cpp.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

TEST_ON_DEVICES(Reductions, over_some_axes) {
  const Tensor x = iota({2, 3}, device);
  EXPECT_EQ(x.sum().item<float>(), 15);
  EXPECT_EQ(x.sum().rank(), 0);
  expect_tensor(x.sum(0), {3}, {3, 5, 7});
  expect_tensor(x.sum(-1, {.keep_dims = true}), {2, 1}, {3, 12});
  expect_tensor(x.mean({0, 1}), {}, {2.5});
  expect_values(x.max(1), {2, 5});
  expect_values(x.min(0), {0, 1, 2});
  expect_values((x + 1).prod(1), {6, 120});
  expect_values((x > 4).any(1), {0, 1});
  expect_values((x >= 3).all(1), {0, 1});
  EXPECT_EQ(x.argmax().item<int64_t>(), 5);
  expect_tensor(x.argmin(1, {.keep_dims = true}), {2, 1}, {0, 0});
}

TEST_ON_DEVICES(Reductions, of_single_numbers) {
  const Tensor x = tensor(3.5, {.device = device});
  EXPECT_EQ(x.sum().item<float>(), 3.5f);
  EXPECT_EQ(x.mean().item<float>(), 3.5f);
  EXPECT_EQ(x.argmax().item<int64_t>(), 0);
  EXPECT_EQ(tensor(true, {.device = device}).sum().dtype(), DType::i64);
}

TEST_ON_DEVICES(Reductions, norms) {
  const Tensor x = floats({3, -4, 0}, device);
  EXPECT_NEAR(x.norm().item<float>(), 5, 1e-6);
  EXPECT_NEAR(x.norm(1).item<float>(), 7, 1e-6);
  EXPECT_NEAR(x.norm(0).item<float>(), 2, 1e-6);
  EXPECT_NEAR(x.norm(kInf).item<float>(), 4, 1e-6);
  EXPECT_NEAR(x.norm(3).item<float>(), std::cbrt(91.0), 1e-5);
}

TEST_ON_DEVICES(Reductions, variance) {
  const Tensor x = floats({1, 2, 4}, device);
  EXPECT_NEAR(x.variance().item<float>(), 2.3333333, 1e-6);
  EXPECT_NEAR(x.variance({}, {.correction = 0}).item<float>(), 1.5555556, 1e-6);
  EXPECT_NEAR(x.deviation().item<float>(), 1.5275252, 1e-6);
  EXPECT_TRUE(std::isnan(floats({3}, device).variance().item<float>()));
  EXPECT_EQ(floats({3}, device).variance({}, {.correction = 0}).item<float>(), 0);
}

TEST_ON_DEVICES(Scans, topk) {
  const auto [values, where] = floats({1, 5, 3, 9, 2, 4}, {2, 3}, device).topk(2);
  expect_tensor(values, {2, 2}, {5, 3, 9, 4});
  expect_tensor(where, {2, 2}, {1, 2, 0, 2});
}

TEST_ON_DEVICES(Cases, C053_sums_of_halves) {
  const auto ones_of = [&](int64_t count, DType dtype) {
    return ones({count}, {.dtype = dtype, .device = device}) * 1;
  };
  EXPECT_EQ(ones_of(4096, DType::f16).sum().item<double>(), 4096);
  EXPECT_EQ(ones_of(20000, DType::f16).sum().item<double>(), 20000);
  EXPECT_EQ(ones_of(70000, DType::bf16).sum().item<double>(), 70144);
  EXPECT_EQ(ones_of(70000, DType::bf16).mean().item<double>(), 1);
  EXPECT_EQ(ones_of(70000, DType::f16).mean().item<double>(), 1);
}

TEST_ON_DEVICES(Cases, C054_sum_over_another_axis) {
  const Tensor x = ones({4096, 2}, {.dtype = DType::f16, .device = device}) * 1;
  expect_values(x.sum(0), {4096, 4096});
  expect_values(x.transpose().sum(1), {4096, 4096});
}

TEST_ON_DEVICES(Cases, C060_logsumexp) {
  const Tensor x = floats({1, 2, -kInf, -kInf}, {2, 2}, device);
  expect_values(x.logsumexp(1), {2.3132617, -kInf});
  expect_values(floats({1000, 1000}, device).logsumexp(), {1000.6931});
  expect_values(floats({kInf, 1}, device).logsumexp(), {kInf});
  const Tensor low = floats({-kInf}, device);
  expect_values(logaddexp(low, low), {-kInf});
  expect_values(logaddexp(floats({1}, device), 2), {2.3132617});
}

TEST_ON_DEVICES(Cases, C101_cumprod_with_a_leading_zero) {
  const Tensor x = arange(0, 50, 0.5, {.dtype = DType::f32, .device = device});
  expect_values(x.cumprod(0), std::vector<double>(100, 0));
}

}  // namespace
}  // namespace fornax
