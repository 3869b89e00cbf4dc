// Functions on tensors beside the methods of Tensor: creation, joining, activations, softmax
// family, norms, losses, convolutions and pools.  All are composed from the primitives of ops.def
// and differentiable where that makes sense.  Shapes in comments: n batch, c channels, h w picture.
#pragma once
#include <fornax/tensor.h>

#include <optional>

namespace fornax {

// ── Creation ─────────────────────────────────────────────────────────────────────────────────────
struct Options {
  DType dtype = DType::f32;
  Device device = {};
};
// Numbers in nested braces: tensor({{1.5, 2}, {3, 4}}).  Error(shape): ragged.
class Nested {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Nested(T number)
      : number_(number) {}  // NOLINT: implicit on purpose
  Nested(std::initializer_list<Nested> items) : items_(items), leaf_(false) {}

  bool is_number() const { return leaf_; }
  Scalar number() const { return number_; }
  const std::vector<Nested>& items() const { return items_; }

 private:
  Scalar number_;
  std::vector<Nested> items_;
  bool leaf_ = true;
};
struct DataOptions {
  std::optional<DType> dtype = {};  // none: f32 for floats, i64 for integers, bool for bools
  Device device = {};
};
Tensor tensor(const Nested& values, DataOptions o = {}, Site site = Site::here());
// The elements of `values` in row-major order.  Error(shape): their count is not the shape's.
Tensor from_bytes(const void* data, DType dtype, Shape shape, Device device,
                  Site site = Site::here());
void check_count(size_t values, const Shape& shape, Site site);
template <class T>
Tensor from(std::span<T> values, Shape shape, Device device = {}, Site site = Site::here()) {
  check_count(values.size(), shape, site);
  return from_bytes(values.data(), dtype_of<std::remove_const_t<T>>, shape, device, site);
}
template <class T>
Tensor from(std::span<T> values, Device device = {}, Site site = Site::here()) {
  return from(values, {int64_t(values.size())}, device, site);
}
template <class T>
Tensor from(const std::vector<T>& values, Device device = {}, Site site = Site::here()) {
  return from(std::span<const T>(values), {int64_t(values.size())}, device, site);
}
template <class T>
Tensor from(const std::vector<T>& values, Shape shape, Device device = {},
            Site site = Site::here()) {
  return from(std::span<const T>(values), shape, device, site);
}

Tensor zeros(Shape shape, Options o = {}, Site site = Site::here());
Tensor ones(Shape shape, Options o = {}, Site site = Site::here());
Tensor full(Shape shape, Scalar value, Options o = {}, Site site = Site::here());
Tensor zeros_like(const Tensor& x, Site site = Site::here());
Tensor ones_like(const Tensor& x, Site site = Site::here());
Tensor full_like(const Tensor& x, Scalar value, Site site = Site::here());
// start, start + step, ... below stop (above for a negative step).  i64 for whole numbers.
Tensor arange(Scalar stop, DataOptions o = {}, Site site = Site::here());
Tensor arange(Scalar start, Scalar stop, Scalar step = 1, DataOptions o = {},
              Site site = Site::here());
Tensor linspace(double start, double stop, int64_t count, Options o = {},
                Site site = Site::here());  // both ends included
Tensor eye(int64_t size, Options o = {}, Site site = Site::here());
Tensor one_hot(const Tensor& classes, int64_t count, Site site = Site::here());  // i64

// Random numbers from the device's seed; equal on every backend.
Tensor uniform(Shape shape, double low = 0, double high = 1, Options o = {},
               Site site = Site::here());  // [low, high)
Tensor normal(Shape shape, double mean = 0, double deviation = 1, Options o = {},
              Site site = Site::here());
Tensor bernoulli(Shape shape, double probability, Device device = {}, Site site = Site::here());
Tensor random_integers(Shape shape, int64_t low, int64_t high, Device device = {},
                       Site site = Site::here());  // i64 in [low, high)
Tensor random_permutation(int64_t count, Device device = {}, Site site = Site::here());  // i64

// ── Joining and comparing ────────────────────────────────────────────────────────────────────────
Tensor cat(const std::vector<Tensor>& parts, int64_t axis = 0, Site site = Site::here());
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0, Site site = Site::here());
struct Closeness {
  double relative = 1e-5, absolute = 1e-8;
  bool equal_nan = false;
};
Tensor is_close(const Tensor& a, const Tensor& b, Closeness c = {}, Site site = Site::here());
bool all_close(const Tensor& a, const Tensor& b, Closeness c = {}, Site site = Site::here());

// ── Activations ──────────────────────────────────────────────────────────────────────────────────
Tensor relu(const Operand& x);  // +0 for -0; gradient 0 at 0
Tensor relu6(const Operand& x);
Tensor leaky_relu(const Operand& x, double slope = 0.01);
Tensor elu(const Operand& x, double alpha = 1);
Tensor selu(const Operand& x);
Tensor gelu(const Operand& x);       // exact, by erf
Tensor gelu_tanh(const Operand& x);  // the tanh approximation
Tensor silu(const Operand& x);
Tensor mish(const Operand& x);
Tensor softplus(const Operand& x, double beta = 1);
Tensor softsign(const Operand& x);
Tensor hardtanh(const Operand& x, double low = -1, double high = 1);
Tensor hard_sigmoid(const Operand& x);
Tensor hard_swish(const Operand& x);
Tensor log_sigmoid(const Operand& x);
Tensor glu(const Tensor& x, int64_t axis = -1, Site site = Site::here());
Tensor softmax(const Tensor& x, int64_t axis = -1, Site site = Site::here());
Tensor log_softmax(const Tensor& x, int64_t axis = -1, Site site = Site::here());
Tensor logaddexp(const Operand& a, const Operand& b);
// Zeroes each element with `probability` and scales the others by 1 / (1 - probability).
Tensor dropout(const Tensor& x, double probability, Site site = Site::here());

// ── Layers as functions ──────────────────────────────────────────────────────────────────────────
// x [..., in] times weight [in, out] plus bias [out], which may be undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              Site site = Site::here());
Tensor embedding(const Tensor& ids, const Tensor& weight, Site site = Site::here());
struct NormOptions {
  Tensor weight = {}, bias = {};  // undefined: none
  double epsilon = 1e-5;          // inside the root
};
// Over the last `axes` axes; statistics in f32 for f16 and bf16.
Tensor layer_norm(const Tensor& x, int64_t axes = 1, NormOptions o = {}, Site site = Site::here());
Tensor rms_norm(const Tensor& x, NormOptions o = {}, Site site = Site::here());
// Per channel (axis 1) with the given statistics of [c].
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, NormOptions o = {},
                  Site site = Site::here());
// The same with x's own statistics over all other axes, as in training.  They are of [c], untracked
// and in f32 (f64 for f64); the variance is that of the values at hand, without correction.
struct NormedBatch {
  Tensor y, mean, variance;
};
NormedBatch batch_norm(const Tensor& x, NormOptions o = {}, Site site = Site::here());
Tensor normalize(const Tensor& x, double p = 2, int64_t axis = 1, double epsilon = 1e-12,
                 Site site = Site::here());

struct ConvOptions {
  Pair stride = 1;
  Pair padding = 0;  // on both sides
  Pair dilation = 1;
  int64_t groups = 1;
  Pair padding_after = {-1, -1};  // where it differs from `padding`; -1: the same
};
// x [n, c, h, w], weight [o, c / groups, kh, kw], bias [o] or undefined.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, ConvOptions o = {},
              Site site = Site::here());
// x [n, c, w], weight [o, c / groups, k]; the widths of `o` count.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, ConvOptions o = {},
              Site site = Site::here());
struct ConvTransposeOptions {
  Pair stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
};
// weight [c, o / groups, kh, kw].
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        ConvTransposeOptions o = {}, Site site = Site::here());
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        ConvTransposeOptions o = {}, Site site = Site::here());

struct PoolOptions {
  Pair stride = 0;  // 0: the kernel's size
  Pair padding = 0;
  Pair dilation = 1;  // max pools
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pools
  int64_t divisor = 0;            // average pools: 0 for the window's size
};
Tensor max_pool2d(const Tensor& x, Pair kernel, PoolOptions o = {}, Site site = Site::here());
Tensor avg_pool2d(const Tensor& x, Pair kernel, PoolOptions o = {}, Site site = Site::here());
Tensor max_pool1d(const Tensor& x, int64_t kernel, PoolOptions o = {}, Site site = Site::here());
Tensor avg_pool1d(const Tensor& x, int64_t kernel, PoolOptions o = {}, Site site = Site::here());
Tensor adaptive_avg_pool2d(const Tensor& x, Pair size, Site site = Site::here());

// ── Losses ───────────────────────────────────────────────────────────────────────────────────────
enum class Reduction { mean, sum, none };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  Tensor class_weights = {};  // [classes] or undefined
};
// logits [n, classes, ...], targets integers [n, ...] or probabilities of the logits' shape.
// Error(index) when the values are read: a target outside the classes.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions o = {},
                     Site site = Site::here());
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, CrossEntropyOptions o = {},
                Site site = Site::here());
struct LossOptions {
  Reduction reduction = Reduction::mean;
};
Tensor mse_loss(const Tensor& x, const Tensor& target, LossOptions o = {},
                Site site = Site::here());
Tensor l1_loss(const Tensor& x, const Tensor& target, LossOptions o = {}, Site site = Site::here());
Tensor huber_loss(const Tensor& x, const Tensor& target, double delta = 1, LossOptions o = {},
                  Site site = Site::here());
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, LossOptions o = {},
                       Site site = Site::here());
Tensor kl_div(const Tensor& log_x, const Tensor& target, LossOptions o = {},
              Site site = Site::here());

// ── Statistics ───────────────────────────────────────────────────────────────────────────────────
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t axis = 1, double epsilon = 1e-8,
                         Site site = Site::here());
Tensor covariance(const Tensor& x, int64_t correction = 1,
                  Site site = Site::here());                                  // rows: variables
Tensor median(const Tensor& x, int64_t axis = -1, Site site = Site::here());  // the lower one

}  // namespace fornax
