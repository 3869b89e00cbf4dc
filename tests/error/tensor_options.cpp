// The words of checks of options and of operands that no list of tensor_ops.cpp holds.
#include <cmath>
#include <cstdint>

#include "tests/devices.h"
#include "tests/error/wrong.h"

namespace fornax {
namespace {

const DType kI64 = DType::i64;

TEST(Errors, of_reading) {
  const Tensor x = zeros({2, 3});
  std::vector<float> four(4);
  expect_errors({
      {[&] { x.item<float>(); },
       kShape,
       {"item: f32[2,3] has 6 elements, 1 wanted; use to_vector() for all of them"}},
      {[&] { zeros({0}).item<int>(); }, kShape, {"item: f32[0] has 0 elements, 1 wanted"}},
      {[&] { x.copy_to(std::span(four)); },
       kShape,
       {"copy_to: f32[2,3] has 6 elements, 4 wanted; use to_vector()"}},
      {[&] { Tensor().item<float>(); },
       kValue,
       {"item: a tensor is undefined; give it a value first"}},
      {[&] { Tensor().copy_to(std::span(four)); }, kValue, {"copy_to: a tensor is undefined"}},
  });
}

TEST(Errors, of_gradients) {
  const Tensor x = zeros({2, 3}), tracked = x.require_grad();
  expect_errors({
      {[&] { zeros({2}, {.dtype = kI64}).require_grad(); },
       kDType,
       {"require_grad: only floats have gradients, got i64[2]; cast it first"}},
      {[&] { x.set_grad(x); },
       kValue,
       {"set_grad: the tensor is not tracked; call require_grad() on it first"}},
      {[&] { x.retain_grad(); },
       kValue,
       {"retain_grad: the tensor is not tracked; call require_grad() on it first"}},
      {[&] { tracked.set_grad(zeros({3})); },
       kShape,
       {"set_grad: the value is f32[2,3], its gradient cannot be f32[3]"}},
      {[&] {
         tracked.set_grad(zeros({2, 3}, {.dtype = DType::f64}));
       },
       kShape,
       {"set_grad: the value is f32[2,3], its gradient cannot be f64[2,3]"}},
  });
}

TEST(Errors, of_shapes_of_matrices) {
  const Tensor line = zeros({3});
  expect_errors({
      {[&] { line.diagonal(); }, kShape, {"diagonal: needs at least 2 axes, got f32[3]"}},
      {[&] { line.trace(); }, kShape, {"trace: needs at least 2 axes, got f32[3]"}},
      {[&] { stack({}); }, kValue, {"stack: needs at least one tensor"}},
      {[&] { embedding(zeros({2}, {.dtype = kI64}), line); },
       kShape,
       {"embedding: the weight must be [count, width], got f32[3]"}},
      {[&] {
         linear(zeros({2, 3}), line);
       },
       kShape,
       {"linear: the weight must be [in, out], got f32[3]"}},
      {[&] { line.norm(NAN); }, kValue, {"norm: p must be a number, got NaN"}},
  });
}

TEST(Errors, of_numbers_of_elements_and_of_random_numbers) {
  constexpr int64_t kTooMany = int64_t(1) << 61;  // elements of 8 bytes
  const Options doubles{.dtype = DType::f64};
  expect_errors({
      {[&] { zeros({kTooMany}, doubles); },
       kShape,
       {"zeros: element count overflows: [2305843009213693952] of f64"}},
      {[&] { ones({kTooMany}, doubles); },
       kShape,
       {"ones: element count overflows: [2305843009213693952] of f64"}},
      {[&] { normal({2}, 0, 1, {.dtype = DType::i32}); },
       kDType,
       {"normal: the dtype must be floating, got i32"}},
      {[&] { dropout(zeros({2}, {.dtype = kI64}), 0.5); },
       kDType,
       {"dropout: the dtype must be floating, got i64"}},
      {[&] { random_integers({2}, INT64_MIN, INT64_MAX); },
       kValue,
       {"random_integers: the range from -9223372036854775808 to 9223372036854775807 is wider than "
        "63 bits"}},
      {[&] { random_permutation(-1); },
       kValue,
       {"random_permutation: the count must not be negative, got -1"}},
  });
}

TEST(Errors, of_activations_norms_and_losses) {
  const Tensor x = zeros({2, 3}), line = zeros({3});
  const Tensor classes = zeros({2}, {.dtype = kI64});
  expect_errors({
      {[&] { softplus(x, 0); }, kValue, {"softplus: beta must be positive, got 0"}},
      {[&] { softplus(x, NAN); }, kValue, {"softplus: beta must be positive, got nan"}},
      {[&] { hardtanh(x, 2, -1); }, kValue, {"hardtanh: the bounds 2 and -1 are not ascending"}},
      {[&] { batch_norm(line, line, line); },
       kShape,
       {"batch_norm: needs a batch and a channel axis, got f32[3]"}},
      {[&] { cross_entropy(zeros({}), zeros({}, {.dtype = kI64})); },
       kShape,
       {"cross_entropy: logits need a class axis, got f32[]"}},
      {[&] { nll_loss(zeros({}), zeros({}, {.dtype = kI64})); },
       kShape,
       {"nll_loss: logits need a class axis, got f32[]"}},
      {[&] { cross_entropy(x, classes, {.label_smoothing = 1.5}); },
       kValue,
       {"cross_entropy: label smoothing must be between 0 and 1, got 1.5"}},
      {[&] { cross_entropy(x, classes, {.class_weights = zeros({2})}); },
       kShape,
       {"cross_entropy: class weights must be [3], one per class, got f32[2]"}},
      {[&] { huber_loss(x, x, 0); }, kValue, {"huber_loss: delta must be positive, got 0"}},
  });
}

TEST(Errors, of_windows) {
  const Tensor x = zeros({2, 3}), picture = zeros({1, 4, 5, 5});
  expect_errors({
      {[&] {
         conv_transpose2d(picture, zeros({4, 1, 3, 3}), {}, {.padding = 7});
       },
       kShape,
       {"conv_transpose2d: padding 7 leaves nothing of f32[1,4,5,5] with a kernel of 3"}},
      {[&] { max_pool2d(picture, 0); },
       kValue,
       {"max_pool2d: kernel 0, stride 0 and dilation 1 must be at least 1 and padding 0 at least "
        "0"}},
      {[&] { avg_pool2d(picture, 2, {.stride = -1}); },
       kValue,
       {"avg_pool2d: kernel 2, stride -1 and dilation 1 must be at least 1"}},
      {[&] { max_pool2d(picture, 2, {.padding = -1}); },
       kValue,
       {"max_pool2d: kernel 2, stride 2 and dilation 1 must be at least 1 and padding -1 at least "
        "0"}},
      {[&] { max_pool2d(x, 2); },
       kShape,
       {"max_pool2d: x must have 4 axes, batch, channels, height and width, got f32[2,3]"}},
      {[&] { max_pool1d(x, 2); },
       kShape,
       {"max_pool1d: x must have 3 axes, batch, channels and width, got f32[2,3]"}},
      {[&] { avg_pool1d(picture, 2); },
       kShape,
       {"avg_pool1d: x must have 3 axes, batch, channels and width, got f32[1,4,5,5]"}},
      {[&] { adaptive_avg_pool2d(x, 2); },
       kShape,
       {"adaptive_avg_pool2d: cannot average f32[2,3] to a picture of 2 x 2"}},
      {[&] {
         adaptive_avg_pool2d(picture, {0, 2});
       },
       kShape,
       {"adaptive_avg_pool2d: cannot average f32[1,4,5,5] to a picture of 0 x 2"}},
  });
}

// Both devices and both types are named, whichever op meets them first: with constants, and with
// values in memory, which small ops take at once.
void check_mixed(const Tensor& a, const Tensor& b) {
  const std::string where =
      " operands are on cpu:0 (f32[2,2]) and reference:0 (f32[2,2]); move one with to(device)";
  const std::vector<Wrong> list = {
      {[&] { a + b; }, ErrorKind::device, {"add:" + where}},
      {[&] { a.matmul(b); }, ErrorKind::device, {"matmul:" + where}},
      {[&] { linear(a, b); }, ErrorKind::device, {"linear:" + where}},
      {[&] {
         cat({a, b});
       },
       ErrorKind::device,
       {"cat:" + where}},
      {[&] { b - a; },
       ErrorKind::device,
       {"sub: operands are on reference:0 (f32[2,2]) and cpu:0 (f32[2,2])"}},
  };
  expect_errors(list);
}
TEST(Errors, of_devices) {
  const Device cpu("cpu"), other("reference");
  check_mixed(zeros({2, 2}, {.device = cpu}), zeros({2, 2}, {.device = other}));
  const std::vector<float> numbers{1, 2, 3, 4};
  check_mixed(from(numbers, {2, 2}, cpu), from(numbers, {2, 2}, other));
}

TEST(Errors, of_numbers_of_devices) {
  int usable = 0;
  on_devices([&](Device) { usable++; });
  expect_words(message_of(ErrorKind::device, [] { Device::from_physical(99); }),
               "device: number 99 of " + std::to_string(usable) + " devices");
}

}  // namespace
}  // namespace fornax
