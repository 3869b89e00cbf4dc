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

TEST_ON_DEVICES(Cases, C009_swap_dims_then_variance) {
  const Tensor x = floats({0.03365147, 0.64734447, 0.74192876, 0.06468803, 0.39552283, 0.55383015,
                           0.4253056, 0.8396726},
                          {1, 2, 4}, device);
  const std::vector<double> mean{0.21458715, 0.60058731, 0.58361721, 0.45218033};
  const std::vector<double> variance{0.03273772, 0.00218623, 0.02506256, 0.15015028};
  expect_values(x.mean(1), mean);
  expect_values(x.variance(1, {.correction = 0}), variance);
  const Tensor swapped = x.transpose(1, 2);
  expect_values(swapped.mean(2), mean);
  expect_values(swapped.variance(2, {.correction = 0}), variance);
}

TEST_ON_DEVICES(Cases, C014_reductions_over_nothing) {
  const Options o{.device = device};
  const Tensor x = zeros({0}, o);
  EXPECT_EQ(x.sum().item<float>(), 0);
  EXPECT_EQ(x.prod().item<float>(), 1);
  EXPECT_TRUE(std::isnan(x.mean().item<float>()));
  EXPECT_FALSE(x.any().item<bool>());
  EXPECT_TRUE(x.all().item<bool>());
  EXPECT_THROW(x.max(), Error);
  EXPECT_THROW(x.argmax(), Error);
  expect_tensor(zeros({0, 3}, o).sum(0), {3}, {0, 0, 0});
  expect_tensor(zeros({2, 0}, o).sum(1), {2}, {0, 0});
}

TEST_ON_DEVICES(Cases, C029_argmax_and_nan) {
  EXPECT_EQ(floats({3, kNan, 1, 5}, device).argmax().item<int64_t>(), 1);
  EXPECT_EQ(floats({kNan, 1, 2}, device).argmin().item<int64_t>(), 0);
  EXPECT_EQ(floats({1, 2, kNan}, device).argmin().item<int64_t>(), 2);
  EXPECT_EQ(floats({kInf, kNan, -kInf}, device).argmax().item<int64_t>(), 1);
  for (const int64_t length : {3, 4, 8, 33, 1000, 5000}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      std::vector<double> values(size_t(length), 1);
      values[size_t(length / 2)] = kNan;
      const Tensor x = from(values, device).cast(dtype);
      EXPECT_EQ(x.argmax().item<int64_t>(), length / 2);
      EXPECT_EQ(x.argmin().item<int64_t>(), length / 2);
    }
  }
}

TEST_ON_DEVICES(Cases, C030_max_and_nan_in_every_position) {
  for (const int64_t length : {1, 3, 8, 33}) {
    for (int64_t i = 0; i < length; i++) {
      std::vector<double> values = counting(length);
      values[size_t(i)] = kNan;
      EXPECT_TRUE(std::isnan(floats(values, device).max().item<float>()));
      EXPECT_TRUE(std::isnan(floats(values, device).min().item<float>()));
    }
  }
  EXPECT_EQ(floats({1, 5, 5, 1}, device).argmax().item<int64_t>(), 1);
  EXPECT_EQ(floats({1, 5, 5, 1}, device).argmin().item<int64_t>(), 0);
}

TEST_ON_DEVICES(Cases, C032_cummax_and_nan) {
  expect_values(floats({1, 3, kNan, 5, 4}, device).cummax(0), {1, 3, kNan, kNan, kNan});
  expect_values(floats({3, 4, 1, 2}, device).cummin(0), {3, 3, 1, 1});
}

TEST_ON_DEVICES(Cases, C033_sort_and_nan) {
  const Tensor x = floats({1, kNan, 2, 0}, device);
  expect_values(x.sort(), {0, 1, 2, kNan});
  expect_values(x.argsort(), {3, 0, 2, 1});
  expect_values(x.sort({.descending = true}), {kNan, 2, 1, 0});
}

TEST_ON_DEVICES(Cases, C034_stable_sort_with_ties) {
  const Tensor x = floats({2, 1, 2, 1, 2}, device);
  expect_values(x.argsort(), {1, 3, 0, 2, 4});
  expect_values(x.argsort({.descending = true}), {0, 2, 4, 1, 3});
}

TEST_ON_DEVICES(Scans, topk) {
  const auto [values, where] = floats({1, 5, 3, 9, 2, 4}, {2, 3}, device).topk(2);
  expect_tensor(values, {2, 2}, {5, 3, 9, 4});
  expect_tensor(where, {2, 2}, {1, 2, 0, 2});
}

TEST_ON_DEVICES(Cases, C037_equality_against_own_max) {
  device.seed(1);
  const Tensor x = uniform({1, 2, 2, 2, 2, 64}, 0, 1, {.device = device});
  const Tensor same = x == x.max({2, 4}, {.keep_dims = true});
  EXPECT_TRUE(same.any({2, 4}).all().item<bool>());
  EXPECT_TRUE((same == (x.contiguous() == x.max({2, 4}, {.keep_dims = true}))).all().item<bool>());
}

TEST_ON_DEVICES(Cases, C038_bool_reduction_after_compare) {
  const Tensor a = floats({0, 1, 0, 1, -1, 1}, {2, 3}, device) + 1e-6;
  const Tensor b = floats({0, 1, 0, 1, -1, 1}, {2, 3}, device) + 1e-6;
  EXPECT_TRUE((a <= b).all().item<bool>());
  EXPECT_FALSE((a < b).any().item<bool>());
  EXPECT_TRUE(tensor({true, false}, {.device = device}).any().item<bool>());
}

TEST_ON_DEVICES(Cases, C044_counting_trues) {
  EXPECT_EQ((ones({5000}, {.device = device}) == 1).sum().item<int64_t>(), 5000);
  EXPECT_EQ(full({300}, true, {.dtype = DType::bool_, .device = device}).sum().item<int64_t>(),
            300);
}

TEST_ON_DEVICES(Cases, C045_narrow_running_sums) {
  const auto narrow = [&](std::vector<int64_t> values, DType dtype) {
    return from(values, device).cast(dtype);
  };
  expect_values(narrow({200, 100, 50}, DType::u8).cumsum(0), {200, 300, 350});
  expect_values(narrow({100, 100, 50}, DType::i8).cumsum(0), {100, 200, 250});
  expect_values(narrow({200, 100, 50}, DType::u8).cumprod(0), {200, 20000, 1000000});
  const Tensor ones_u8 = ones({300}, {.dtype = DType::u8, .device = device});
  EXPECT_EQ(ones_u8.cumsum(0)(-1).item<int64_t>(), 300);
}

TEST_ON_DEVICES(Cases, C046_int32_sum_and_mean) {
  const Tensor x = full({2}, 2147483647, {.dtype = DType::i32, .device = device});
  EXPECT_EQ(x.sum().item<int64_t>(), 4294967294);
  EXPECT_EQ(x.mean().dtype(), DType::f32);
  EXPECT_EQ(x.mean().item<double>(), 2147483648.0);  // the f32 next to 2147483647
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
