// Activations, norms, products and statistics.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

TEST_ON_DEVICES(Subnormals, are_kept_by_ops_sums_and_products) {
  const float least = std::numeric_limits<float>::denorm_min();
  const Tensor x = full({40}, double(least), {.device = device});
  EXPECT_EQ((x * 2)(39).item<float>(), 2 * least);
  EXPECT_EQ((x + x)(0).item<float>(), 2 * least);
  EXPECT_EQ((x * 0x1p100)(7).item<float>(), 0x1p-49f);
  EXPECT_EQ(x.sum().item<float>(), 40 * least);
  EXPECT_EQ(x.max().item<float>(), least);
  EXPECT_EQ(x.reshape({4, 10}).matmul(ones({10, 4}, {.device = device}))(3, 3).item<float>(),
            10 * least);
  const Tensor y = full({40}, 0x1p-1074, {.dtype = DType::f64, .device = device});
  EXPECT_EQ((y * 3).sum().item<double>(), 120 * 0x1p-1074);
}

TEST_ON_DEVICES(Activations, values) {
  const Tensor x = floats({-3, -0.5, 0, 1, 7}, device);
  expect_values(relu6(x), {0, 0, 0, 1, 6});
  expect_values(leaky_relu(x, 0.1), {-0.3, -0.05, 0, 1, 7});
  expect_values(elu(x), {-0.9502129, -0.3934693, 0, 1, 7});
  expect_values(selu(x), {-1.6705687, -0.6917582, 0, 1.0507010, 7.3549069});
  expect_values(gelu(x), {-0.0040497, -0.1542687, 0, 0.8413447, 7});
  expect_values(gelu_tanh(x), {-0.0036374, -0.1542860, 0, 0.8411920, 7});
  expect_values(silu(x), {-0.1422776, -0.1887703, 0, 0.7310586, 6.9936223});
  expect_values(mish(x), {-0.1456475, -0.2207436, 0, 0.8650984, 6.9999887});
  expect_values(softsign(x), {-0.75, -0.3333333, 0, 0.5, 0.875});
  expect_values(hardtanh(x), {-1, -0.5, 0, 1, 1});
  expect_values(hard_sigmoid(x), {0, 0.4166667, 0.5, 0.6666667, 1});
  expect_values(hard_swish(x), {0, -0.2083333, 0, 0.6666667, 7});
  expect_values(softplus(x, 2), {0.0012378, 0.1566309, 0.3465736, 1.0634640, 7.0000004});
  expect_values(glu(floats({1, 2, 0, 100}, device)), {0.5, 2});
}

TEST_ON_DEVICES(Cases, C069_stable_functions) {
  expect_values(softplus(floats({100, -100, 0, 1000}, device)), {100, 0, 0.6931472, 1000});
  expect_values(log_sigmoid(floats({-1000, 0, 1000}, device)), {-1000, -0.6931472, 0});
  expect_values(sigmoid(floats({-1000, 1000}, device)), {0, 1});
  expect_values(silu(floats({-1000, 1000}, device)), {0, 1000});
  expect_values(elu(floats({1000}, device)), {1000});
}

TEST_ON_DEVICES(Activations, softmax) {
  const Tensor x = floats({1, 2, 3, 1000, 1000, -kInf}, {2, 3}, device);
  expect_values(softmax(x), {0.0900306, 0.2447285, 0.6652410, 0.5, 0.5, 0});
  expect_values(log_softmax(x)(0), {-2.4076059, -1.4076059, -0.4076059});
  expect_values(softmax(x(0).unsqueeze(1), 0), {0.0900306, 0.2447285, 0.6652410});
  EXPECT_EQ(softmax(zeros({2, 0}, {.device = device})).shape(), (Shape{2, 0}));
  EXPECT_EQ(softmax(arange(3, {.device = device})).dtype(), DType::f32);
}

TEST_ON_DEVICES(Cases, C056_softmax_in_f16) {
  const Tensor y = softmax(zeros({4096}, {.dtype = DType::f16, .device = device}) * 1);
  EXPECT_TRUE((y == 1.0 / 4096).all().item<bool>());
  EXPECT_EQ(y.sum().item<double>(), 1);
}

TEST_ON_DEVICES(Cases, C058_layer_norm_epsilon_in_f16) {
  const Tensor x = full({4}, 3, {.dtype = DType::f16, .device = device}) * 1;
  expect_values(layer_norm(x, 1, {.epsilon = 1e-12}), {0, 0, 0, 0});
}

TEST_ON_DEVICES(Cases, C120_layer_norm_of_huge_values) {
  expect_values(layer_norm(floats({1e30, -1e30}, device)), {0, 0});  // documented in norm.cpp
}

TEST_ON_DEVICES(Cases, C121_epsilon_is_inside_the_root) {
  expect_values(layer_norm(floats({1, -1}, device), 1, {.epsilon = 3}), {0.5, -0.5});
  expect_values(layer_norm(floats({3, 3, 3}, device)), {0, 0, 0});
}

TEST_ON_DEVICES(Norms, with_weight_and_bias) {
  const Tensor x = floats({1, 3, 5, 9}, {2, 2}, device);
  const NormOptions o{
      .weight = floats({2, 1}, device), .bias = floats({0, 10}, device), .epsilon = 0};
  expect_values(layer_norm(x, 1, o), {-2, 11, -2, 11});
  expect_values(rms_norm(x, {.epsilon = 0}), {0.4472136, 1.3416408, 0.6868028, 1.2362451});
  const Tensor mean = floats({1, 3}, device), variance = floats({4, 9}, device);
  expect_values(batch_norm(x, mean, variance, o), {0, 10, 4, 12});
  expect_values(batch_norm(x.reshape({1, 2, 2}), mean, variance, {.epsilon = 0}),
                {0, 1, 0.6666667, 2});
  const NormedBatch own = batch_norm(x, o);
  expect_values(own.y, {-2, 9, 2, 11});
  expect_values(own.mean, {3, 6});
  expect_values(own.variance, {4, 9});
}

TEST_ON_DEVICES(Cases, C104_normalize_at_zero) {
  expect_values(normalize(zeros({1, 2}, {.device = device})), {0, 0});
  expect_values(normalize(floats({3, 4}, {1, 2}, device)), {0.6, 0.8});
}

// ── Products ─────────────────────────────────────────────────────────────────────────────────────
TEST_ON_DEVICES(Products, vectors_matrices_and_batches) {
  const Tensor a = iota({2, 3}, device), v = floats({1, 10, 100}, device);
  expect_tensor(a.matmul(v), {2}, {210, 543});
  expect_tensor(floats({1, 10}, device).matmul(a), {3}, {30, 41, 52});
  expect_tensor(v.matmul(v), {}, {10101});
  expect_tensor(a.unsqueeze(0).matmul(a.transpose()), {1, 2, 2}, {5, 14, 14, 50});
  const Tensor batch = stack({a, a * 2});
  expect_tensor(batch.matmul(v), {2, 2}, {210, 543, 420, 1086});
  expect_tensor(a.matmul(batch.transpose()), {2, 2, 2}, {5, 14, 14, 50, 10, 28, 28, 100});
  expect_tensor(v.dot(v), {}, {10101});
  expect_tensor(floats({1, 2}, device).outer(v), {2, 3}, {1, 10, 100, 2, 20, 200});
  EXPECT_EQ(iota({3, 3}, device).trace().item<float>(), 12);
  expect_tensor(linear(a, a.transpose(), floats({1, 2}, device)), {2, 2}, {6, 16, 15, 52});
  EXPECT_EQ(arange(4, {.device = device}).matmul(arange(4, {.device = device})).dtype(),
            DType::i64);
}

// ── Statistics ───────────────────────────────────────────────────────────────────────────────────
TEST_ON_DEVICES(Statistics, values) {
  const Tensor x = floats({1, 2, 3, 2, 4, 9}, {2, 3}, device);
  expect_tensor(covariance(x), {2, 2}, {1, 3.5, 3.5, 13});
  expect_tensor(cosine_similarity(x, x * 3), {2}, {1, 1});
  expect_tensor(median(floats({4, 1, 3, 2, kNan, 1, 2, 3}, {2, 4}, device)), {2}, {2, kNan});
  expect_tensor(median(integers({5, 1, 3}, device)), {}, {3});
}

TEST_ON_DEVICES(Statistics, closeness) {
  const Tensor a = floats({1, kInf, kNan, 1}, device),
               b = floats({1.000001, kInf, kNan, kInf}, device);
  expect_values(is_close(a, b), {1, 1, 0, 0});
  expect_values(is_close(a, b, {.equal_nan = true}), {1, 1, 1, 0});
  EXPECT_TRUE(all_close(integers({1, 2}, device), integers({1, 2}, device)));
  EXPECT_FALSE(all_close(integers({1, 2}, device), integers({1, 3}, device)));
}

}  // namespace
}  // namespace fornax
