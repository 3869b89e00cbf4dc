// Layers against stored numbers, by the numbers of the case collection, and initializers.
#include <fornax/fornax.h>

#include <cmath>

#include "tests/errors.h"

namespace fornax {
namespace {

Device cpu() { return Device("cpu"); }

void expect_near(const Tensor& tensor, const std::vector<double>& want, double tolerance) {
  const auto got = tensor.to_vector<double>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(BatchNorm, C116_running_variance_is_unbiased) {
  const nn::BatchNorm norm = nn::BatchNorm(4, {.momentum = 1, .device = cpu()}).train();
  const Tensor x = tensor({{2., 15, 2, 1}, {2., 17, 2, 1}, {-4., -2, -2, -1}}, {.device = cpu()});
  const Tensor y = norm(x);
  expect_near(y.select(1, 0), {0.7071064, 0.7071064, -1.4142127}, 1e-5);
  expect_near(norm.running_mean.value, {0, 10, 0.6666667, 0.3333333}, 1e-5);
  expect_near(norm.running_var.value, {12, 109, 5.3333335, 1.3333334}, 1e-4);
}

TEST(BatchNorm, C117_momentum_weighs_the_new_value) {
  const nn::BatchNorm norm = nn::BatchNorm(2, {.device = cpu()}).train();
  const Tensor x = (arange(16, {.device = cpu()}) % 4 + 1).cast(DType::f32);
  norm(x.reshape({16, 1, 1, 1}).expand({16, 2, 3, 3}));
  expect_near(norm.running_mean.value, {0.25, 0.25}, 1e-6);
  expect_near(norm.running_var.value, {1.0258741, 1.0258741}, 1e-6);
}

TEST(BatchNorm, C118_one_value_per_channel) {
  const nn::BatchNorm norm = nn::BatchNorm(2, {.device = cpu()}).train();
  expect_words(message_of(ErrorKind::shape,
                          [&] {
                            norm(ones({1, 2}, {DType::f32, cpu()}));
                          }),
               "batch_norm: x is [1,2]; training needs more than one value per channel, so use a "
               "larger batch or valid()");
  EXPECT_EQ(norm.valid()(ones({1, 2})).shape(), (Shape{1, 2}));
  expect_words(message_of(ErrorKind::shape,
                          [&] {
                            norm(ones({4, 3}, {DType::f32, cpu()}));
                          }),
               "batch_norm: x is [4,3]; axis 1 must have the layer's 2 channels");
}

TEST(BatchNorm, gradients_flow_through_the_statistics) {
  nn::BatchNorm norm(1, {.device = cpu().autodiff()});
  const Tensor x = tensor({{1.}, {2.}, {4.}}, {.device = cpu().autodiff()}).require_grad();
  (norm(x) * tensor({{1.}, {0.}, {0.}})).sum().backward();
  const auto gradient = x.grad().to_vector<double>();
  EXPECT_NEAR(gradient[0] + gradient[1] + gradient[2], 0, 1e-6);
  EXPECT_FALSE(norm.running_mean.value.requires_grad());
}

TEST(LayerNorm, C121_epsilon_is_inside_the_root) {
  const nn::LayerNorm norm(2, {.epsilon = 3, .device = cpu()});
  expect_near(norm(tensor({1., -1}, {.device = cpu()})), {0.5, -0.5}, 1e-6);
  const nn::LayerNorm three(3, {.device = cpu()});
  expect_near(three(tensor({3., 3, 3}, {.device = cpu()})), {0, 0, 0}, 0);
}

TEST(RmsNorm, divides_by_the_root_of_the_mean_square) {
  const nn::RmsNorm norm(2, {.epsilon = 0, .device = cpu()});
  expect_near(norm(tensor({3., 4}, {.device = cpu()})), {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)},
              1e-6);
}

TEST(Dropout, C129_scale_limits_and_masks) {
  nn::Dropout dropout = nn::Dropout(0.25, cpu()).train();
  const Tensor x = ones({1000000}, {DType::f32, cpu()});
  const Tensor y = dropout(x);
  const Tensor kept = (y - 4.0 / 3).abs() < 1e-6, dropped = y == 0;
  EXPECT_TRUE((kept | dropped).all().item<bool>());
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.003);
  EXPECT_FALSE((y == dropout(x)).all().item<bool>());
  EXPECT_EQ(dropout.valid()(x).node(), x.node());
  EXPECT_TRUE((dropout.valid().train()(x) == 0).any().item<bool>());
  EXPECT_FALSE((nn::Dropout(1, cpu()).train()(x) != 0).any().item<bool>());
}

TEST(Dropout, C129_gradient_knows_the_mask_where_the_input_is_0) {
  const Tensor x = zeros({1000}, {DType::f32, cpu().autodiff()}).require_grad();
  const nn::Dropout dropout(0.25, cpu().autodiff());
  dropout(x).sum().backward();
  const Tensor gradient = x.grad();
  EXPECT_TRUE(((gradient == 0) | ((gradient - 4.0 / 3).abs() < 1e-6)).all().item<bool>());
  EXPECT_NEAR(gradient.mean().item<double>(), 1, 0.1);
}

TEST(Layers, shapes) {
  const Tensor x = ones({2, 4, 8, 6}, {DType::f32, cpu()});
  EXPECT_EQ(
      nn::Conv2d(4, 6, {3, 1}, {.stride = 2, .padding = {1, 0}, .groups = 2, .device = cpu()})(x)
          .shape(),
      (Shape{2, 6, 4, 3}));
  EXPECT_EQ(nn::MaxPool2d(2)(x).shape(), (Shape{2, 4, 4, 3}));
  EXPECT_EQ(nn::AvgPool2d(2, {.stride = 1})(x).shape(), (Shape{2, 4, 7, 5}));
  EXPECT_EQ(nn::Flatten()(x).shape(), (Shape{2, 192}));
  const nn::Embedding table(5, 3, {.device = cpu()});
  EXPECT_EQ(table(tensor({{0, 4}, {1, 1}}, {.device = cpu()})).shape(), (Shape{2, 2, 3}));
}

TEST(Sequential, layers_and_functions_in_order) {
  nn::Sequential net(
      nn::Linear(3, 4, {.device = cpu()}), nn::Relu(), [](const Tensor& x) { return x * 2; },
      nn::Linear(4, 2, {.device = cpu()}));
  const Tensor x = ones({5, 3}, {DType::f32, cpu()});
  const Tensor want = net.rest.rest.rest.first(relu(net.first(x)) * 2);
  EXPECT_EQ(net(x).to_vector<float>(), want.to_vector<float>());
  const State state = named_parameters(net);
  ASSERT_EQ(state.size(), 4u);
  EXPECT_EQ(state[0].path, "0.weight");
  EXPECT_EQ(state[3].path, "3.bias");
  EXPECT_TRUE(net.train().first.weight.requires_grad());
}

TEST(Initializers, have_the_variance_they_promise) {
  cpu().seed(5);
  const Shape shape{400, 300};
  const nn::Fan fan{400, 300};
  const Options options{DType::f32, cpu()};
  const auto deviation = [&](const nn::Initializer& start) {
    return start(shape, fan, options).deviation().item<double>();
  };
  EXPECT_NEAR(deviation(nn::kaiming_uniform()), std::sqrt(2.0 / 400), 1e-3);
  EXPECT_NEAR(deviation(nn::kaiming_normal()), std::sqrt(2.0 / 400), 1e-3);
  EXPECT_NEAR(deviation(nn::kaiming_normal(1, nn::FanMode::out)), std::sqrt(1.0 / 300), 1e-3);
  EXPECT_NEAR(deviation(nn::xavier_uniform()), std::sqrt(2.0 / 700), 1e-3);
  EXPECT_NEAR(deviation(nn::xavier_normal()), std::sqrt(2.0 / 700), 1e-3);
  EXPECT_NEAR(deviation(nn::fan_in_uniform()), 1 / std::sqrt(3 * 400.0), 1e-3);
  EXPECT_NEAR(deviation(nn::normal(0, 2)), 2, 0.03);
  EXPECT_EQ(deviation(nn::constant(3)), 0);
  const Tensor bounded = nn::fan_in_uniform()(shape, fan, options);
  EXPECT_LE(bounded.abs().max().item<double>(), 0.05);
}

TEST(Initializers, orthogonal) {
  const Options options{DType::f32, cpu()};
  for (const Shape& shape : {Shape{3, 5}, Shape{5, 3}, Shape{4, 2, 2}}) {
    const Tensor start = nn::orthogonal(2)(shape, {}, options);
    EXPECT_EQ(start.shape(), shape);
    const Tensor flat = start.reshape({shape[0], -1});
    const bool wide = flat.shape(0) <= flat.shape(1);
    const Tensor product = wide ? flat.matmul(flat.transpose()) : flat.transpose().matmul(flat);
    EXPECT_TRUE(all_close(product, eye(product.shape(0), options) * 4, {.absolute = 1e-5}));
  }
  for (const Shape& shape : {Shape{3}, Shape{0, 2}}) {
    expect_words(
        message_of(ErrorKind::shape, [&] { nn::orthogonal()(shape, {}, options); }),
        "orthogonal: " + text_of(shape) + " is not a matrix; it needs two axes and some elements");
  }
}

TEST(Initializers, C140_equal_seeds_give_equal_models) {
  const auto weights = [](uint64_t seed) {
    cpu().seed(seed);
    return nn::Linear(4, 4, {.device = cpu()}).weight.to_vector<float>();
  };
  EXPECT_EQ(weights(42), weights(42));
  EXPECT_NE(weights(42), weights(43));
}

}  // namespace
}  // namespace fornax
