// Cases about NaN, order and comparison, and about sums of whole numbers, by their ids (sections D
// and E).
#include "tests/cases/setting.h"

namespace fornax {
namespace {

CASE(C029_argmax_and_nan) {
  EXPECT_EQ(s.floats({3, kNan, 1, 5}).argmax().item<int64_t>(), 1);
  EXPECT_EQ(s.floats({kNan, 1, 2}).argmin().item<int64_t>(), 0);
  EXPECT_EQ(s.floats({1, 2, kNan}).argmin().item<int64_t>(), 2);
  EXPECT_EQ(s.floats({kInf, kNan, -kInf}).argmax().item<int64_t>(), 1);
  for (const int64_t length : {3, 4, 8, 33, 1000, 5000}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      std::vector<double> values(size_t(length), 1);
      values[size_t(length / 2)] = kNan;
      const Tensor x = s.floats(values, dtype);
      EXPECT_EQ(x.argmax().item<int64_t>(), length / 2);
      EXPECT_EQ(x.argmin().item<int64_t>(), length / 2);
    }
  }
}

// Over all elements, along rows and along columns.
CASE(C030_max_and_nan_in_every_position) {
  for (const int64_t length : {1, 3, 8, 33}) {
    for (int64_t i = 0; i < length; i++) {
      std::vector<double> values = counting(3 * length);
      values[size_t(length + i)] = kNan;
      const Tensor rows = s.floats(values, {3, length}), row = rows(1);
      const Tensor columns = rows.detach().transpose().contiguous();
      const double last = double(length) - 1, start = double(2 * length);
      expect_values(row.max(), {kNan});
      expect_values(row.min(), {kNan});
      expect_values(rows.max(1), {last, kNan, start + last});
      expect_values(rows.min(1), {0, kNan, start});
      expect_values(columns.max(0), {last, kNan, start + last});
      expect_values(columns.min(0), {0, kNan, start});
    }
  }
  EXPECT_EQ(s.floats({1, 5, 5, 1}).argmax().item<int64_t>(), 1);
  EXPECT_EQ(s.floats({1, 5, 5, 1}).argmin().item<int64_t>(), 0);
}

CASE(C032_cummax_and_nan) {
  expect_values(s.floats({1, 3, kNan, 5, 4}).cummax(0), {1, 3, kNan, kNan, kNan});
  expect_values(s.floats({3, 4, 1, 2}).cummin(0), {3, 3, 1, 1});
}

CASE(C033_sort_and_nan) {
  const Tensor x = s.floats({1, kNan, 2, 0});
  expect_values(x.sort(), {0, 1, 2, kNan});
  expect_values(x.argsort(), {3, 0, 2, 1});
  expect_values(x.sort({.descending = true}), {kNan, 2, 1, 0});
  expect_values(x.argsort({.descending = true}), {1, 2, 0, 3});
}

CASE(C034_stable_sort_with_ties) {
  const Tensor x = s.floats({2, 1, 2, 1, 2});
  expect_values(x.argsort(), {1, 3, 0, 2, 4});
  expect_values(x.argsort({.descending = true}), {0, 2, 4, 1, 3});
}

CASE(C036_relu_and_negative_zero) {
  const Tensor x = s.floats({-0.0, kNan, -1, 2});
  expect_values(relu(x), {0, kNan, 0, 2});
  EXPECT_FALSE(std::signbit(relu(x)(0).item<float>()));
  EXPECT_FALSE(std::signbit(maximum(x, 0.0)(0).item<float>()));
  EXPECT_FALSE(std::signbit(maximum(s.floats({0}), x(0)).item<float>()));
}

CASE(C037_equality_against_own_max) {
  s.device.seed(1);
  const Shape shape{1, 2, 2, 2, 2, 64};
  const std::vector<double> numbers =
      uniform(shape, 0, 1, {.device = s.device}).to_vector<double>();
  const auto equal_to_max = [&](Device device) {
    const Tensor x = Setting{device, s.tracks, s.views}.floats(numbers, shape);
    return (x == x.max({2, 4}, {.keep_dims = true})).to_vector<bool>();
  };
  EXPECT_EQ(equal_to_max(s.device.eager()), equal_to_max(s.device.fused()));
  const Tensor x = s.floats(numbers, shape), largest = x.max({2, 4}, {.keep_dims = true});
  const Tensor same = x == largest, count = same.sum({2, 4}, {.keep_dims = true});
  EXPECT_TRUE((count >= 1).all().item<bool>());
  const Tensor shares = same.cast(DType::f32) / count;  // the gradient of a pool, by hand
  EXPECT_FALSE(is_nan(shares).any().item<bool>());
  if (!s.tracks) return;
  const Tensor slopes = grad({largest.sum()}, {x})[0];
  expect_values(slopes, shares.to_vector<double>(), 0);
}

CASE(C038_bool_reduction_after_compare) {
  const Tensor a = s.floats({0, 1, 0, 1, -1, 1}, {2, 3}) + 1e-6;
  const Tensor b = s.floats({0, 1, 0, 1, -1, 1}, {2, 3}) + 1e-6;
  const auto expect = [](const Tensor& compared, bool all, bool any) {
    EXPECT_EQ(compared.all().item<bool>(), all);
    EXPECT_EQ(compared.any().item<bool>(), any);
    EXPECT_EQ(compared.all(1).to_vector<bool>()[0], all);
    EXPECT_EQ(compared.any(0).to_vector<bool>()[2], any);
  };
  expect(a == b, true, true);
  expect(a <= b, true, true);
  expect(a >= b, true, true);
  expect(a != b, false, false);
  expect(a < b, false, false);
  expect(a > b, false, false);
  // One that is smaller, in the last place of the first row and of the last column.
  const Tensor c = b + s.floats({0, 0, 1, 0, 0, 0}, {2, 3});
  expect(a == c, false, true);
  expect(a <= c, true, true);
  expect(a >= c, false, true);
  expect(a != c, false, true);
  expect(a < c, false, true);
  expect(a > c, false, false);
  expect(is_finite(a), true, true);
  const auto host = [&](std::vector<double> values) {
    return s.given(from(values, {2, 3}, s.device).cast(DType::bool_));
  };
  expect(host({0, 0, 1, 0, 0, 0}), false, true);
  expect(host({1, 1, 1, 1, 1, 1}), true, true);
  expect(host({0, 0, 0, 0, 0, 0}), false, false);
  expect(s.given(tensor({{true, true, false}, {false, false, true}}, {.device = s.device})), false,
         true);
}

CASE(C044_counting_trues) {
  EXPECT_EQ((s.ones({5000}) == 1).sum().item<int64_t>(), 5000);
  const Tensor trues = s.given(full({300}, true, {.dtype = DType::bool_, .device = s.device}));
  EXPECT_EQ(trues.sum().item<int64_t>(), 300);
}

CASE(C045_narrow_running_sums) {
  expect_values(s.integers({200, 100, 50}, DType::u8).cumsum(0), {200, 300, 350});
  expect_values(s.integers({100, 100, 50}, DType::i8).cumsum(0), {100, 200, 250});
  expect_values(s.integers({200, 100, 50}, DType::u8).cumprod(0), {200, 20000, 1000000});
  const Tensor ones_u8 = s.integers(std::vector<int64_t>(300, 1), DType::u8);
  EXPECT_EQ(ones_u8.cumsum(0)(-1).item<int64_t>(), 300);
}

CASE(C046_int32_sum_and_mean) {
  const Tensor x = s.integers({2147483647, 2147483647}, DType::i32);
  EXPECT_EQ(x.sum().item<int64_t>(), 4294967294);
  EXPECT_EQ(x.mean().dtype(), DType::f32);
  EXPECT_EQ(x.mean().item<double>(), 2147483648.0);  // the f32 next to 2147483647
}

}  // namespace
}  // namespace fornax
