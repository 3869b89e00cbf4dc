// Gradients of every composed function against central differences in f64.
#include "tests/grad/check.h"

namespace fornax {
namespace {

struct Unary {
  const char* name;
  Tensor (*function)(const Tensor&);
};

const Unary kActivations[] = {
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"relu6", [](const Tensor& x) { return relu6(x * 5); }},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); }},
    {"elu", [](const Tensor& x) { return elu(x, 1.5); }},
    {"selu", [](const Tensor& x) { return selu(x); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); }},
    {"silu", [](const Tensor& x) { return silu(x); }},
    {"mish", [](const Tensor& x) { return mish(x); }},
    {"softplus", [](const Tensor& x) { return softplus(x, 1.5); }},
    {"softsign", [](const Tensor& x) { return softsign(x); }},
    {"hardtanh", [](const Tensor& x) { return hardtanh(x, -0.5, 1); }},
    {"hard_sigmoid", [](const Tensor& x) { return hard_sigmoid(x * 3); }},
    {"hard_swish", [](const Tensor& x) { return hard_swish(x * 3); }},
    {"log_sigmoid", [](const Tensor& x) { return log_sigmoid(x); }},
    {"clamp", [](const Tensor& x) { return x.clamp(-0.7, 1.2); }},
};

const Shape kShapes[] = {{}, {1}, {5}, {2, 3}, {3, 1, 2}, {0}, {2, 0, 3}};

TEST_ON_DEVICES(Differences, activations) {
  for (const Unary& unary : kActivations) {
    const Body body = [&](const Many& in) { return unary.function(in[0]); };
    for (const Shape& shape : kShapes)
      check_gradients(unary.name, body, {scattered(shape, device)});
    check_twice(unary.name, body, {scattered({7}, device)});
    const Body moved = [&](const Many& in) { return unary.function(in[0].transpose()(slice(1))); };
    check_gradients(unary.name, moved, {scattered({2, 3}, device)});
  }
}

TEST_ON_DEVICES(Differences, along_an_axis) {
  for (const Shape& shape : {Shape{4}, Shape{2, 3, 2}, Shape{1, 2}, Shape{3, 0}, Shape{2, 1}}) {
    for (int64_t axis = 0; axis < shape.rank(); axis++) {
      const auto check = [&](const char* name, auto function) {
        check_twice(name, [&](const Many& in) { return function(in[0]); },
                    {scattered(shape, device)});
      };
      check("softmax", [&](const Tensor& x) { return softmax(x, axis); });
      check("log_softmax", [&](const Tensor& x) { return log_softmax(x, axis); });
      check("cumsum", [&](const Tensor& x) { return x.cumsum(axis); });
      check("cumprod", [&](const Tensor& x) { return x.cumprod(axis); });
      check("sum", [&](const Tensor& x) { return x.sum(axis); });
      check("flip", [&](const Tensor& x) { return x.flip(axis).square(); });
      check("sort", [&](const Tensor& x) { return x.sort({.axis = axis}).square(); });
      check_gradients("cummax", [&](const Many& in) { return in[0].cummax(axis); },
                      {scattered(shape, device)});
      check_gradients("cummin", [&](const Many& in) { return in[0].cummin(axis); },
                      {scattered(shape, device)});
      if (shape[int(axis)] == 0) continue;
      check("mean", [&](const Tensor& x) { return x.mean(axis, {.keep_dims = true}); });
      check("logsumexp", [&](const Tensor& x) { return x.logsumexp(axis); });
      check("prod", [&](const Tensor& x) { return x.prod(axis); });
      check("max", [&](const Tensor& x) { return x.max(axis).square(); });
      check("min", [&](const Tensor& x) { return x.min(axis).square(); });
      check("median", [&](const Tensor& x) { return median(x, axis).square(); });
      check("topk", [&](const Tensor& x) { return x.topk(1, axis).first.square(); });
    }
  }
}

TEST_ON_DEVICES(Differences, statistics) {
  const Tensor x = scattered({3, 4}, device), y = scattered({3, 4}, device, 2);
  const auto one = [&](const char* name, auto function) {
    check_twice(
        name, [&](const Many& in) { return function(in[0]); }, {x}, 5e-6);
  };
  one("variance", [](const Tensor& v) { return v.variance(); });
  one("variance of columns", [](const Tensor& v) { return v.variance(0, {.correction = 0}); });
  one("deviation", [](const Tensor& v) { return v.deviation(1); });
  one("norm 1", [](const Tensor& v) { return v.norm(1, 1); });
  one("norm 2", [](const Tensor& v) { return v.norm(2, {0, 1}); });
  one("norm 3", [](const Tensor& v) { return v.norm(3, 0); });
  one("covariance", [](const Tensor& v) { return covariance(v); });
  one("normalize", [](const Tensor& v) { return normalize(v); });
  one("trace", [](const Tensor& v) { return v.trace(); });
  one("triangles", [](const Tensor& v) { return v.triu(1) + v.tril(-1).square(); });
  check_twice(
      "cosine similarity", [](const Many& in) { return cosine_similarity(in[0], in[1]); }, {x, y},
      5e-6);
  check_twice("logaddexp", [](const Many& in) { return logaddexp(in[0], in[1]); }, {x, y});
  check_twice("glu", [](const Many& in) { return glu(in[0]); }, {x});
}

TEST_ON_DEVICES(Differences, layers) {
  check_twice("linear", [](const Many& in) { return linear(in[0], in[1], in[2]); },
              {scattered({2, 3}, device), scattered({3, 4}, device, 2), scattered({4}, device, 3)});
  for (const Shape& shape : {Shape{2, 4}, Shape{2, 1, 3}, Shape{0, 3}}) {
    const int64_t width = shape[shape.rank() - 1];
    const Many in = {scattered(shape, device), scattered({width}, device, 2),
                     scattered({width}, device, 3)};
    check_twice(
        "layer_norm",
        [](const Many& i) { return layer_norm(i[0], 1, {.weight = i[1], .bias = i[2]}); }, in,
        1e-5);
    check_twice(
        "rms_norm", [](const Many& i) { return rms_norm(i[0], {.weight = i[1]}); }, in, 1e-5);
  }
  check_twice(
      "batch_norm",
      [](const Many& i) {
        const Tensor mean = i[0].mean({0, 2}), variance = i[0].variance({0, 2});
        return batch_norm(i[0], mean, variance, {.weight = i[1], .bias = i[2]});
      },
      {scattered({2, 2, 3}, device), scattered({2}, device, 2), scattered({2}, device, 3)}, 1e-5);
  for (const Shape& shape : {Shape{3, 2}, Shape{2, 2, 3}, Shape{2, 2, 1, 2}}) {
    check_twice(
        "batch_norm by its own statistics",
        [](const Many& i) {
          const NormOptions options{.weight = i[1], .bias = i[2]};
          return batch_norm(i[0], options).y + batch_norm(i[0] * i[0]).y;
        },
        {scattered(shape, device), scattered({2}, device, 2), scattered({2}, device, 3)}, 1e-5);
  }
  const Tensor ids = integers({0, 2, 2, 1}, device).reshape({2, 2});
  check_twice("embedding", [&](const Many& in) { return embedding(ids, in[0]).square(); },
              {scattered({3, 2}, device)});
}

TEST_ON_DEVICES(Differences, convolutions) {
  struct Case {
    ConvOptions options;
    int64_t channels, outputs;
  };
  for (const Case& c :
       {Case{{}, 2, 3}, Case{{.stride = 2, .padding = 1}, 1, 2},
        Case{{.padding = {1, 2}, .dilation = 2}, 1, 1}, Case{{.stride = {2, 1}, .groups = 2}, 2, 4},
        Case{{.padding = 0, .padding_after = {1, 0}}, 1, 1}}) {
    check_gradients("conv2d",
                    [&](const Many& in) { return conv2d(in[0], in[1], in[2], c.options); },
                    {scattered({2, c.channels, 4, 5}, device),
                     scattered({c.outputs, c.channels / c.options.groups, 2, 2}, device, 2),
                     scattered({c.outputs}, device, 3)});
  }
  check_twice("conv2d",
              [](const Many& in) { return conv2d(in[0], in[1], {}, {.stride = 2, .padding = 1}); },
              {scattered({1, 2, 3, 3}, device), scattered({2, 2, 2, 2}, device, 2)});
  check_twice("conv_transpose2d",
              [](const Many& in) {
                return conv_transpose2d(in[0], in[1], in[2],
                                        {.stride = 2, .padding = 1, .output_padding = 1});
              },
              {scattered({1, 2, 2, 3}, device), scattered({2, 1, 2, 3}, device, 2),
               scattered({1}, device, 3)});
  check_twice(
      "conv1d", [](const Many& in) { return conv1d(in[0], in[1], in[2], {.dilation = 2}); },
      {scattered({2, 1, 5}, device), scattered({2, 1, 2}, device, 2), scattered({2}, device, 3)});
  check_twice("conv_transpose1d",
              [](const Many& in) { return conv_transpose1d(in[0], in[1], {}, {.dilation = 2}); },
              {scattered({1, 1, 4}, device), scattered({1, 2, 3}, device, 2)});
}

TEST_ON_DEVICES(Differences, pools) {
  const auto check = [&](const char* name, auto function, const Shape& shape) {
    check_twice(name, [&](const Many& in) { return function(in[0]).square(); },
                {scattered(shape, device)});
  };
  check("max_pool2d", [](const Tensor& x) { return max_pool2d(x, 2); }, {1, 2, 4, 4});
  check("max_pool2d, overlapping",
        [](const Tensor& x) {
          return max_pool2d(x, {3, 2}, {.stride = 1, .padding = 1});
        },
        {2, 1, 3, 4});
  check("max_pool2d, ceil", [](const Tensor& x) { return max_pool2d(x, 2, {.ceil_mode = true}); },
        {1, 1, 3, 5});
  check("avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, 2); }, {1, 2, 4, 4});
  check("avg_pool2d, padded",
        [](const Tensor& x) {
          return avg_pool2d(x, 3, {.stride = 2, .padding = 1, .count_include_pad = false});
        },
        {1, 1, 4, 5});
  check("max_pool1d", [](const Tensor& x) { return max_pool1d(x, 2, {.stride = 1}); }, {1, 2, 4});
  check("avg_pool1d", [](const Tensor& x) { return avg_pool1d(x, 2, {.ceil_mode = true}); },
        {1, 1, 5});
  check("adaptive_avg_pool2d",
        [](const Tensor& x) {
          return adaptive_avg_pool2d(x, {2, 3});
        },
        {1, 1, 5, 4});
}

TEST_ON_DEVICES(Differences, losses) {
  const Tensor x = scattered({3, 4}, device), y = scattered({3, 4}, device, 2);
  const Tensor targets = integers({0, 3, -100}, device);
  const Tensor weights = from(std::vector<double>{1, 2, 3, 4}, device);
  for (Reduction r : {Reduction::mean, Reduction::sum, Reduction::none}) {
    const auto one = [&](const char* name, auto function) {
      check_twice(
          name, [&](const Many& in) { return function(in[0]); }, {x}, 5e-6);
    };
    const auto two = [&](const char* name, auto function) {
      check_twice(
          name, [&](const Many& in) { return function(in[0], in[1]); }, {x, y}, 5e-6);
    };
    one("cross_entropy",
        [&](const Tensor& v) { return cross_entropy(v, targets, {.reduction = r}); });
    one("cross_entropy, smoothed and weighted", [&](const Tensor& v) {
      return cross_entropy(v, targets,
                           {.reduction = r, .label_smoothing = 0.1, .class_weights = weights});
    });
    two("cross_entropy with probabilities", [&](const Tensor& v, const Tensor& t) {
      return cross_entropy(v, softmax(t), {.reduction = r});
    });
    one("nll_loss",
        [&](const Tensor& v) { return nll_loss(log_softmax(v), targets, {.reduction = r}); });
    two("mse", [&](const Tensor& a, const Tensor& b) { return mse_loss(a, b, {r}); });
    two("l1", [&](const Tensor& a, const Tensor& b) { return l1_loss(a, b, {r}); });
    two("huber", [&](const Tensor& a, const Tensor& b) { return huber_loss(a, b, 0.6, {r}); });
    two("bce",
        [&](const Tensor& a, const Tensor& b) { return bce_with_logits(a, b.sigmoid(), {r}); });
    two("kl",
        [&](const Tensor& a, const Tensor& b) { return kl_div(log_softmax(a), softmax(b), {r}); });
  }
}

}  // namespace
}  // namespace fornax
