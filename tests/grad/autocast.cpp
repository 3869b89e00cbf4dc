// Autocast: which dtypes ops take and give, and what comes back through the casts.
#include <fornax/autocast.h>

#include <thread>

#include "tests/grad/check.h"

namespace fornax {
namespace {

constexpr DType kF32 = DType::f32, kBf16 = DType::bf16, kF16 = DType::f16, kF64 = DType::f64;

Tensor matrix(const Shape& shape, Device device, int seed = 1) {
  return scattered(shape, device, seed).cast(kF32);
}

TEST_ON_DEVICES(Autocasts, products_are_of_the_guards_dtype) {
  const Tensor a = matrix({4, 6}, device), b = matrix({6, 3}, device, 2);
  const Tensor picture = matrix({1, 2, 4, 4}, device), kernel = matrix({3, 2, 3, 3}, device, 2);
  const Tensor line = matrix({1, 2, 5}, device), width = matrix({2, 3, 3}, device, 2);
  const Tensor bias = matrix({3}, device, 3);
  for (const DType half : {kBf16, kF16}) {
    const Autocast guard(half);
    EXPECT_EQ(a.matmul(b).dtype(), half);
    EXPECT_EQ(a.matmul(b.select(1, 0)).dtype(), half);
    EXPECT_EQ(a.select(0, 0).dot(b.select(1, 0)).dtype(), half);
    EXPECT_EQ(linear(a, b, bias).dtype(), half);
    EXPECT_EQ(conv2d(picture, kernel, bias).dtype(), half);
    EXPECT_EQ(conv_transpose1d(line, width, bias).dtype(), half);
    EXPECT_EQ(a.cast(kBf16).matmul(b.cast(kF16)).dtype(), half);
    EXPECT_EQ(a.cast(kBf16).matmul(b).dtype(), half);
  }
  EXPECT_EQ(a.matmul(b).dtype(), kF32);
}

TEST_ON_DEVICES(Autocasts, values_are_those_of_casts_written_by_hand) {
  const Tensor a = matrix({4, 6}, device), b = matrix({6, 3}, device, 2);
  const Tensor bias = matrix({3}, device, 3);
  const Tensor wanted = a.cast(kBf16).matmul(b.cast(kBf16)) + bias.cast(kBf16);
  const Autocast guard(kBf16);
  expect_values(linear(a, b, bias).cast(kF64), wanted.to_vector<double>());
}

TEST_ON_DEVICES(Autocasts, sums_and_exponentials_are_of_f32) {
  const Tensor wide = matrix({4, 6}, device);
  const Tensor targets = zeros({4}, {DType::i64, device});
  for (const DType half : {kBf16, kF16}) {
    const Autocast guard(half);
    const Tensor x = wide.cast(half);
    for (const Tensor& y : {exp(x),
                            exp2(x),
                            expm1(x),
                            log(x),
                            log2(x),
                            log10(x),
                            log1p(x),
                            sinh(x),
                            cosh(x),
                            x.sum(),
                            x.sum(1),
                            x.prod(0),
                            x.cumsum(0),
                            x.cumprod(1),
                            x.mean(),
                            x.variance(1),
                            x.deviation(1),
                            x.norm(),
                            x.logsumexp(1),
                            softmax(x),
                            log_softmax(x),
                            layer_norm(x),
                            rms_norm(x),
                            batch_norm(x).y,
                            normalize(x),
                            cross_entropy(x, targets),
                            mse_loss(x, x),
                            huber_loss(x, x),
                            bce_with_logits(x, x)}) {
      EXPECT_EQ(y.dtype(), kF32);
    }
    for (const Tensor& y : {x + 1, x * x, x / 2, tanh(x), sqrt(x), relu(x), gelu(x), silu(x),
                            x.max(1), x.transpose(), x.select(0, 0)}) {
      EXPECT_EQ(y.dtype(), half);
    }
    EXPECT_EQ((x + wide).dtype(), kF32);
  }
  const Tensor x = wide.cast(kBf16);
  EXPECT_EQ(exp(x).dtype(), kBf16);
  EXPECT_EQ(softmax(x).dtype(), kBf16);
  EXPECT_EQ(x.sum().dtype(), kBf16);
}

// A result of more than 512 elements is recorded, a smaller one computed at once: both are wide.
TEST_ON_DEVICES(Autocasts, exponentials_are_computed_in_f32) {
  for (const int64_t count : {7, 1000}) {
    const Tensor x = matrix({count}, device).cast(kBf16);
    const Tensor wanted = exp(x.cast(kF32));
    const Autocast guard(kBf16);
    expect_values(exp(x).cast(kF64), wanted.to_vector<double>());
  }
}

TEST_ON_DEVICES(Autocasts, other_dtypes_stay) {
  const Tensor a = scattered({4, 6}, device), b = scattered({6, 3}, device, 2);
  const Tensor wanted = a.matmul(b);
  const Tensor whole = arange(6, {.device = device}).reshape({2, 3});
  const Autocast guard(kBf16);
  expect_values(a.matmul(b), wanted.to_vector<double>());
  EXPECT_EQ(a.matmul(b).dtype(), kF64);
  EXPECT_EQ(a.matmul(b.cast(kF32)).dtype(), kF64);
  EXPECT_EQ(linear(a, b, matrix({3}, device)).dtype(), kF64);
  EXPECT_EQ(exp(a).dtype(), kF64);
  EXPECT_EQ(a.sum().dtype(), kF64);
  EXPECT_EQ(whole.matmul(whole.transpose()).dtype(), DType::i64);
  EXPECT_EQ(whole.sum().dtype(), DType::i64);
  EXPECT_EQ(covariance(b.cast(kF32)).dtype(), kF32);
}

TEST_ON_DEVICES(Autocasts, guards_nest) {
  const Tensor a = matrix({2, 2}, device);
  const Autocast outer(kBf16);
  {
    const Autocast inner(kF16);
    EXPECT_EQ(a.matmul(a).dtype(), kF16);
    {
      const NoAutocast off;
      EXPECT_EQ(a.matmul(a).dtype(), kF32);
      EXPECT_EQ(exp(a.cast(kBf16)).dtype(), kBf16);
    }
    EXPECT_EQ(a.matmul(a).dtype(), kF16);
  }
  EXPECT_EQ(a.matmul(a).dtype(), kBf16);
}

TEST_ON_DEVICES(Autocasts, other_threads_are_unaffected) {
  const Tensor a = matrix({2, 2}, device);
  const Autocast guard(kBf16);
  DType elsewhere{};
  std::thread([&] { elsewhere = a.matmul(a).dtype(); }).join();
  EXPECT_EQ(elsewhere, kF32);
}

TEST(Autocasts, refuse_what_is_no_half) {
  for (const DType dtype : {kF32, kF64, DType::f8e4m3, DType::i32, DType::bool_}) {
    const std::string message = message_of(ErrorKind::dtype, [&] { Autocast refused(dtype); });
    expect_words(message, "products can be of f16 or bf16, got");
  }
  const Tensor a = ones({2, 2});
  EXPECT_EQ(a.matmul(a).dtype(), kF32);  // the failed guards left nothing behind
}

// A layer, a norm and a loss.
Tensor loss_of(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Tensor hidden = layer_norm(gelu(linear(x, w, bias)));
  const Tensor logits = hidden.matmul(w.transpose());
  return cross_entropy(logits, zeros({x.shape(0)}, {DType::i64, x.device()}));
}

TEST_ON_DEVICES(Autocasts, gradients_are_of_f32_and_near_those_without) {
  const Tensor x = tracked(matrix({5, 8}, device)), w = tracked(matrix({8, 8}, device, 2));
  const Tensor bias = tracked(matrix({8}, device, 3));
  const Many exact = grad({loss_of(x, w, bias)}, {x, w, bias});
  const auto guarded = [&] {
    const Autocast guard(kBf16);
    return loss_of(x, w, bias);
  };
  const Many outside = grad({guarded()}, {x, w, bias});
  for (size_t i = 0; i < exact.size(); i++) {
    EXPECT_EQ(outside[i].dtype(), kF32);
    const double off = (outside[i] - exact[i]).norm().item<double>();
    const double size = exact[i].norm().item<double>();
    EXPECT_LT(off, 0.03 * size) << i;
    EXPECT_GT(off, 0) << i;
  }
  const Tensor loss = guarded();
  const Autocast guard(kBf16);  // a pass within the guard gives the same numbers
  const Many inside = grad({loss}, {x, w, bias});
  for (size_t i = 0; i < exact.size(); i++) {
    expect_values(inside[i].cast(kF64), outside[i].to_vector<double>());
  }
}

TEST_ON_DEVICES(Autocasts, gradients_of_what_was_recorded_in_f32_stay_so) {
  const Tensor x = tracked(matrix({5, 8}, device)), w = tracked(matrix({8, 8}, device, 2));
  const Many exact = grad({x.matmul(w).square().sum()}, {x, w});
  const Tensor loss = x.matmul(w).square().sum();
  const Autocast guard(kBf16);
  const Many inside = grad({loss}, {x, w});
  for (size_t i = 0; i < exact.size(); i++) {
    expect_values(inside[i].cast(kF64), exact[i].to_vector<double>());
  }
}

TEST_ON_DEVICES(Autocasts, a_checkpointed_function_runs_again_as_it_ran) {
  const Tensor x = tracked(matrix({5, 8}, device)), w = tracked(matrix({8, 8}, device, 2));
  const Tensor bias = tracked(matrix({8}, device, 3));
  std::vector<DType> seen;
  const auto body = [&](const Many& in) {
    const Tensor y = in[0].matmul(w);
    seen.push_back(y.dtype());
    return Many{loss_of(y, w, bias)};
  };
  const auto losses = [&](bool again) {
    const Autocast guard(kBf16);
    return again ? checkpoint(body)({x})[0] : body({x})[0];
  };
  const Many plain = grad({losses(false)}, {x, w, bias});
  const Many twice = grad({losses(true)}, {x, w, bias});
  EXPECT_EQ(seen, (std::vector<DType>{kBf16, kBf16, kBf16}));
  for (size_t i = 0; i < plain.size(); i++) {
    expect_values(twice[i].cast(kF64), plain[i].to_vector<double>());
  }
}

}  // namespace
}  // namespace fornax
