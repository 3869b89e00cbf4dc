// Convolutions and pools: src/tensor/convolution.cpp and pool.cpp.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

Tensor line(std::vector<double> values, Device device) {
  const int64_t size = int64_t(values.size());
  return floats(std::move(values), {1, 1, size}, device);
}

TEST_ON_DEVICES(Cases, C070_depthwise_stride_two) {
  const Tensor y = conv2d(iota({1, 4, 4, 4}, device), iota({4, 1, 3, 3}, device), iota({4}, device),
                          {.stride = 2, .padding = 1, .groups = 4});
  expect_tensor(y(0, 0), {2, 2}, {73, 154, 279, 438});
}

TEST_ON_DEVICES(Cases, C072_grouped_with_more_outputs) {
  const Options o{.device = device};
  const Tensor y =
      conv2d(ones({1, 2, 8, 8}, o), ones({16, 1, 3, 3}, o), {}, {.padding = 1, .groups = 2});
  EXPECT_EQ(y.shape(), (Shape{1, 16, 8, 8}));
  expect_values(y(0, 15, 0), {4, 6, 6, 6, 6, 6, 6, 4});
  expect_values(y(0, 0, 1), {6, 9, 9, 9, 9, 9, 9, 6});
  EXPECT_EQ(y.sum().item<float>(), 7744);
}

TEST_ON_DEVICES(Cases, C073_dilated_transposed_convolution) {
  const Options o{.device = device};
  const Tensor y =
      conv_transpose1d(ones({1, 1, 6}, o), ones({1, 1, 3}, o), {},
                       {.stride = 2, .padding = 1, .output_padding = 1, .dilation = 2});
  expect_tensor(y, {1, 1, 14}, {0, 2, 0, 3, 0, 3, 0, 3, 0, 3, 0, 2, 0, 1});
}

TEST_ON_DEVICES(Cases, C074_output_padding) {
  const Tensor x = line({1, 2, 3}, device), k = line({1, 10, 100}, device);
  expect_values(conv_transpose1d(x, k, {}, {.stride = 2, .padding = 1, .output_padding = 1}),
                {10, 102, 20, 203, 30, 300});
  expect_values(conv_transpose1d(x, k, {}, {.stride = 2, .padding = 1}), {10, 102, 20, 203, 30});
  EXPECT_THROW(conv_transpose1d(x, k, {}, {.stride = 2, .output_padding = 2}), Error);
  // More output padding than padding: nothing reaches the last column.
  expect_values(conv_transpose1d(x, k, {}, {.stride = 2, .output_padding = 1}),
                {1, 10, 102, 20, 203, 30, 300, 0});
}

TEST_ON_DEVICES(Cases, C076_adjoint) {
  device.seed(11);
  const Options o{.dtype = DType::f64, .device = device};
  for (const int64_t stride : {1, 2, 3}) {
    for (const int64_t padding : {0, 1, 2}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t groups : {1, 2}) {
          const Tensor x = normal({1, 4, 11}, 0, 1, o), w = normal({6, 4 / groups, 3}, 0, 1, o);
          const Tensor z = conv1d(
              x, w, {},
              {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
          const Tensor y = normal(z.shape(), 0, 1, o);
          const int64_t reach = (z.shape(2) - 1) * stride - 2 * padding + dilation * 2 + 1;
          const Tensor back = conv_transpose1d(y, w, {},
                                               {.stride = stride,
                                                .padding = padding,
                                                .output_padding = 11 - reach,
                                                .dilation = dilation,
                                                .groups = groups});
          EXPECT_NEAR((z * y).sum().item<double>(), (x * back).sum().item<double>(), 1e-9);
        }
      }
    }
  }
}

TEST_ON_DEVICES(Cases, C077_padding_that_differs_by_side) {
  const Tensor x = line({1, 2, 3, 4}, device), k = line({1, 1, 1}, device);
  expect_values(conv1d(x, k, {}, {.padding = 0, .padding_after = 2}), {6, 9, 7, 4});
  expect_values(conv1d(x, k, {}, {.padding = 2, .padding_after = 0}), {1, 3, 6, 9});
  expect_values(conv1d(x, line({1, 1}, device), {}, {.padding_after = 1}), {3, 5, 7, 4});
}

TEST_ON_DEVICES(Cases, C057_average_of_ones_in_f16) {
  const Tensor x = ones({1, 1, 64, 64}, {.dtype = DType::f16, .device = device}) * 1;
  EXPECT_EQ(avg_pool2d(x, 64).item<double>(), 1);
  EXPECT_EQ(adaptive_avg_pool2d(x, 1).item<double>(), 1);
}

TEST_ON_DEVICES(Cases, C078_average_in_ceil_mode) {
  expect_values(avg_pool1d(line({1, 2, 3, 4, 5}, device), 2, {.ceil_mode = true}), {1.5, 3.5, 5});
}

TEST_ON_DEVICES(Cases, C080_ceil_mode_with_padding) {
  const Tensor x =
      floats({2.0903, 4.6493, 1.6320, -3.2051, 4.6975, 4.7296, 3.3653, -1.5815, -2.3832, 0.9628,
              -1.5899, -2.6820, 5.7529, 7.7346, -0.8910, -2.0151, 0.1313, -0.5374},
             {1, 2, 9}, device);
  expect_values(
      avg_pool1d(x, 7, {.stride = 3, .padding = 3, .ceil_mode = true}),
      {0.7380714, 2.5655572, 0.8032287, -0.0999000, 0.3491143, 1.0389000, 1.4536142, -0.4035334});
}

TEST_ON_DEVICES(Cases, C081_a_window_that_starts_in_the_padding) {
  const Tensor x = line({1, 2, 3, 4}, device);
  const PoolOptions o{.stride = 3, .padding = 1, .ceil_mode = true};
  expect_values(avg_pool1d(x, 2, o), {0.5, 3.5});
  expect_values(max_pool1d(x, 2, o), {1, 4});
}

TEST_ON_DEVICES(Cases, C082_divisors) {
  const Tensor x = line({1, 2, 3, 4, 5}, device);
  expect_values(avg_pool1d(x, 3, {.stride = 2, .padding = 1}), {1, 3, 3});
  expect_values(avg_pool1d(x, 3, {.stride = 2, .padding = 1, .count_include_pad = false}),
                {1.5, 3, 4.5});
  const Tensor y = avg_pool2d(ones({1, 1, 4, 4}, {.device = device}), 2,
                              {.padding = 1, .count_include_pad = false, .divisor = 2});
  expect_values(y, {0.5, 1, 0.5, 1, 2, 1, 0.5, 1, 0.5});
}

TEST_ON_DEVICES(Cases, C084_maximum_pool_and_nan) {
  expect_values(max_pool1d(line({1, kNan, 2, 3}, device), 2), {kNan, 3});
  expect_values(max_pool1d(line({-kInf, -kInf, 2, 3}, device), 2), {-kInf, 3});
}

TEST_ON_DEVICES(Cases, C085_padding_beyond_half_the_kernel) {
  const Tensor x = line({1, 2, 3, 4}, device);
  EXPECT_THROW(max_pool1d(x, 2, {.padding = 2}), Error);
  EXPECT_THROW(avg_pool1d(x, 2, {.padding = 2}), Error);
  EXPECT_THROW(max_pool1d(line({1}, device), 3, {.padding = 3}), Error);
}

TEST_ON_DEVICES(Pools, maximum_in_ceil_mode) {
  // The last window reaches one element beyond a padding that fills half the kernel already.
  expect_values(
      max_pool1d(iota({1, 1, 5}, device), 4, {.stride = 3, .padding = 2, .ceil_mode = true}),
      {1, 4, 4});
  const Tensor ints = from(std::vector<int64_t>{-5, -3, -9}, {1, 1, 3}, device);
  expect_values(max_pool1d(ints, 2, {.ceil_mode = true}), {-3, -9});
}

TEST_ON_DEVICES(Pools, adaptive_with_unequal_windows) {
  const Tensor y = adaptive_avg_pool2d(iota({1, 1, 1, 5}, device), Pair(1, 3));
  expect_values(y, {0.5, 2, 3.5});
}

}  // namespace
}  // namespace fornax
