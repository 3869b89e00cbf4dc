// Cases about gradients, by their ids; more of them stand in tests/grad/composed_cases.cpp.
#include "tests/cases/setting.h"

namespace fornax {
namespace {

// Operands may be views of leaves, whose history several losses share: hence retain_graph.
Tensor gradient_of(const Tensor& y, const Tensor& x) {
  return grad({y.sum()}, {x}, {.retain_graph = true})[0];
}

GRADIENT_CASE(C001_broadcast_backward) {
  const Tensor a = s.floats({1, 2}, {2, 1}), b = s.floats({10, 20, 30});
  const std::vector<Tensor> g = grad({(a * b).sum()}, {a, b});
  expect_tensor(g[0], {2, 1}, {60, 60});
  expect_tensor(g[1], {3}, {3, 3, 3});
}

GRADIENT_CASE(C013_gradient_through_an_empty_part) {
  const Tensor a = s.zeros({2, 3}), b = s.zeros({2, 0});
  const std::vector<Tensor> g = grad({cat({a, b}, 1).sum()}, {a, b});
  expect_tensor(g[0], {2, 3}, std::vector<double>(6, 1));
  expect_tensor(g[1], {2, 0}, {});
}

GRADIENT_CASE(C017_running_sums_of_nothing) {
  const Tensor x = s.zeros({2, 0});
  expect_tensor(gradient_of(x.cumsum(1), x), {2, 0}, {});
  expect_tensor(gradient_of(x.cumprod(1), x), {2, 0}, {});
}

GRADIENT_CASE(C021_a_strided_slice_of_one_element) {
  const Tensor x = s.zeros({2, 3});
  const Tensor loss = (x(slice(0, none, 2)) * s.floats({1, 2, 3})).sum() +
                      (x(slice(1, none, 2)) * s.floats({100, 101, 102})).sum();
  expect_tensor(gradient_of(loss, x), {2, 3}, {1, 2, 3, 100, 101, 102});
}

GRADIENT_CASE(C022_a_slice_with_a_negative_step) {
  const Tensor x = s.floats({1, 2, 3, 4});
  expect_values(gradient_of(x(slice(3, 0, -5)), x), {0, 0, 0, 1});
  expect_values(gradient_of(x(slice(none, none, -2)) * s.floats({1, 2}), x), {0, 2, 0, 1});
}

GRADIENT_CASE(C028_set_grad_replaces) {
  const Tensor x = s.floats({1, 2});
  x.retain_grad();
  (x * 5).sum().backward();
  expect_values(x.grad(), {5, 5});
  x.set_grad(s.floats({7, 8}).detach());
  expect_values(x.grad(), {7, 8});
  EXPECT_THROW(x.set_grad(s.floats({1})), Error);
  expect_values(x.grad(), {7, 8});
}

GRADIENT_CASE(C090_every_gradient_accumulates) {
  const Tensor x = s.floats({1, 2}, {1, 2});
  const Tensor twice = x.unsqueeze(-1).expand({1, 2, 2}).reshape({1, 4});
  expect_values(gradient_of(twice.sum() + x.sum(), x), {3, 3});
}

GRADIENT_CASE(C094_scatter_of_more_values_than_positions) {
  const Tensor source = s.floats({5, 6});
  const Tensor base = zeros({3}, {.device = s.device});
  EXPECT_THROW(base.scatter_add(0, s.integers({2}), source), Error);
  const Tensor out = base.scatter_add(0, s.integers({2}), source(slice(0, 1)));
  expect_values(out, {0, 0, 5});
  expect_values(gradient_of(out, source), {1, 0});
}

GRADIENT_CASE(C100_product_with_zeros) {
  const Tensor one = s.floats({2, 0, 3, 4}), two = s.floats({2, 0, 3, 0});
  expect_values(gradient_of(one.prod(), one), {0, 24, 0, 0});
  expect_values(gradient_of(two.prod(), two), {0, 0, 0, 0});
  const Tensor huge = s.floats({1e13, 0, 0, 1e13, 1e13, 0, 1e13, 1e13, 1e13}, {3, 3});
  expect_values(gradient_of(huge.prod(), huge), std::vector<double>(9, 0));
  const Tensor zero = s.floats({0});
  expect_tensor(gradient_of(zero.prod(0), zero), {1}, {1});
}

GRADIENT_CASE(C106_kinks_of_pairs_and_bounds) {
  const Tensor x = s.floats({0}), y = s.floats({0});
  const std::vector<Tensor> g = grad({maximum(x, y).sum()}, {x, y}, {.retain_graph = true});
  expect_values(g[0], {0.5});
  expect_values(g[1], {0.5});
  const Tensor bounds = s.floats({-1, 1, 0, 2});
  expect_values(gradient_of(bounds.clamp(-1, 1), bounds), {1, 1, 1, 0});
  expect_values(gradient_of(x.abs(), x), {0});
  expect_values(gradient_of(x.sign(), x), {0});
}

GRADIENT_CASE(C108_gradients_of_pow) {
  const Tensor a = s.floats({0, 2}), b = s.floats({0, -3});
  expect_values(gradient_of(a.pow(0), a), {0, 0});
  expect_values(gradient_of(b.pow(2), b), {0, -6});
}

GRADIENT_CASE(C109_used_twice_through_a_transpose) {
  const Tensor one = s.floats({1}, {1, 1});
  expect_values(gradient_of(one.matmul(one.transpose()), one), {2});
  const Tensor x = s.floats({1, 2, 3, 4}, {2, 2});
  expect_values(gradient_of(x.matmul(x.transpose()), x), {8, 12, 8, 12});
}

GRADIENT_CASE(C110_diamond) {
  const Tensor x = s.floats({2});
  const Tensor y = x * x;
  expect_values(gradient_of(y + y, x), {8});
  const Tensor z = s.floats({1, 2});
  expect_values(gradient_of((z * 2).detach() * z, z), {2, 4});
}

GRADIENT_CASE(C112_second_derivative) {
  const Tensor x = s.floats({2});
  const Tensor g = grad({(x * x * x).sum()}, {x}, {.create_graph = true})[0];
  expect_values(g, {12});
  expect_values(gradient_of(g, x), {12});
}

GRADIENT_CASE(C168_fused_forms_have_gradients) {
  const Tensor x = s.floats({1, -2, 0.5, 3, 0, 1}, {2, 3});
  const Tensor w = s.floats({1, 2, 3}), b = s.floats({0.1, 0.2, 0.3}), c = s.floats({1, 0, -2});
  const Tensor e = (x - x.max(-1, {.keep_dims = true}).detach()).exp();
  const Tensor plain = e / e.sum(-1, {.keep_dims = true});
  const std::vector<double> slopes = gradient_of(plain * c, x).to_vector<double>();
  expect_values(gradient_of(softmax(x) * c, x), slopes, 1e-6);
  const Tensor centred = x - x.mean(-1, {.keep_dims = true});
  const Tensor root = (centred.square().mean(-1, {.keep_dims = true}) + 1e-5f).sqrt();
  const Tensor composed = centred / root * w + b;
  const std::vector<Tensor> wanted =
      grad({(composed * c).sum()}, {x, w, b}, {.retain_graph = true});
  const Tensor norm = layer_norm(x, 1, {.weight = w, .bias = b});
  const std::vector<Tensor> got = grad({(norm * c).sum()}, {x, w, b});
  for (size_t i = 0; i < 3; i++) {
    expect_values(got[i], wanted[i].to_vector<double>(), 1e-6);
  }
}

}  // namespace
}  // namespace fornax
