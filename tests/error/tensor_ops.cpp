// The words of each check in the tensor room, and that they name the user's op and line.
#include <fornax/ranked.h>

#include <cmath>

#include "tests/error/wrong.h"

namespace fornax {
namespace {

TEST(Errors, of_shapes) {
  const Tensor x = zeros({2, 3});
  expect_errors({
      {[&] {
         x.reshape({4, -1});
       },
       kShape,
       {"reshape: f32[2,3] has 6 elements, which [4,-1] cannot hold"}},
      {[&] {
         x.reshape({-1, -1});
       },
       kShape,
       {"reshape: [-1,-1] has two sizes of -1; only one can be inferred"}},
      {[&] { x.reshape({7}); }, kShape, {"reshape:", "f32[2,3]", "7"}},
      {[&] { x.squeeze(0); },
       kShape,
       {"squeeze: axis 0 of f32[2,3] has size 2, only size 1 can go"}},
      {[&] { x.unsqueeze(4); }, kIndex, {"unsqueeze: axis 4"}},
      {[&] { x.permute({0}); }, kShape, {"permute:", "1 axes", "f32[2,3]"}},
      {[&] {
         x.permute({0, 0});
       },
       kValue,
       {"permute: axis 0 is named twice"}},
      {[&] {
         x.expand({2, 4});
       },
       kShape,
       {"expand: f32[2,3] cannot be repeated to [2,4]"}},
      {[&] { x.repeat({2}); }, kShape, {"repeat: f32[2,3] has 2 axes, [2] counts only 1"}},
      {[&] { x.narrow(1, 2, 2); }, kIndex, {"narrow: 2 elements from 2 leave axis 1 of f32[2,3]"}},
      {[&] { x.select(0, 2); }, kIndex, {"select: position 2 is outside axis 0 of f32[2,3]"}},
      {[&] { x.split(0); }, kValue, {"split:", "at least 1, got 0"}},
      {[&] {
         x.pad({{1, 1}, {1, 1}, {1, 1}});
       },
       kShape,
       {"pad: 3 pairs are given for f32[2,3], which has 2 axes"}},
      {[&] {
         x.pad({{-2, -2}});
       },
       kShape,
       {"pad:", "negative"}},
      {[&] { x.unfold(1, 4, 1); }, kShape, {"unfold:", "4 elements does not fit axis 1"}},
      {[&] { x.flatten(1, 0); },
       kIndex,
       {"flatten: the first axis 1 stands behind the last 0 of f32[2,3]"}},
      {[&] { zeros({3}).triu(); }, kShape, {"triu: needs at least 2 axes, got f32[3]"}},
      {[&] { cat({}); }, kValue, {"cat: needs at least one tensor"}},
      {[&] {
         cat({x, zeros({3, 3})}, 1);
       },
       kShape,
       {"cat: part 1 is f32[3,3]", "axis 1"}},
      {[&] {
         stack({x, zeros({2})});
       },
       kShape,
       {"stack: part 1 is f32[2], the first is f32[2,3]; all must have one shape"}},
      {[&] { x.sum(2); },
       kIndex,
       {"sum: axis 2 is outside the 2 axes of f32[2,3]; give one from -2 to 1"}},
      {[&] {
         x.mean({0, -2});
       },
       kValue,
       {"mean: axis 0 is named twice"}},
      {[&] {
         zeros({2, 0}).max(1);
       },
       kShape,
       {"max: axis 1 of f32[2,0] has no elements"}},
      {[&] { x.topk(4); }, kIndex, {"topk: k is 4", "3 elements"}},
      {[&] { softmax(x, 2); }, kIndex, {"softmax: axis 2"}},
  });
}

TEST(Errors, of_indexing) {
  Tensor x = zeros({2, 3});
  expect_errors({
      {[&] { x(2); }, kIndex, {"index: position 2 is outside axis 0 of f32[2,3]", "2 elements"}},
      {[&] { x(0, -4); }, kIndex, {"position -4 is outside axis 1"}},
      {[&] { x(0, 0, 0); }, kIndex, {"3 axes are indexed, f32[2,3] has 2"}},
      {[&] { x(ellipsis, ellipsis); }, kIndex, {"index: more than one ellipsis"}},
      {[&] { x(slice(0, 1, 0)); }, kValue, {"index: the step of a slice must not be 0"}},
      {[&] { x(zeros({2})); },
       kDType,
       {"index: index tensors must be integers or bool, got f32[2]; cast it to i64"}},
      {[&] {
         x(tensor({true, false, true}));
       },
       kIndex,
       {"index: the mask bool[3] does not have the sizes of f32[2,3] from axis 0 on"}},
      {[&] { x.at(5) = 1; }, kIndex, {"at: position 5"}},
      {[&] { x.at(0) = zeros({2}); }, kShape, {"at: f32[2] cannot be repeated to [3]"}},
      {[&] {
         Tensor i = zeros({2}, {.dtype = DType::i64});
         i.at(0) = 1.5;
       },
       kDType,
       {"at: a float cannot go into i64[2]"}},
      {[&] {
         x.gather(0, zeros({2, 3}));
       },
       kDType,
       {"gather: the index must be integers"}},
      {[&] {
         x.scatter_add(1, zeros({1, 1}, {.dtype = DType::i64}), 1);
       },
       kShape,
       {"scatter_add: index i64[1,1]"}},
      {[&] {
         x(tensor({0, 2})).to_vector<float>();
       },
       kIndex,
       {"gather: index 2 is outside axis 0 of f32[2,3], which has 2 elements"}},
      {[&] { x(tensor({0}), tensor({3})).to_vector<float>(); }, kIndex, {"index"}},
      {[&] { embedding(tensor({7}), x).to_vector<float>(); },
       kIndex,
       {"gather: index 7 is outside axis 0 of f32[2,3], which has 2 elements"}},
      {[&] { x.masked_fill(x, 1); }, kDType, {"masked_fill:", "bool"}},
  });
}

TEST(Errors, of_creation) {
  expect_errors({
      {[] {
         tensor({{1, 2}, {3}});
       },
       kShape,
       {"tensor: ragged list: [1] has 1 items where its neighbours have 2"}},
      {[] {
         tensor({{1, 2}, 3});
       },
       kShape,
       {"ragged list: [1] is a number where its neighbours are lists"}},
      {[] {
         tensor({1, {2}});
       },
       kShape,
       {"ragged list: [1] is a list where its neighbours are numbers"}},
      {[] {
         from(std::vector<float>{1, 2}, {3});
       },
       kShape,
       {"from: 2 values are given, [3] has 3"}},
      {[] { zeros({-1}); }, kShape, {"zeros: sizes must not be negative"}},
      {[] { arange(0, 3, 0); }, kValue, {"arange: the step must not be 0"}},
      {[] { arange(0.0, INFINITY); }, kValue, {"arange: from 0 to inf by 1 has no end"}},
      {[] { uniform({2}, 3, 1); },
       kValue,
       {"uniform: the range from 3 to 1 is not finite and ascending"}},
      {[] { uniform({2}, 0, 1, {.dtype = DType::i64}); },
       kDType,
       {"uniform: the dtype must be floating, got i64"}},
      {[] { normal({2}, 0, -1); }, kValue, {"normal: the deviation must not be negative, got -1"}},
      {[] { bernoulli({2}, 1.5); },
       kValue,
       {"bernoulli: the probability must be between 0 and 1, got 1.5"}},
      {[] { random_integers({2}, 3, 3); },
       kValue,
       {"random_integers: the range from 3 to 3 is empty"}},
      {[] { dropout(zeros({2}), -0.5); },
       kValue,
       {"dropout: the probability must be between 0 and 1, got -0.5"}},
      {[] { one_hot(zeros({2}), 3); },
       kDType,
       {"one_hot: classes must be integers, got f32[2]; cast them to i64"}},
      {[] {
         Ranked<1> x(zeros({2, 2}));
       },
       kShape,
       {"ranked: f32[2,2] has 2 axes, the type says 1"}},
      {[] { Ranked<1, Int> x(zeros({2})); }, kDType, {"ranked: f32[2] is not of kind Int"}},
  });
}

TEST(Errors, of_products_and_layers) {
  const Tensor x = zeros({2, 3}), picture = zeros({1, 4, 5, 5});
  expect_errors({
      {[&] { x.matmul(x); },
       kShape,
       {"matmul: inner sizes differ: a is f32[2,3], b is f32[2,3]", "(3)", "(2)"}},
      {[&] { x.matmul(tensor(2.0)); },
       kShape,
       {"matmul: operands need at least one axis, got f32[2,3] and f32[]; use * for numbers"}},
      {[&] { x.matmul(2); }, kShape, {"matmul: takes tensors, got the number 2"}},
      {[&] {
         zeros({2, 2, 3}).matmul(zeros({3, 3, 2}));
       },
       kShape,
       {"matmul: cannot broadcast"}},
      {[&] { x.dot(x); },
       kShape,
       {"dot: takes two tensors of one axis, got f32[2,3] and f32[2,3]"}},
      {[&] {
         linear(x, zeros({3, 2}), zeros({3}));
       },
       kShape,
       {"linear: the bias must be [2]"}},
      {[&] {
         linear(x, zeros({2, 2}));
       },
       kShape,
       {"linear: inner sizes differ"}},
      {[&] { layer_norm(x, 1, {.weight = zeros({2})}); },
       kShape,
       {"layer_norm: the weight must be [3] for f32[2,3], got f32[2]"}},
      {[&] { layer_norm(x, 3); }, kValue, {"layer_norm: cannot normalise the last 3 axes"}},
      {[&] { batch_norm(x, zeros({2}), zeros({3})); },
       kShape,
       {"batch_norm: the mean must be [3]"}},
      {[&] { glu(x); }, kShape, {"glu: axis 1 of f32[2,3] must have an even size to be halved"}},
      {[&] { conv2d(x, x); }, kShape, {"conv2d: x must have 4 axes"}},
      {[&] {
         conv2d(picture, zeros({2, 3, 3, 3}));
       },
       kShape,
       {"conv2d: 4 channels in 1 groups"}},
      {[&] {
         conv2d(picture, zeros({2, 4, 3, 3}), zeros({3}));
       },
       kShape,
       {"conv2d: the bias must be [2], one number per output channel, got f32[3]"}},
      {[&] {
         conv2d(picture, zeros({2, 4, 9, 9}));
       },
       kShape,
       {"conv2d: kernel 9", "does not fit 5"}},
      {[&] {
         conv_transpose2d(picture, zeros({3, 1, 3, 3}));
       },
       kShape,
       {"conv_transpose2d: x is f32[1,4,5,5] and the weight f32[3,1,3,3]; x's channels (4) must "
        "equal the weight's first size (3) and be a multiple of the groups (1)"}},
      {[&] {
         conv_transpose2d(picture, zeros({4, 1, 3, 3}), {}, {.output_padding = 1});
       },
       kValue,
       {"conv_transpose2d: output padding 1 must be at least 0 and below the stride 1 or the "
        "dilation 1"}},
      {[&] { max_pool2d(picture, 2, {.padding = 2}); },
       kValue,
       {"max_pool2d: padding 2 must be at most half the kernel 2"}},
      {[&] { avg_pool2d(picture, 2, {.dilation = 2}); },
       kValue,
       {"avg_pool2d: average pools have no dilation, got 2 and 2"}},
      {[&] { avg_pool2d(picture, 9); }, kShape, {"avg_pool2d:", "does not fit 5"}},
      {[&] { cross_entropy(x, zeros({3}, {.dtype = DType::i64})); },
       kShape,
       {"cross_entropy: logits f32[2,3] want targets of integers [2] or probabilities [2,3], got "
        "i64[3]"}},
      {[&] { mse_loss(x, zeros({2})); },
       kShape,
       {"mse_loss: x is f32[2,3] and the target f32[2]; their shapes must be equal"}},
      {[&] { covariance(zeros({2})); },
       kShape,
       {"covariance: needs 2 axes, variables and observations, got f32[2]"}},
      {[&] {
         median(zeros({2, 0}));
       },
       kShape,
       {"median: axis 1 of f32[2,0] has no elements"}},
  });
}

TEST(Errors, of_undefined_tensors) {
  const Tensor nothing;
  expect_errors({
      {[&] { nothing.sum(); }, kValue, {"sum: a tensor is undefined; give it a value first"}},
      {[&] { softmax(nothing); }, kValue, {"softmax: a tensor is undefined"}},
      {[&] { cat({nothing}); }, kValue, {"cat: a tensor is undefined"}},
  });
}

}  // namespace
}  // namespace fornax
