// Numeric cases drawn from public bug reports, by their ids, that the tests of one room do not
// hold.
//
// Not here: C049, C050 and C052 need 3 to 9 GB and run where FORNAX_LARGE_TESTS is set (large.cpp);
// C088 and C089 need interpolation, C122 recurrent layers, C128 attention by name: no such ops yet.
#include "tests/cases/setting.h"

namespace fornax {
namespace {

CASE(C010_long_chain_without_sync) {
  for (int64_t size : {32, 600}) {  // small ops run at once, larger ones are recorded
    const auto chain = [&](bool read) {
      Tensor x = s.ones({size});
      for (int i = 0; i < 1000; i++) {
        x = x * 1.0001f - x * 0.0001f;
        if (read) x.to_vector<float>();
      }
      return x.to_vector<float>();
    };
    const std::vector<float> wanted = chain(true);
    for (float value : wanted) EXPECT_NEAR(value, 1, 2e-4);
    const int rounds = s.is_slow() ? 2 : 50;
    for (int round = 0; round < rounds; round++) ASSERT_EQ(chain(false), wanted) << round;
  }
}

CASE(C040_signs_of_division) {
  for (DType dtype : {DType::i8, DType::i32, DType::i64, DType::f32, DType::f64}) {
    const Tensor a = s.integers({7, -7, 7, -7}, dtype), b = s.integers({3, 3, -3, -3}, dtype);
    expect_values(floor_divide(a, b), {2, -3, -3, 2});
    expect_values(trunc_divide(a, b), {2, -2, -2, 2});
    expect_values(a % b, {1, 2, -2, -1});
    expect_values(fmod(a, b), {1, -1, 1, -1});
  }
}

CASE(C041_exact_whole_division) {
  expect_values(floor_divide(s.integers({110}), s.integers({55})), {2});
  expect_values(s.integers({110}) % s.integers({55}), {0});
  for (DType dtype : {DType::i32, DType::i64}) {
    const Tensor a = arange(1001, {.dtype = dtype, .device = s.device}).unsqueeze(1);
    const Tensor b = arange(1, 201, 1, {.dtype = dtype, .device = s.device});
    const Tensor q = floor_divide(a, b), r = a % b;
    EXPECT_TRUE((q * b + r == a).all().item<bool>());
    EXPECT_TRUE(((r >= 0) & (r < b)).all().item<bool>());
  }
  const int64_t big = (int64_t(1) << 53) + 1;
  EXPECT_EQ(floor_divide(s.integers({big}), 1).item<int64_t>(), big);
  EXPECT_EQ((s.integers({big}) % 2).item<int64_t>(), 1);
  EXPECT_EQ(floor_divide(s.integers({2147483647}, DType::i32), 1).item<int64_t>(), 2147483647);
}

CASE(C042_rest_of_floats) {
  expect_values(s.floats({3.5}) % s.floats({3.5}), {0});
  expect_values(s.floats({5.3, -5.3}) % 2, {1.3, 0.7});
  expect_values(s.floats({5.3, -5.3}) % -2, {-0.7, -1.3});
}

CASE(C048_floats_to_whole_numbers) {
  expect_values(s.floats({1.9, -1.9, 2.5, -2.5}).cast(DType::i32), {1, -1, 2, -2});
  const Tensor rounded = s.floats({0.5, 1.5, 2.5, -0.5, -1.5}).round();
  expect_values(rounded, {0, 2, 2, 0, -2});
  EXPECT_TRUE(std::signbit(rounded.to_vector<float>()[3]));
  expect_values(s.floats({300, -1, kNan, kInf}).cast(DType::u8), {255, 0, 0, 255});
}

CASE(C108_corners_of_pow) {
  expect_values(s.floats({0}).pow(s.floats({0})), {1});
  expect_values(s.floats({-2, -2, -2}).pow(s.floats({3, 2, 0.5})), {-8, 4, kNan});
}

// Softmax attention of q, k and v over the keys that the mask lets through, composed: masked scores
// are chosen away, so that what they hold never comes through; rows without a key give zeros.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const Tensor scale = full({}, 1 / std::sqrt(double(q.shape(-1))), {.device = q.device()});
  const Tensor scores = where(mask, q.matmul(k.transpose()) * scale, -kInf);
  const Tensor weights = where(mask.any(-1, {.keep_dims = true}), softmax(scores), 0);
  const Tensor seen = mask.any(-2).unsqueeze(-1);
  return weights.matmul(where(seen, v, 0));
}

CASE(C124_a_row_without_keys) {
  const Tensor q = s.floats({1, 0, 0, 1}, {2, 2}), v = s.floats({1, 2, 3, 4}, {2, 2});
  const Tensor mask = s.floats({1, 0, 0, 0}, {2, 2}).detach() > 0;
  const Tensor y = attend(q, q, v, mask);
  expect_values(y, {1, 2, 0, 0});
  if (!s.tracks) return;
  for (const Tensor& g : grad({y.sum()}, {q, v})) {
    EXPECT_TRUE(g.is_finite().all().item<bool>());
  }
}

CASE(C125_nan_in_a_masked_key) {
  for (double odd : {kNan, 1e10}) {
    const Tensor q = s.floats({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 4});
    const Tensor k = s.floats({0, 1, 2, 3, odd, 5, 6, 7}, {1, 2, 4});
    const Tensor mask = s.floats({1, 0, 1, 0}, {1, 2, 2}).detach() > 0;
    expect_values(attend(q, k, q, mask), {0, 1, 2, 3, 0, 1, 2, 3});
  }
}

CASE(C126_lowest_finite_scores) {
  const double lowest = std::numeric_limits<float>::lowest();
  expect_values(softmax(s.floats({lowest, lowest, lowest})), {1 / 3., 1 / 3., 1 / 3.});
  const Tensor mask = s.floats({lowest, lowest, lowest});
  expect_values(softmax(mask + s.floats({1, 2, 3})), {1 / 3., 1 / 3., 1 / 3.});
}

CASE(C141_memory_is_not_content) {
  for (int round = 0; round < 4; round++) {
    { const Tensor poison = full({64, 64}, kNan, {.device = s.device}).exp().contiguous(); }
    EXPECT_EQ((zeros({64, 64}, {.device = s.device}) + 0).sum().item<float>(), 0);
    EXPECT_EQ(ones({64, 64}, {.device = s.device}).contiguous().sum().item<float>(), 4096);
    const Tensor eye64 = eye(64, {.device = s.device});
    EXPECT_EQ(eye64.matmul(eye64).sum().item<float>(), 64);
  }
}

}  // namespace
}  // namespace fornax
