// Layers: structs with a call operator, and the numbers they start from.
//
// A layer made on an autodiff device tracks its parameters and is in training mode, else call
// train().  Layers are modules (module.h) and values.  Calling one is safe from several threads,
// except BatchNorm in training mode, which updates its running statistics.
//
// Errors name the line that made or called a layer: that is what the last parameter, `site`, is
// for.
#pragma once
#include <fornax/module.h>
#include <fornax/ops.h>

namespace fornax::nn {

// ── Where parameters start ───────────────────────────────────────────────────────────────────────
struct Fan {
  int64_t in = 1, out = 1;  // how many values each output reads, each input reaches
};
// A recipe: call it with a shape.  Random ones draw from the device's seed.
struct Initializer {
  enum class Kind : uint8_t { constant, uniform, normal, orthogonal };
  enum class Scale : uint8_t { none, fan_in, fan_out, fan_average };
  Kind kind = Kind::constant;
  Scale scale = Scale::none;  // divides a and b by the root of that fan
  double a = 0, b = 0;        // the constant or gain; low and high; mean and deviation

  // Not tracked.  Error(shape): orthogonal of fewer than two axes.
  Tensor operator()(const Shape& shape, Fan fan, Options o = {}, Site site = Site::here()) const;
};
Initializer constant(double value);
Initializer uniform(double low, double high);
Initializer normal(double mean = 0, double deviation = 1);
// Keep the variance of activations through layers whose activation has this gain (ReLU: sqrt(2)).
enum class FanMode : uint8_t { in, out };
Initializer kaiming_uniform(double gain = 1.4142135623730951, FanMode mode = FanMode::in);
Initializer kaiming_normal(double gain = 1.4142135623730951, FanMode mode = FanMode::in);
Initializer xavier_uniform(double gain = 1);
Initializer xavier_normal(double gain = 1);
// Rows or columns, whichever are fewer, of the tensor as [first axis, rest] are orthonormal.
Initializer orthogonal(double gain = 1);
// What PyTorch's layers start from: uniform within 1 / sqrt(fan in).
Initializer fan_in_uniform();

// ── Layers with parameters ───────────────────────────────────────────────────────────────────────
struct LinearOptions {
  bool bias = true;
  Initializer weight = fan_in_uniform(), bias_start = fan_in_uniform();
  DType dtype = DType::f32;
  Device device = {};
};
// x [..., in] times weight plus bias.
struct Linear {
  Tensor weight;  // [in, out]
  Tensor bias;    // [out] or undefined
  // Error(shape): sizes below 1.
  Linear(int64_t in, int64_t out, LinearOptions o = {}, Site site = Site::here());
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return linear(x, weight, bias, site);
  }
  FORNAX_FIELDS(weight, bias)
};

struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Initializer weight = fan_in_uniform(), bias_start = fan_in_uniform();
  DType dtype = DType::f32;
  Device device = {};
};
// x [n, in, h, w] gives [n, out, h', w'].
struct Conv2d {
  Tensor weight;  // [out, in / groups, kernel height, kernel width]
  Tensor bias;    // [out] or undefined
  ConvOptions options;
  // Error(shape): sizes below 1, or channels that the groups do not divide.
  Conv2d(int64_t in, int64_t out, Pair kernel, Conv2dOptions o = {}, Site site = Site::here());
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return conv2d(x, weight, bias, options, site);
  }
  FORNAX_FIELDS(weight, bias)
};

struct EmbeddingOptions {
  Initializer weight = normal();
  DType dtype = DType::f32;
  Device device = {};
};
// Integers of any shape pick rows: [...] gives [..., width].
struct Embedding {
  Tensor weight;  // [count, width]
  // Error(shape): sizes below 1.
  Embedding(int64_t count, int64_t width, EmbeddingOptions o = {}, Site site = Site::here());
  Tensor operator()(const Tensor& ids, Site site = Site::here()) const {
    return embedding(ids, weight, site);
  }
  FORNAX_FIELDS(weight)
};

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the new value in the running statistics
  bool affine = true;     // learn a scale and a shift
  DType dtype = DType::f32;
  Device device = {};
};
// Per channel over x [n, c, ...].  Training normalizes by the batch (biased variance) and keeps
// running statistics (unbiased variance); evaluation normalizes by those.
struct BatchNorm {
  Tensor weight, bias;                       // [c] or undefined
  mutable Buffer running_mean, running_var;  // [c]; updated by calls in training mode
  Mode mode;
  double epsilon, momentum;
  // Error(shape): no channels.
  explicit BatchNorm(int64_t channels, BatchNormOptions o = {}, Site site = Site::here());
  // Error(shape): fewer than two values per channel in training.
  Tensor operator()(const Tensor& x, Site site = Site::here()) const;
  FORNAX_FIELDS(weight, bias, running_mean, running_var, mode)
};

struct LayerNormOptions {
  double epsilon = 1e-5;
  bool affine = true;  // learn a scale and a shift
  DType dtype = DType::f32;
  Device device = {};
};
// Over the last axes, whose sizes are `shape`.
struct LayerNorm {
  Tensor weight, bias;  // [shape] or undefined
  int64_t axes;
  double epsilon;
  // Error(shape): sizes below 1.
  explicit LayerNorm(const Shape& shape, LayerNormOptions o = {}, Site site = Site::here());
  explicit LayerNorm(int64_t size, LayerNormOptions o = {}, Site site = Site::here())
      : LayerNorm(Shape{size}, o, site) {}
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return layer_norm(x, axes, {.weight = weight, .bias = bias, .epsilon = epsilon}, site);
  }
  FORNAX_FIELDS(weight, bias)
};

struct RmsNormOptions {
  double epsilon = 1e-5;
  DType dtype = DType::f32;
  Device device = {};
};
// Over the last axis.
struct RmsNorm {
  Tensor weight;  // [size]
  double epsilon;
  // Error(shape): a size below 1.
  explicit RmsNorm(int64_t size, RmsNormOptions o = {}, Site site = Site::here());
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return rms_norm(x, {.weight = weight, .epsilon = epsilon}, site);
  }
  FORNAX_FIELDS(weight)
};

// ── Layers without parameters ────────────────────────────────────────────────────────────────────
// Zeroes elements with `probability` and scales the others, in training mode only.
struct Dropout {
  double probability = 0.5;
  Mode mode;
  // Error(value): the probability is not within [0, 1].
  explicit Dropout(double probability = 0.5, Device device = {}, Site site = Site::here());
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return mode.training ? dropout(x, probability, site) : x;
  }
  FORNAX_FIELDS(mode)
};

struct MaxPool2d {
  Pair kernel;
  PoolOptions options;
  explicit MaxPool2d(Pair kernel, PoolOptions options = {}) : kernel(kernel), options(options) {}
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return max_pool2d(x, kernel, options, site);
  }
  FORNAX_FIELDS()
};
struct AvgPool2d {
  Pair kernel;
  PoolOptions options;
  explicit AvgPool2d(Pair kernel, PoolOptions options = {}) : kernel(kernel), options(options) {}
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return avg_pool2d(x, kernel, options, site);
  }
  FORNAX_FIELDS()
};
// [n, ...] gives [n, product of the others].
struct Flatten {
  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    return x.flatten(1, -1, site);
  }
  FORNAX_FIELDS()
};

#define FORNAX_ACTIVATION(Name, function)                                \
  struct Name {                                                          \
    Tensor operator()(const Tensor& x, Site site = Site::here()) const { \
      return fornax::function(Operand(x, site));                         \
    }                                                                    \
    FORNAX_FIELDS()                                                      \
  };
FORNAX_ACTIVATION(Relu, relu)
FORNAX_ACTIVATION(Gelu, gelu)
FORNAX_ACTIVATION(Silu, silu)
FORNAX_ACTIVATION(Sigmoid, sigmoid)
FORNAX_ACTIVATION(Tanh, tanh)
#undef FORNAX_ACTIVATION

// ── One after the other ──────────────────────────────────────────────────────────────────────────
// Sequential net(Linear(784, 128), Relu(), Linear(128, 10)): layers, or any functions of a tensor.
// Fields are named by position: "0.weight", "2.bias".
template <class... Layers>
struct Sequential;

template <>
struct Sequential<> {
  Tensor operator()(const Tensor& x, Site = {}) const { return x; }
  template <class Visitor>
  void each_from(int, Visitor&) {}
};

template <class First, class... Rest>
struct Sequential<First, Rest...> {
  First first;
  Sequential<Rest...> rest;
  Sequential(First layer, Rest... others) : first(std::move(layer)), rest{std::move(others)...} {}

  Tensor operator()(const Tensor& x, Site site = Site::here()) const {
    if constexpr (requires { first(x, site); }) {
      return rest(first(x, site), site);
    } else {
      return rest(first(x), site);
    }
  }

  template <class Visitor>
  void each(Visitor&& visitor) {
    each_from(0, visitor);
  }
  template <class Visitor>
  void each_from(int position, Visitor& visitor) {
    if constexpr (Module<First>) visitor(std::to_string(position), first);
    rest.each_from(position + 1, visitor);
  }
  FORNAX_MODULE_MEMBERS
};
template <class... Layers>
Sequential(Layers...) -> Sequential<Layers...>;

}  // namespace fornax::nn
