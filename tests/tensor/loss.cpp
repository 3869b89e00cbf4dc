// Losses: src/tensor/loss.cpp.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

Tensor logits_of_C064(Device device) { return floats({1, 2, 3, 1, 2, 3, 4, 1, 0}, {3, 3}, device); }
Tensor targets_of_C064(Device device) { return integers({0, -100, 2}, device); }

TEST_ON_DEVICES(Cases, C062_large_equal_logits) {
  expect_values(cross_entropy(full({1, 2}, 1e8, {.device = device}) * 1, integers({1}, device)),
                {0.6931472});
}

TEST_ON_DEVICES(Cases, C064_ignored_targets) {
  const Tensor x = logits_of_C064(device), t = targets_of_C064(device);
  expect_values(cross_entropy(x, t), {3.2367449});
  expect_tensor(cross_entropy(x, t, {.reduction = Reduction::none}), {3},
                {2.4076059, 0, 4.0658841});
  expect_values(cross_entropy(x, t, {.reduction = Reduction::sum}), {6.4734898});
  expect_values(cross_entropy(x, t, {.class_weights = floats({1, 2, 5}, device)}), {3.7895043});
  expect_values(nll_loss(log_softmax(x), t), {3.2367449});
}

TEST_ON_DEVICES(Cases, C065_everything_ignored) {
  const Tensor x = logits_of_C064(device), t = integers({-100, -100, -100}, device);
  expect_values(cross_entropy(x, t), {kNan});
  expect_values(cross_entropy(x, t, {.reduction = Reduction::sum}), {0});
}

TEST_ON_DEVICES(Cases, C066_target_outside_the_classes) {
  const Tensor x = zeros({1, 5}, {.device = device}) * 1;
  for (const int64_t target : {-4, 7}) {
    try {
      (void)cross_entropy(x, integers({target}, device)).item<float>();
      ADD_FAILURE() << "target " << target << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::index);
      const std::string words = error.what();
      EXPECT_NE(words.find(std::to_string(target)), std::string::npos) << words;
      EXPECT_NE(words.find('5'), std::string::npos) << words;
    }
  }
  const CrossEntropyOptions o{.reduction = Reduction::none, .ignore_index = 255};
  expect_values(cross_entropy(x, integers({255}, device), o), {0});
  const Tensor bytes = from(std::vector<uint8_t>{255}, device);
  expect_values(cross_entropy(x, bytes, o), {0});
}

TEST_ON_DEVICES(Cases, C068_label_smoothing) {
  const Tensor x = logits_of_C064(device), t = targets_of_C064(device);
  expect_values(cross_entropy(x, t, {.label_smoothing = 0.1}), {3.1034114});
}

TEST_ON_DEVICES(Losses, targets_as_probabilities_and_pictures) {
  const Tensor x = logits_of_C064(device);
  const Tensor sure = one_hot(integers({0, 1, 2}, device), 3).cast(DType::f32);
  const Tensor classes = integers({0, 1, 2}, device);
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions o{.label_smoothing = smoothing};
    expect_values(cross_entropy(x, sure, o), cross_entropy(x, classes, o).to_vector<double>());
  }
  const Tensor picture = x.transpose().reshape({1, 3, 3, 1});
  expect_values(cross_entropy(picture, classes.reshape({1, 3, 1})),
                cross_entropy(x, classes).to_vector<double>());
  expect_values(cross_entropy(x(0), tensor(0, {.device = device})), {2.4076059});
}

TEST_ON_DEVICES(Cases, C069_bce_with_logits) {
  const Tensor x = floats({100, -100, 0}, device);
  expect_values(bce_with_logits(x, ones_like(x), {.reduction = Reduction::none}),
                {0, 100, 0.6931472});
}

TEST_ON_DEVICES(Losses, distances) {
  const Tensor x = floats({0, 1, 5}, device), y = floats({0, 0.5, 2}, device);
  expect_values(mse_loss(x, y), {3.0833333});
  expect_values(l1_loss(x, y, {.reduction = Reduction::sum}), {3.5});
  expect_values(huber_loss(x, y, 1, {.reduction = Reduction::none}), {0, 0.125, 2.5});
  const Tensor p = floats({0, 0.5, 0.5}, device), q = floats({0.25, 0.25, 0.5}, device);
  expect_values(kl_div(q.log(), p, {.reduction = Reduction::sum}), {0.3465736});
}

}  // namespace
}  // namespace fornax
