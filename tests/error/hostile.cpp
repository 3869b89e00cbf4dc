// Numbers, chains and failures that are far from what anybody means: an error, and the next op
// works.
#include <fornax/grad.h>
#include <fornax/ops.h>
#include <fornax/ranked.h>

#include <sstream>

#include "base/sanitizer.h"
#include "base/settings.h"
#include "tests/errors.h"

namespace fornax {
namespace {

constexpr int64_t kMost = INT64_MAX;

TEST(Hostile, windows_and_padding_beyond_all_sense) {
  const Tensor x = ones({1, 1, 8, 8}), w = ones({1, 1, 3, 3});
  const auto value = ErrorKind::value;
  const std::string much = std::to_string(kMost) + " is too large; the most is 16777216";
  expect_error_here(value, "avg_pool2d: " + much,
                    [&] { (void)avg_pool2d(x, 2, {.padding = kMost}); });
  expect_error_here(value, "max_pool2d: " + much,
                    [&] { (void)max_pool2d(x, 2, {.padding = kMost}); });
  expect_error_here(value, "max_pool2d: " + much,
                    [&] { (void)max_pool2d(x, 2, {.stride = kMost, .ceil_mode = true}); });
  expect_error_here(value, "conv2d: " + much, [&] { (void)conv2d(x, w, {}, {.dilation = kMost}); });
  expect_error_here(value, "conv_transpose2d: " + much,
                    [&] { (void)conv_transpose2d(x, w, {}, {.padding = kMost}); });
  expect_error_here(value, "pad: 9223372036854775807 is too large; the most is 1099511627776", [&] {
    (void)x.pad({{kMost, kMost}});
  });
}

TEST(Hostile, more_than_the_host_has) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "their allocators end the process";
  const Tensor x = zeros({int64_t(1) << 50});
  const auto memory = ErrorKind::out_of_memory;
  expect_error_here(memory,
                    "to_vector: the host has no memory for 1125899906842624 elements of f32",
                    [&] { (void)x.to_vector<float>(); });
  expect_error_here(memory, "linspace: the host has no memory",
                    [] { (void)linspace(0, 1, int64_t(1) << 50); });
  expect_error_here(memory, "adaptive_avg_pool2d: the host has no memory", [] {
    (void)adaptive_avg_pool2d(ones({1, 1, 8, 8}), int64_t(1) << 50);
  });
}

TEST(Hostile, long_chains_of_views) {
  Tensor x = ones({2000}) + 1;
  for (int i = 0; i < 20000; i++) x = x.flip(0);
  EXPECT_EQ(x.sum().item<float>(), 4000);
  Tensor y = ones({40, 50}) + 1;
  for (int i = 0; i < 20000; i++) y = y.transpose();
  EXPECT_EQ(y.sum().item<float>(), 4000);
}

// Whatever fails, gradients stay on.
TEST(Hostile, failures_leave_gradients_on) {
  const auto failed = [] { return ones({2, 3}).take(tensor({9})).sum(); };
  const std::function<void(const Tensor&)> reads[] = {
      [](const Tensor& x) { (void)x.item<double>(); },
      [](const Tensor& x) { (void)x.to_vector<double>(); },
      [](const Tensor& x) { (void)x.detach().item<float>(); },
      [](const Tensor& x) { (void)x.require_grad().item<float>(); },
      [](const Tensor& x) { (void)x.to("reference").item<float>(); },
  };
  for (const auto& read : reads) {
    const Tensor x = failed();
    for (int times = 0; times < 2; times++) {
      expect_words(message_of(ErrorKind::index, [&] { read(x); }), "index 9");
      EXPECT_TRUE((ones({2}).require_grad() * 2).requires_grad());
    }
  }
}

TEST(Hostile, undefined_tensors_name_op_and_line) {
  const Tensor none, x = ones({2});
  const auto value = ErrorKind::value;
  const std::string words = ": a tensor is undefined; give it a value first";
  expect_error_here(value, "add" + words, [&] { (void)(x + none); });
  expect_error_here(value, "exp" + words, [&] { (void)none.exp(); });
  expect_error_here(value, "neg" + words, [&] { (void)-none; });
  expect_error_here(value, "where" + words, [&] { (void)where(none, x, x); });
  expect_error_here(value, "cast" + words, [&] { (void)none.cast(DType::f64); });
  expect_error_here(value, "detach" + words, [&] { (void)none.detach(); });
  expect_error_here(value, "contiguous" + words, [&] { (void)none.contiguous(); });
  expect_error_here(value, "to_vector" + words, [&] { (void)none.to_vector<float>(); });
}

TEST(Hostile, devices_that_do_not_exist) {
  const auto device = ErrorKind::device;
  expect_error_here(device, "device: there is no \"nope\"", [] { (void)Device("nope"); });
  expect_error_here(device, "there is no \"nope\"", [] { (void)zeros({2}, {.device = "nope"}); });
  expect_error_here(device, "there is no \"nope\"", [] { (void)ones({2}).to("nope"); });
}

TEST(Hostile, axes_say_of_what) {
  const auto index = ErrorKind::index;
  expect_error_here(
      index, "transpose: axis 2 is outside the 2 axes of f32[2,3]; give one from -2 to 1", [] {
        (void)ones({2, 3}).transpose(0, 2);
      });
  expect_error_here(index, "squeeze: axis 1 is outside the 0 axes of f32[]; it is a single number",
                    [] { (void)ones({}).squeeze(1); });
}

TEST(SingleNumbers, have_one_axis_for_those_who_name_it) {
  const Tensor x = full({}, 3);
  for (const int64_t axis : {0, -1}) {
    EXPECT_EQ(x.sum(axis).item<float>(), 3);
    EXPECT_EQ(x.argmax(axis).item<int64_t>(), 0);
    EXPECT_EQ(x.cumsum(axis).item<float>(), 3);
    EXPECT_EQ(x.sort({.axis = axis}).item<float>(), 3);
    EXPECT_EQ(x.argsort({.axis = axis}).item<int64_t>(), 0);
    EXPECT_EQ(softmax(x, axis).item<float>(), 1);
    EXPECT_EQ(log_softmax(x, axis).item<float>(), 0);
    EXPECT_EQ(median(x, axis).item<float>(), 3);
    EXPECT_EQ(softmax(x, axis).rank(), 0);
  }
}

TEST(Printing, to_a_stream) {
  std::ostringstream out;
  const Ranked<1> view(tensor({1.5, 2}));
  out << tensor({1, 2}) << ' ' << view;
  EXPECT_EQ(out.str(), tensor({1, 2}).text() + " " + tensor({1.5, 2}).text());
}

TEST(Spans, are_taken_with_and_without_a_shape) {
  float values[] = {1, 2, 3, 4};
  EXPECT_EQ(from(std::span<float>(values), {2, 2})(1, 0).item<float>(), 3);
  EXPECT_EQ(from(std::span<const float>(values))(3).item<float>(), 4);
  double out[2] = {};
  from(std::span<float>(values, 2)).copy_to(std::span<double>(out));
  EXPECT_EQ(out[1], 2);
}

TEST(Settings, refuse_negative_numbers_and_list_their_names) {
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  const auto read = [&](const char* text) { (void)read_settings(text, "fornax.toml", nothing); };
  expect_words(message_of(ErrorKind::value, [&] { read("threads = -5"); }),
               "settings: threads must not be negative, got -5");
  expect_words(message_of(ErrorKind::value, [&] { read("thread = 5"); }),
               "fornax.toml has \"thread\", which is no setting; there are device, log, ");
}

}  // namespace
}  // namespace fornax
