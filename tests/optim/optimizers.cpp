// Optimizers against PyTorch's numbers, by the numbers of the case collection.
#include <fornax/fornax.h>
#include <cmath>

#include "tests/errors.h"

namespace fornax {
namespace {

Device training() { return Device("cpu").autodiff(); }

struct One {
  Tensor p;
  explicit One(double start, DType dtype = DType::f64)
      : p(full({1}, start, {dtype, training()}).require_grad()) {}
  FORNAX_FIELDS(p)
};

struct Two {
  Tensor a = zeros({2}, {DType::f32, training()}).require_grad();
  Tensor b = zeros({1}, {DType::f32, training()}).require_grad();
  FORNAX_FIELDS(a, b)
};

template <class Optimizer>
void expect_course(Optimizer optimizer, const std::vector<double>& want) {
  One one(1);
  const double gradients[] = {0.1, 0.1, -0.2};
  for (size_t i = 0; i < 3; i++) {
    (one.p * gradients[i]).sum().backward();
    optimizer.step(one);
    EXPECT_NEAR(one.p.item<double>(), want[i], 1e-6) << i;
  }
}

TEST(Adam, C130_with_and_without_l2) {
  expect_course(optim::Adam({.learning_rate = 0.1}), {0.9, 0.8, 0.8075649});
  expect_course(optim::Adam({.learning_rate = 0.1, .weight_decay = 0.5}),
                {0.9, 0.8003209, 0.7102351});
}

TEST(Adam, C133_epsilon_is_outside_the_root) {
  One one(1);
  optim::Adam adam({.learning_rate = 0.1});
  (one.p * 1e-8).sum().backward();
  adam.step(one);
  EXPECT_NEAR(one.p.item<double>(), 0.95, 1e-9);
}

TEST(AdamW, decay_is_not_scaled_by_the_moments) {
  One one(1);
  optim::AdamW adam({.learning_rate = 0.1, .weight_decay = 0.5});
  (one.p * 0.1).sum().backward();
  adam.step(one);
  EXPECT_NEAR(one.p.item<double>(), 1 * (1 - 0.1 * 0.5) - 0.1, 1e-6);
  EXPECT_EQ(optim::AdamW({.learning_rate = 1}).options.weight_decay, 0.01);
}

TEST(AdamW, three_steps_follow_the_formula) {
  const optim::AdamWOptions o{
      .learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.2};
  One one(1);
  optim::AdamW adam(o);
  double p = 1, mean = 0, square = 0;
  const double gradients[] = {0.1, 0.3, -0.2};
  for (int step = 1; step <= 3; step++) {
    const double g = gradients[step - 1];
    (one.p * g).sum().backward();
    adam.step(one);
    p *= 1 - o.learning_rate * o.weight_decay;
    mean = o.beta1 * mean + (1 - o.beta1) * g;
    square = o.beta2 * square + (1 - o.beta2) * g * g;
    const double fair_mean = mean / (1 - std::pow(o.beta1, step));
    const double fair_square = square / (1 - std::pow(o.beta2, step));
    p -= o.learning_rate * fair_mean / (std::sqrt(fair_square) + o.epsilon);
    EXPECT_NEAR(one.p.item<double>(), p, 1e-12) << step;
  }
}

TEST(Sgd, C132_momentum_flavours) {
  expect_course(optim::Sgd({.learning_rate = 0.1, .momentum = 0.9}), {0.99, 0.971, 0.9739});
  expect_course(optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}),
                {0.981, 0.9539, 0.97651});
  expect_course(optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5}),
                {0.99, 0.976, 0.9734});
  expect_course(optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.5}),
                {0.94, 0.829, 0.70765});
}

TEST(Clip, C134_by_total_norm) {
  Two two;
  const auto seed = [&](float a, float b) {
    two.a.set_grad(tensor({a, 0.f}));
    two.b.set_grad(tensor({b}));
  };
  seed(3, 4);
  EXPECT_FLOAT_EQ(optim::clip_gradients(two, 1).item<float>(), 5);
  EXPECT_FLOAT_EQ(two.a.grad().to_vector<float>()[0], 0.6f);
  EXPECT_FLOAT_EQ(two.b.grad().item<float>(), 0.8f);
  seed(0.03f, 0.04f);
  optim::clip_gradients(two, 1);
  EXPECT_EQ(two.a.grad().to_vector<float>()[0], 0.03f);
  EXPECT_EQ(two.b.grad().item<float>(), 0.04f);
  seed(0, 0);
  optim::clip_gradients(two, 1);
  EXPECT_EQ(two.b.grad().item<float>(), 0);
  seed(INFINITY, 4);
  EXPECT_TRUE(std::isinf(optim::clip_gradients(two, 1).item<float>()));
  EXPECT_EQ(two.b.grad().item<float>(), 4);
}

TEST(Clip, C134_after_accumulation) {
  Two two;
  (two.a * tensor({3.f, 0.f})).sum().backward();
  (two.b * 4).sum().backward();
  EXPECT_FLOAT_EQ(optim::clip_gradients(two, 1).item<float>(), 5);
  EXPECT_FLOAT_EQ(two.a.grad().to_vector<float>()[0], 0.6f);
}

TEST(Step, needs_gradients_and_leaves_none) {
  One one(1);
  optim::Sgd sgd;
  const auto refusal = [&](One& module) {
    return message_of(ErrorKind::value, [&] { sgd.step(module); });
  };
  const std::string without =
      "step: none of the module's parameters has a gradient; call backward() on a loss that was "
      "computed with this module";
  expect_words(refusal(one), without);
  one.p.sum().backward();
  sgd.step(one);
  EXPECT_FALSE(one.p.grad().defined());
  EXPECT_TRUE(one.p.requires_grad());
  expect_words(refusal(one), without);
  One still = one.valid();
  expect_words(refusal(still),
               "step: none of the module's parameters is tracked; make it on an autodiff device or "
               "use module.train()");
}

TEST(Step, parameters_without_gradient_stay) {
  Two two;
  two.a.sum().backward();
  optim::Adam adam({.learning_rate = 0.5});
  adam.step(two);
  EXPECT_EQ(two.b.item<float>(), 0);
  EXPECT_NEAR(two.a.to_vector<float>()[0], -0.5, 1e-6);
  EXPECT_EQ(adam.state().size(), 3u);  // steps, mean and square of a
}

TEST(Step, keeps_the_dtype) {
  One one(1, DType::f16);
  one.p.sum().backward();
  optim::Adam adam({.learning_rate = 0.5});
  adam.step(one);
  EXPECT_EQ(one.p.dtype(), DType::f16);
}

TEST(State, of_another_kind_is_refused) {
  One one(1);
  one.p.sum().backward();
  optim::Sgd sgd({.momentum = 0.9});
  sgd.step(one);
  optim::Adam adam;
  expect_words(message_of(ErrorKind::value, [&] { adam.load_state(sgd.state()); }),
               "load_state: \"p.momentum\" is not a state of this optimizer, whose tensors are "
               "called mean, square; was it saved by another kind of optimizer?");
  EXPECT_TRUE(adam.state().empty());
}

TEST(State, of_another_type_is_refused_at_the_step) {
  One one(1);
  optim::Adam adam;
  const auto refusal = [&](ErrorKind kind, const Tensor& mean) {
    adam.load_state({{"p.mean", mean}});
    one.p.sum().backward();
    const std::string message = message_of(kind, [&] { adam.step(one); });
    one.p.set_grad({});
    return message;
  };
  expect_words(refusal(ErrorKind::shape, zeros({7}, {DType::f64})),
               "step: the state of p is f64[7], the parameter f64[1]; load the state that belongs");
  expect_words(refusal(ErrorKind::dtype, zeros({1}, {DType::f32})),
               "step: the state of p is f32[1], the parameter f64[1]; load the state that belongs");
  EXPECT_EQ(one.p.dtype(), DType::f64);
}

TEST(State, steps_must_be_a_count) {
  optim::Adam adam;
  const auto refusal = [&](const Tensor& steps) {
    return message_of(ErrorKind::value, [&] { adam.load_state({{"p.steps", steps}}); });
  };
  const auto steps = [](int64_t count) { return full({}, count, {.dtype = DType::i64}); };
  expect_words(refusal(steps(-1)), "load_state: p.steps is -1; it must be within 0 and ");
  expect_words(refusal(steps(INT64_MAX)), "p.steps is 9223372036854775807; it must be within 0");
  expect_words(refusal(ones({})), "load_state: p.steps is f32[]; it must be one i64");
  expect_words(refusal(zeros({2}, {DType::i64})), "p.steps is i64[2]; it must be one i64");
  adam.load_state({{"p.steps", steps(3)}});
}

TEST(Cosine, C136_first_and_last_step) {
  const optim::Cosine rate{.peak = 1, .total = 4};
  const double want[] = {1, 0.8535534, 0.5, 0.1464466, 0, 0};
  for (int64_t step = 0; step < 6; step++) EXPECT_NEAR(rate(step), want[step], 1e-7);
}

TEST(Cosine, C137_after_a_warm_up) {
  const optim::Cosine rate{.peak = 3e-4, .total = 15, .warmup = 5};
  const double want[] = {0,      6e-5,       1.2e-4,     1.8e-4,     2.4e-4,
                         3e-4,   2.92658e-4, 2.71353e-4, 2.38168e-4, 1.96353e-4,
                         1.5e-4, 1.03647e-4, 6.1832e-5,  2.8647e-5,  7.342e-6};
  for (int64_t step = 0; step < 15; step++) EXPECT_NEAR(rate(step), want[step], 1e-9);
}

}  // namespace
}  // namespace fornax
