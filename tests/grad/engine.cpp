// The backward pass itself: accumulation, order, spent graphs, hooks, scopes, memory, threads.
#include <thread>

#include "tests/grad/check.h"

namespace fornax {
namespace {

TEST_ON_DEVICES(Backward, adds_to_what_is_there) {
  const Tensor x = tracked({1, 2}, device);
  EXPECT_FALSE(x.grad().defined());
  (x * x).sum().backward();
  expect_values(x.grad(), {2, 4});
  (x * 3).sum().backward();
  expect_values(x.grad(), {5, 7});
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
  (x * 3).sum().backward();
  expect_values(x.grad(), {3, 3});
}

TEST_ON_DEVICES(Backward, sums_over_every_use) {
  const Tensor w = tracked({2}, device), x = floats({3}, device);
  const auto layer = [&](const Tensor& v) { return v * w; };
  layer(layer(layer(x))).sum().backward();  // 3 w^3
  expect_values(w.grad(), {36});
}

TEST_ON_DEVICES(Backward, a_rebound_copy_is_on_its_own) {
  Tensor x = tracked({1, 2}, device);
  const Tensor same = x;
  Tensor y = x;
  y = y + 1;
  expect_values(x, {1, 2});
  (y * 2).sum().backward();
  expect_values(x.grad(), {2, 2});
  expect_values(same.grad(), {2, 2});
  const Tensor apart = tracked(x);
  EXPECT_FALSE(apart.grad().defined());
  apart.sum().backward();
  expect_values(x.grad(), {2, 2});
}

TEST_ON_DEVICES(Backward, twice_needs_retain_graph) {
  const Tensor x = tracked({2}, device);
  const Tensor y = (x * x).sum();
  y.backward({.retain_graph = true});
  y.backward();
  expect_values(x.grad(), {8});
  const std::string message = message_of([&] { y.backward(); });
  EXPECT_NE(message.find("has been walked already and was freed; pass retain_graph = true"),
            std::string::npos)
      << message;
  const Tensor shared = x * x;
  (shared * 2).sum().backward();
  EXPECT_NE(message_of([&] { (shared * 3).sum().backward(); }).find("engine.cpp"),
            std::string::npos);
}

TEST_ON_DEVICES(Backward, wants_a_number_or_a_gradient) {
  const Tensor x = tracked({1, 2}, device);
  EXPECT_NE(message_of([&] { (x * 2).backward(); }).find("not a single number"), std::string::npos);
  EXPECT_NE(message_of([&] { (x * 2).backward(floats({1}, device)); }).find("f32[1]"),
            std::string::npos);
  const Tensor y = x * x;
  y.backward(floats({1, 10}, device), {.retain_graph = true});
  expect_values(x.grad(), {2, 40});
  y.backward(floats({1, 0}, device));
  expect_values(x.grad(), {4, 40});
  EXPECT_NE(message_of([&] { floats({1}, device).backward(); }).find("not tracked"),
            std::string::npos);
  EXPECT_NE(message_of([&] { x.argmax().backward(); }).find("not tracked"), std::string::npos);
}

TEST_ON_DEVICES(Cases, C113_gradient_of_an_intermediate) {
  const Tensor x = tracked({2}, device);
  const Tensor a = x * x, b = x * x * x;
  a.retain_grad();
  b.retain_grad();
  (a + b).sum().backward();
  expect_values(x.grad(), {16});
  expect_values(a.grad(), {1});
  expect_values(b.grad(), {1});
}

TEST_ON_DEVICES(Backward, flat_ops_give_zeros) {
  const Tensor x = tracked({0.5, -1.5}, device);
  for (const Tensor& y : {x.sign(), x.floor(), x.ceil(), x.round(), x.trunc()}) {
    expect_values(grad({y.sum()}, {x})[0], {0, 0});
  }
  x.exp().floor().sum().backward();
  expect_values(x.grad(), {0, 0});
  x.set_grad({});
  (x.floor() * x).sum().backward();
  expect_values(x.grad(), {0, -2});
}

TEST_ON_DEVICES(Grad, leaves_no_trace) {
  const Tensor x = tracked({1, 2}, device), unused = tracked({1}, device);
  const Tensor y = (x * x).sum();
  const Many found = grad({y}, {x, unused}, {.retain_graph = true, .allow_unused = true});
  expect_values(found[0], {2, 4});
  EXPECT_FALSE(found[1].defined());
  EXPECT_FALSE(x.grad().defined());
  const std::string message = message_of([&] { grad({y}, {x, unused}, {.retain_graph = true}); });
  EXPECT_NE(message.find("input 1 (f32[1]) has no influence"), std::string::npos) << message;
  EXPECT_FALSE(found[0].requires_grad());
}

TEST_ON_DEVICES(Grad, of_several_outputs_and_of_intermediates) {
  const Tensor x = tracked({1, 2}, device);
  const Tensor h = x * x, y = h * 3, z = h.sum();
  const Many g =
      grad({y, z}, {h, x}, {.seeds = {floats({1, 10}, device), floats({2}, device).reshape({})}});
  expect_values(g[0], {5, 32});
  expect_values(g[1], {10, 128});
  EXPECT_NE(message_of([&] {
              grad({y, z}, {x}, {.seeds = {x}});
            }).find("1 seeds for 2 outputs"),
            std::string::npos);
  const Tensor w = x.sum();
  expect_values(grad({w}, {w})[0], {1});
  expect_values(grad({w}, {x, x})[1], {1, 1});
}

TEST_ON_DEVICES(Hooks, see_and_replace) {
  const Tensor x = tracked({1, 2}, device);
  const Tensor y = x * 2;
  int calls = 0;
  std::vector<double> seen;
  on_gradient(y, [&](const Tensor& g) {
    calls++;
    seen = g.to_vector<double>();
    return Tensor();
  });
  on_gradient(y, [](const Tensor& g) { return g * 10; });
  on_gradient(x, [](const Tensor& g) { return g + 1; });
  (y * y + y).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, (std::vector<double>{5, 9}));
  expect_values(x.grad(), {101, 181});
  EXPECT_NE(message_of([&] {
              on_gradient(floats({1}, device), [](const Tensor& g) { return g; });
            }).find("not tracked"),
            std::string::npos);
}

TEST_ON_DEVICES(Scopes, detach_and_no_grad) {
  const Tensor x = tracked({1, 2}, device);
  const Tensor y = (x * 2).detach() * x;
  y.sum().backward();
  expect_values(x.grad(), {2, 4});
  {
    NoGrad off;
    EXPECT_FALSE((x * 2).requires_grad());
    { NoGrad again; }
    EXPECT_FALSE((x * 2).requires_grad());
    EXPECT_TRUE(tracked(x).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
  bool other_thread = false;
  NoGrad off;
  std::thread([&] { other_thread = (x * 2).requires_grad(); }).join();
  EXPECT_TRUE(other_thread);
}

TEST_ON_DEVICES(Scopes, backward_under_no_grad_still_works) {
  const Tensor x = tracked({3}, device);
  const Tensor y = x * x;
  NoGrad off;
  y.backward();
  expect_values(x.grad(), {6});
}

TEST_ON_DEVICES(Devices, the_move_is_differentiable) {
  for (const char* name : {"cpu", "reference"}) {
    const Tensor x = tracked({1, 2}, device);
    const Tensor y = (x * 2).to(Device(name)) * floats({3, 4}, Device(name));
    y.sum().backward();
    expect_values(x.grad(), {6, 8});
    EXPECT_TRUE(x.grad().device() == device);
    const Body body = [&](const Many& in) { return in[0].exp().to(Device(name)).square(); };
    check_twice("move", body, {scattered({3}, device)});
  }
}

TEST_ON_DEVICES(Memory, forward_passes_alone_keep_nothing) {
  const Device on = device.autodiff();
  const Tensor w = normal({64, 64}, 0, 0.1, {.device = on}).require_grad();
  const auto pass = [&] {
    Tensor h = ones({16, 64}, {.device = on});
    for (int i = 0; i < 4; i++) h = gelu(h.matmul(w));
    return h.sum().item<float>();
  };
  pass();
  EXPECT_EQ(growth(device,
                   [&] {
                     for (int i = 0; i < 100; i++) pass();
                   }),
            0);
}

TEST_ON_DEVICES(Memory, dropping_the_outputs_drops_the_graph) {
  const Tensor w = normal({32, 32}, 0, 0.1, {.device = device}).require_grad();
  device.sync();
  Tensor loss;
  EXPECT_GT(growth(device,
                   [&] {
                     loss = w.matmul(w).exp().matmul(w).sum();
                     device.sync();
                   }),
            0);
  loss = {};
  const auto round = [&] {
    const Tensor y = w.matmul(w).exp().matmul(w).sum();
    y.backward();
    w.set_grad({});
  };
  round();
  EXPECT_EQ(growth(device, round), 0);
}

TEST_ON_DEVICES(Memory, a_walked_graph_is_empty) {
  const Tensor w = normal({64, 64}, 0, 0.1, {.device = device}).require_grad();
  device.sync();
  Tensor y;
  const int64_t kept = growth(device, [&] {
    y = w.matmul(w).exp().matmul(w).sum();
    y.backward();
    device.sync();
  });
  EXPECT_LE(kept, int64_t(64 * 64 * 4 + 64));
}

TEST_ON_DEVICES(Depth, a_hundred_thousand_steps) {
  const Tensor x = tracked({1}, device);
  Tensor y = x;
  const int steps = device.name() == "reference" ? 20000 : 100000;
  for (int i = 0; i < steps; i++) y = y * 1.0f + x * 0;
  y.sum().backward();
  expect_values(x.grad(), {1});
  Tensor dropped = x;
  for (int i = 0; i < steps; i++) dropped = dropped + 1;
}

TEST_ON_DEVICES(Threads, each_with_a_copy_of_the_parameters) {
  const Tensor w = normal({16, 16}, 0, 0.3, {.device = device});
  const auto train = [&](Tensor own) {
    for (int i = 0; i < 20; i++) {
      own = tracked(own);
      const Tensor y = ones({4, 16}, {.device = device}).matmul(own).tanh().square().mean();
      y.backward();
      own = own.detach() - own.grad() * 0.1;
    }
    return own.to_vector<float>();
  };
  const std::vector<float> wanted = train(w);
  std::vector<float> a, b;
  std::thread one([&] { a = train(w); }), two([&] { b = train(w); });
  one.join();
  two.join();
  EXPECT_EQ(a, wanted);
  EXPECT_EQ(b, wanted);
}

TEST_ON_DEVICES(Threads, that_share_parameters) {
  const Tensor w = tracked({1, 2, 3}, device);
  const auto work = [&](float factor) {
    for (int i = 0; i < 50; i++) (w * factor).sum().backward();
  };
  std::thread one([&] { work(1); }), two([&] { work(2); });
  one.join();
  two.join();
  expect_values(w.grad(), {150, 150, 150});
}

}  // namespace
}  // namespace fornax
