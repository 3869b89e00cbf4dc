// Gradients of composed ops: cases of tests drawn from public bug reports, by their ids.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

Tensor gradient_of(const Tensor& loss, const Tensor& x) { return grad({loss.sum()}, {x})[0]; }
Tensor tracked(std::vector<double> values, Shape shape, Device device) {
  return floats(std::move(values), shape, device).require_grad();
}
Tensor tracked(std::vector<double> values, Device device) {
  return floats(std::move(values), device).require_grad();
}

TEST_ON_DEVICES(Cases, C061_logsumexp_of_minus_infinity) {
  const Tensor x = tracked({-kInf, -kInf}, device);
  expect_values(gradient_of(x.logsumexp(), x), {0, 0});
  const Tensor y = tracked({-kInf, 1}, device);
  expect_values(gradient_of(y.logsumexp(), y), {0, 1});
}

TEST_ON_DEVICES(Cases, C064_cross_entropy) {
  const Tensor x = tracked({1, 2, 3, 1, 2, 3, 4, 1, 0}, {3, 3}, device);
  const Tensor t = integers({0, -100, 2}, device);
  expect_values(gradient_of(cross_entropy(x, t), x),
                {-0.4549847, 0.1223642, 0.3326205, 0, 0, 0, 0.4681198, 0.0233063, -0.4914261});
}

TEST_ON_DEVICES(Cases, C065_everything_ignored) {
  const Tensor x = tracked({1, 2}, {1, 2}, device);
  const Tensor loss = cross_entropy(x, integers({-100}, device), {.reduction = Reduction::sum});
  expect_values(gradient_of(loss, x), {0, 0});
}

TEST_ON_DEVICES(Cases, C069_stable_functions) {
  const Tensor x = tracked({0, 100}, device);
  expect_values(gradient_of(softplus(x), x), {0.5, 1});
  const Tensor y = tracked({1000, -1000}, device);
  expect_values(gradient_of(elu(y), y), {1, 0});
  expect_values(gradient_of(silu(y), y), {1, 0});
}

TEST_ON_DEVICES(Cases, C070_depthwise_stride_two) {
  const Tensor x = iota({1, 4, 4, 4}, device).require_grad();
  const Tensor w = iota({4, 1, 3, 3}, device).require_grad();
  const Tensor b = iota({4}, device).require_grad();
  const Tensor y = conv2d(x, w, b, {.stride = 2, .padding = 1, .groups = 4});
  const std::vector<Tensor> g = grad({y.sum()}, {x, w, b});
  expect_values(g[0](0, 0), {4, 8, 4, 5, 8, 16, 8, 10, 4, 8, 4, 5, 7, 14, 7, 8});
  expect_values(g[1](0, 0), {5, 10, 12, 10, 20, 24, 18, 36, 40});
  expect_values(g[1](3, 0), {53, 106, 108, 106, 212, 216, 114, 228, 232});
  expect_values(g[2], {4, 4, 4, 4});
}

TEST_ON_DEVICES(Cases, C074_transposed_convolution) {
  const Tensor x = tracked({1, 2, 3}, {1, 1, 3}, device);
  const Tensor k = floats({1, 10, 100}, {1, 1, 3}, device);
  // Each gradient is the sum of the taps that land inside.
  expect_values(gradient_of(conv_transpose1d(x, k, {}, {.stride = 2, .padding = 1}), x),
                {110, 111, 11});
  expect_values(gradient_of(conv_transpose1d(x, k, {}, {.stride = 2, .output_padding = 1}), x),
                {111, 111, 111});
}

TEST_ON_DEVICES(Cases, C084_windows_of_nan) {
  const Tensor x = tracked({kNan, kNan, -kInf, -kInf}, {1, 1, 4}, device);
  expect_values(gradient_of(max_pool1d(x, 2), x), {1, 0, 1, 0});
}

TEST_ON_DEVICES(Cases, C086_ties_and_overlap) {
  const Tensor a = tracked({1, 1, 1, 1}, {1, 1, 4}, device);
  expect_values(gradient_of(max_pool1d(a, 2, {.stride = 1}), a), {1, 1, 1, 0});
  const Tensor b = tracked({1, 3, 2}, {1, 1, 3}, device);
  expect_values(gradient_of(max_pool1d(b, 2, {.stride = 1}), b), {0, 2, 0});
}

TEST_ON_DEVICES(Cases, C167_maximum_pool) {
  const Tensor x = tracked({1, 2, 3, 4}, {1, 1, 2, 2}, device);
  expect_values(gradient_of(max_pool2d(x, 2), x), {0, 0, 0, 1});
}

TEST_ON_DEVICES(Cases, C092_scatter_add_with_repeats) {
  const Tensor base = tracked({1, 1, 1}, device), source = tracked({10, 20, 30, 40}, device);
  const Tensor out = base.scatter_add(0, integers({0, 0, 2, 0}, device), source);
  const std::vector<Tensor> g = grad({(out * floats({1, 2, 3}, device)).sum()}, {base, source});
  expect_values(g[0], {1, 2, 3});
  expect_values(g[1], {1, 1, 3, 1});
}

TEST_ON_DEVICES(Cases, C093_scatter_with_a_smaller_index) {
  const Tensor base = zeros({2, 5}, {.device = device}).require_grad();
  const Tensor values = ones({2, 3}, {.device = device}).require_grad();
  const Tensor index = integers({0, 4, 0, 1, 1, 1}, device).reshape({2, 3});
  const Tensor loss = (base.scatter_add(1, index, values) * iota({2, 5}, device)).sum();
  const std::vector<Tensor> g = grad({loss}, {base, values});
  expect_values(g[0], counting(10));
  expect_values(g[1], {0, 4, 0, 6, 6, 6});
}

TEST_ON_DEVICES(Cases, C097_assigning_scatter_with_repeats) {
  const Tensor source = tracked({1, 2}, device);
  const Tensor out = zeros({2}, {.device = device}).scatter(0, integers({0, 0}, device), source);
  expect_values(gradient_of(out, source), {0, 1});
}

TEST_ON_DEVICES(Cases, C098_embedding) {
  const Tensor weight = zeros({3, 2}, {.device = device}).require_grad();
  const Tensor ids = integers({0, 2, 2, 2}, device).reshape({2, 2});
  expect_values(gradient_of(embedding(ids, weight), weight), {1, 1, 0, 0, 3, 3});
}

TEST_ON_DEVICES(Cases, C102_trace_of_a_tall_matrix) {
  const Tensor x = zeros({4, 2}, {.device = device}).require_grad();
  expect_values(gradient_of(x.trace(), x), {1, 0, 0, 1, 0, 0, 0, 0});
}

TEST_ON_DEVICES(Cases, C104_normalize_at_zero) {
  const Tensor x = zeros({1, 2}, {.device = device}).require_grad();
  expect_values(gradient_of(normalize(x), x), {1e12, 1e12});
}

TEST_ON_DEVICES(Cases, C105_deviation_and_variance) {
  const Tensor same = tracked({2, 2, 2}, device);
  expect_values(gradient_of(same.deviation(), same), {0, 0, 0});
  const Tensor one = tracked({3}, device);
  expect_tensor(gradient_of(one.variance(), one), {1}, {kNan});
  const Tensor x = tracked({1, 2, 4}, device);
  expect_values(gradient_of(x.variance(), x), {-1.3333333, -0.3333333, 1.6666667});
}

TEST_ON_DEVICES(Cases, C106_kinks) {
  const auto at = [&](auto function, std::vector<double> points, std::vector<double> wanted) {
    const Tensor x = tracked(points, device);
    expect_values(gradient_of(function(x), x), wanted);
  };
  at([](const Tensor& x) { return relu(x); }, {0}, {0});
  at([](const Tensor& x) { return relu6(x); }, {0, 6}, {0, 0});
  at([](const Tensor& x) { return hardtanh(x); }, {-1, 1}, {0, 0});
  at([](const Tensor& x) { return leaky_relu(x, 0.1); }, {0}, {0.1});
  at([](const Tensor& x) { return x.norm(); }, {0, 0}, {0, 0});
  at([](const Tensor& x) { return elu(x, 2); }, {0}, {2});
}

TEST_ON_DEVICES(Cases, C114_an_overwritten_slice) {
  const Tensor x = tracked({1, 2, 3}, device);
  Tensor y = x * 2;
  y.at(1) = 0;
  expect_values(gradient_of(y, x), {2, 0, 2});

  const Tensor z = tracked({1, 2, 3, 4, 5}, device), v = tracked({7, 8, 9}, device);
  Tensor w = z * 1;
  w.at(slice(none, none, 2)) = v;
  const std::vector<Tensor> g = grad({w.sum()}, {z, v});
  expect_values(g[0], {0, 1, 0, 1, 0});
  expect_values(g[1], {1, 1, 1});
}

TEST_ON_DEVICES(Indexing, gradients_of_masks_and_positions) {
  const Tensor x = tracked({1, 2, 3, 4}, {2, 2}, device);
  expect_values(gradient_of(x(x > 1) * floats({1, 10, 100}, device), x), {0, 1, 10, 100});
  const Tensor twice = integers({1, 1}, device);
  expect_values(gradient_of(x(twice, twice), x), {0, 0, 0, 2});
  const Tensor v = tracked({5, 6}, device);
  Tensor y = x * 1;
  y.at(integers({0, 1}, device), 0) += v;
  const std::vector<Tensor> g = grad({(y * y).sum()}, {x, v});
  expect_values(g[0], {12, 4, 18, 8});
  expect_values(g[1], {12, 18});
}

TEST_ON_DEVICES(Cases, C129_dropout) {
  device.seed(9);
  const Tensor x = (iota({1000}, device) % 2).require_grad();
  const Tensor kept = dropout(x + 1, 0.25);
  const Tensor g = gradient_of(kept, x);
  EXPECT_TRUE(((g == 0) == (kept == 0)).all().item<bool>());
  EXPECT_TRUE(((g == 0) | (g == 1 / 0.75f)).all().item<bool>());
  expect_values(gradient_of(dropout(x, 1), x), std::vector<double>(1000, 0));
}

TEST_ON_DEVICES(Cases, C168_softmax_and_layer_norm) {
  const Tensor x = tracked({1, 2, 4}, {1, 3}, device), c = floats({1, 0, 0}, device);
  const Tensor y = softmax(x.detach());
  const double p = y(0, 0).item<double>(), q = y(0, 1).item<double>(), r = y(0, 2).item<double>();
  expect_values(gradient_of(softmax(x) * c, x), {p * (1 - p), -p * q, -p * r});
  const Tensor w = tracked({1, 2, 3}, device), b = tracked({0, 0, 0}, device);
  const std::vector<Tensor> g =
      grad({(layer_norm(x, 1, {.weight = w, .bias = b, .epsilon = 0}) * c).sum()}, {x, w, b});
  expect_values(g[0], {0.2290811, -0.3436216, 0.1145405});
  expect_values(g[1], {-1.0690450, 0, 0});
  expect_values(g[2], {1, 0, 0});
}

}  // namespace
}  // namespace fornax
