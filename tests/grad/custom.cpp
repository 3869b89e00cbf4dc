// Ops of one's own, checkpointed functions, and recomputing cheap values in the backward pass.
#include "tests/grad/check.h"

namespace fornax {
namespace {

const CustomOp& cube() {
  static const CustomOp op{
      "cube", [](const Many& in) { return Many{in[0] * in[0] * in[0]}; },
      [](const Many& in, const Many&, const Many& g) { return Many{g[0] * in[0] * in[0] * 3}; }};
  return op;
}

// Its gradient reads the result.
const CustomOp& own_exp() {
  static const CustomOp op{
      "own_exp", [](const Many& in) { return Many{in[0].exp()}; },
      [](const Many&, const Many& out, const Many& g) { return Many{g[0] * out[0]}; }};
  return op;
}

const CustomOp& sum_and_product() {
  static const CustomOp op{"sum_and_product",
                           [](const Many& in) {
                             return Many{in[0] + in[1], in[0] * in[1]};
                           },
                           [](const Many& in, const Many&, const Many& g) {
                             return Many{g[0] + g[1] * in[1], g[0] + g[1] * in[0]};
                           }};
  return op;
}

TEST_ON_DEVICES(CustomOps, with_one_result) {
  const Tensor x = tracked({1, 2}, device);
  const Tensor y = cube()({x})[0];
  expect_values(y, {1, 8});
  y.sum().backward();
  expect_values(x.grad(), {3, 12});
  check_twice("cube", [](const Many& in) { return cube()({in[0].sin()})[0]; },
              {scattered({3}, device)});
}

TEST_ON_DEVICES(CustomOps, whose_gradient_reads_the_result) {
  const Body body = [](const Many& in) {
    const Tensor y = own_exp()({in[0]})[0];  // the handle goes before the gradient is taken
    return y * 2;
  };
  check_twice("own exp", body, {scattered({3}, device)});
  check_gradients("own exp, third derivative", gradient_body(gradient_body(body)),
                  {scattered({2}, device)});
}

TEST_ON_DEVICES(CustomOps, with_several_results) {
  const Tensor a = tracked({1, 2}, device), b = tracked({3, 4}, device);
  const Many y = sum_and_product()({a, b});
  (y[0] + y[1] * 10).sum().backward();
  expect_values(a.grad(), {31, 41});
  expect_values(b.grad(), {11, 21});
  const Many again = sum_and_product()({a, b});  // only one result is used
  const Many g = grad({again[1].sum()}, {a, b});
  expect_values(g[0], {3, 4});
  expect_values(g[1], {1, 2});
  const Body body = [](const Many& in) {
    const Many out = sum_and_product()({in[0], in[1]});
    return out[0] * out[1];
  };
  check_twice("sum and product", body, {scattered({3}, device), scattered({3}, device, 2)});
}

TEST_ON_DEVICES(CustomOps, gradients_may_be_missing_but_not_miscounted) {
  CustomOp op{"half_known", [](const Many& in) { return Many{in[0] + in[1]}; },
              [](const Many&, const Many&, const Many& g) {
                return Many{g[0], Tensor()};
              }};
  const Tensor a = tracked({1}, device), b = tracked({2}, device);
  op({a, b})[0].sum().backward();
  expect_values(a.grad(), {1});
  EXPECT_FALSE(b.grad().defined());
  op.backward = [](const Many&, const Many&, const Many& g) { return g; };
  EXPECT_NE(message_of([&] {
              op({a, b})[0].sum().backward();
            }).find("half_known: backward returned 1 gradients for 2 inputs"),
            std::string::npos);
  op.backward = [](const Many&, const Many&, const Many& g) {
    return Many{cat({g[0], g[0]}), g[0]};
  };
  const Tensor c = tracked({1, 2}, device), d = tracked({3, 4}, device);
  EXPECT_NE(
      message_of([&] {
        op({c, d})[0].sum().backward();
      }).find("half_known: backward returned the gradient f32[4] for input 0, which is f32[2]"),
      std::string::npos);
}

TEST_ON_DEVICES(CustomOps, an_error_in_backward_leaves_the_library_usable) {
  const CustomOp op{"thrower", [](const Many& in) { return Many{in[0] * 1}; },
                    [](const Many&, const Many&, const Many&) -> Many {
                      throw Error(ErrorKind::value, "thrower: no");
                    }};
  const Tensor x = tracked({1}, device);
  EXPECT_EQ(message_of([&] { op({x})[0].backward(); }), "thrower: no");
  EXPECT_TRUE((x * 2).requires_grad());
  (x * 2).backward();
  expect_values(x.grad(), {2});
}

TEST_ON_DEVICES(CustomOps, dropping_the_results_frees_everything) {
  const Tensor x = normal({64, 64}, 0, 1, {.device = device}).require_grad();
  const auto round = [&] {
    const Many y = sum_and_product()({x.exp(), own_exp()({x})[0]});
    device.sync();
  };
  round();
  EXPECT_EQ(growth(device, round), 0);
  EXPECT_EQ(growth(device,
                   [&] {
                     const Many y = sum_and_product()({x.exp(), own_exp()({x})[0]});
                     (y[0] + y[1]).sum().backward();
                     x.set_grad({});
                   }),
            0);
}

TEST_ON_DEVICES(Checkpoints, give_the_same_values_and_gradients) {
  const Tensor w = tracked(scattered({4, 4}, device).cast(DType::f32));
  const Checkpoint::Body body = [w](const Many& in) {
    return Many{gelu(in[0].matmul(w)), in[0].matmul(w).sum()};
  };
  const Tensor x = tracked(scattered({2, 4}, device, 2).cast(DType::f32));
  const Many plain = body({x}), kept = checkpoint(body)({x});
  EXPECT_EQ(kept[0].to_vector<float>(), plain[0].to_vector<float>());
  (plain[0].sum() + plain[1]).backward();
  const std::vector<float> dx = x.grad().to_vector<float>(), dw = w.grad().to_vector<float>();
  x.set_grad({});
  w.set_grad({});
  (kept[0].sum() + kept[1]).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), dx);
  EXPECT_EQ(w.grad().to_vector<float>(), dw);

  const Many again = checkpoint(body)({x});
  const Many g = grad({again[0].sum() + again[1]}, {w, x});
  EXPECT_EQ(g[0].to_vector<float>(), dw);
  EXPECT_EQ(g[1].to_vector<float>(), dx);
}

TEST_ON_DEVICES(Checkpoints, reach_captured_parameters_alone) {
  const Tensor w = tracked({2, 3}, device), x = floats({5, 7}, device);
  const Tensor y = checkpoint([w](const Many& in) { return Many{in[0] * w * w}; })({x})[0];
  ASSERT_TRUE(y.requires_grad());
  y.sum().backward();
  expect_values(w.grad(), {20, 42});
  EXPECT_FALSE(checkpoint([](const Many& in) { return Many{in[0] * 2}; })({x})[0].requires_grad());
}

TEST_ON_DEVICES(Checkpoints, share_a_captured_value_with_others) {
  const Tensor w = tracked({2, 3}, device);
  const auto loss = [&](bool kept) {
    const Tensor h = w * w;  // has a history of its own
    const Checkpoint::Body body = [h](const Many& in) { return Many{in[0] * h}; };
    const Many first = kept ? checkpoint(body)({h.exp()}) : body({h.exp()});
    const Many second = kept ? checkpoint(body)({first[0]}) : body({first[0]});
    return (second[0] * h).sum();
  };
  loss(false).backward();
  const std::vector<float> wanted = w.grad().to_vector<float>();
  w.set_grad({});
  loss(true).backward();
  const std::vector<float> got = w.grad().to_vector<float>();
  for (size_t i = 0; i < 2; i++) EXPECT_NEAR(got[i], wanted[i], 1e-5 * std::abs(wanted[i]));
  const Tensor partial = grad({loss(true)}, {w})[0];
  EXPECT_NEAR(partial.to_vector<float>()[1], wanted[1], 1e-5 * std::abs(wanted[1]));
}

TEST_ON_DEVICES(Checkpoints, call_hooks_of_captured_values_once) {
  const Tensor w = tracked({2}, device);
  int calls = 0;
  on_gradient(w, [&](const Tensor& g) {
    calls++;
    return g * 10;
  });
  const Tensor y = checkpoint([w](const Many& in) { return Many{in[0] * w}; })({w * 3})[0];
  (y + w).sum().backward();  // 3 w^2 + w
  EXPECT_EQ(calls, 1);
  expect_values(w.grad(), {130});
}

TEST_ON_DEVICES(Checkpoints, within_checkpoints) {
  const Tensor w = tracked({0.5, 0.25}, device);
  const Checkpoint::Body inner = [w](const Many& in) { return Many{(in[0] * w).tanh()}; };
  const Checkpoint::Body outer = [w, inner](const Many& in) {
    return Many{checkpoint(inner)({in[0] * w})[0] * w};
  };
  const Tensor x = tracked({1, 2}, device);
  const auto plain = [&] { return (((x * w) * w).tanh() * w).sum(); };
  const Many wanted = grad({plain()}, {x, w});
  const Many got = grad({checkpoint(outer)({x})[0].sum()}, {x, w});
  expect_values(got[0], wanted[0].to_vector<double>());
  expect_values(got[1], wanted[1].to_vector<double>());
  checkpoint(outer)({x})[0].sum().backward();
  expect_values(x.grad(), wanted[0].to_vector<double>());
  expect_values(w.grad(), wanted[1].to_vector<double>());
}

TEST_ON_DEVICES(Checkpoints, can_be_differentiated_twice) {
  const Body body = [](const Many& in) {
    const Tensor w = in[1];
    return checkpoint([w](const Many& i) { return Many{(i[0] * w).sin()}; })({in[0]})[0];
  };
  check_twice("checkpoint", body, {scattered({3}, device), scattered({3}, device, 2)});
}

TEST_ON_DEVICES(Checkpoints, draw_the_same_numbers_again) {
  device.seed(3);
  const Tensor x = ones({1000}, {.device = device}).require_grad();
  const Tensor y = checkpoint([](const Many& in) { return Many{dropout(in[0], 0.5)}; })({x})[0];
  const std::vector<float> next = uniform({4}, 0, 1, {.device = device}).to_vector<float>();
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), y.to_vector<float>());
  device.seed(3);
  dropout(x, 0.5).sum().backward();
  EXPECT_EQ((uniform({4}, 0, 1, {.device = device}).to_vector<float>()), next);
}

// Bytes that a forward pass of `depth` layers leaves for the backward pass.
int64_t kept_by(Device device, bool checkpoints, int depth, const Tensor& w) {
  const Checkpoint::Body layer = [w](const Many& in) {
    return Many{gelu(in[0].matmul(w)).sin().exp() * 0.1};
  };
  Tensor y;
  const Device on = w.device();
  const int64_t kept = growth(device, [&] {
    y = ones({64, 64}, {.device = on});
    for (int i = 0; i < depth; i++) y = checkpoints ? checkpoint(layer)({y})[0] : layer({y})[0];
    y = y.sum();
  });
  y.backward();
  return kept;
}

TEST_ON_DEVICES(Checkpoints, keep_less) {
  const Tensor w = normal({64, 64}, 0, 0.1, {.device = device}).require_grad();
  const int64_t all = kept_by(device, false, 8, w), inputs = kept_by(device, true, 8, w);
  EXPECT_LE(inputs, int64_t(8 * 64 * 64 * 4 + 1024));
  EXPECT_LT(inputs * 3, all);
  testing::Test::RecordProperty("kept_plain", std::to_string(all));
  testing::Test::RecordProperty("kept_checkpoint", std::to_string(inputs));
}

TEST_ON_DEVICES(Balanced, keeps_less_for_the_same_gradients) {
  const Tensor start = normal({64, 64}, 0, 0.1, {.device = device});
  const Tensor plain = start.to(device.autodiff()).require_grad();
  const Tensor balanced = start.to(device.autodiff(Checkpointing::balanced)).require_grad();
  const int64_t all = kept_by(device, false, 8, plain), less = kept_by(device, false, 8, balanced);
  EXPECT_LT(less * 2, all);
  EXPECT_EQ(balanced.grad().to_vector<float>(), plain.grad().to_vector<float>());
  testing::Test::RecordProperty("kept_all", std::to_string(all));
  testing::Test::RecordProperty("kept_balanced", std::to_string(less));
}

TEST_ON_DEVICES(Balanced, long_cheap_chains) {
  const Device on = device.autodiff(Checkpointing::balanced);
  const Tensor x = ones({4}, {.device = on}).require_grad();
  const auto chain = [&](Tensor y) {
    for (int i = 0; i < 3000; i++) y = (y * 1.0001f).sin() + y * 0.5f;
    return y.sum();
  };
  chain(x).backward();
  const Tensor z = ones({4}, {.device = device}).require_grad();
  chain(z).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), z.grad().to_vector<float>());
}

TEST_ON_DEVICES(Balanced, walks_twice_and_differentiates_twice) {
  const Device on = device.autodiff(Checkpointing::balanced);
  const Tensor x = full({3}, 0.7, {.device = on}).require_grad();
  const Tensor y = (x.sin().exp() * x).sum();
  y.backward({.retain_graph = true});
  y.backward();
  const Tensor z = full({3}, 0.7, {.device = device}).require_grad();
  (z.sin().exp() * z).sum().backward();
  expect_values(x.grad(), (z.grad() * 2).to_vector<double>());
  const Body body = [on](const Many& in) { return in[0].to(on).sin().exp().matmul(in[1].to(on)); };
  check_twice("balanced", body, {scattered({2, 3}, device), scattered({3, 2}, device, 2)});
}

}  // namespace
}  // namespace fornax
