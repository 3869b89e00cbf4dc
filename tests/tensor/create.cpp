// Creation, random numbers and printing: src/tensor/{create,random,print}.cpp.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

TEST_ON_DEVICES(Create, nested_lists) {
  const Tensor x = tensor({{1.5, 2}, {3, 4}}, {.device = device});
  EXPECT_EQ(x.dtype(), DType::f32);
  expect_tensor(x, {2, 2}, {1.5, 2, 3, 4});
  EXPECT_EQ(tensor({1, 2}, {.device = device}).dtype(), DType::i64);
  EXPECT_EQ(tensor({true, false}, {.device = device}).dtype(), DType::bool_);
  EXPECT_EQ(tensor(7, {.device = device}).shape(), Shape());
  expect_tensor(tensor({1.7, -2.2}, {.dtype = DType::i32, .device = device}), {2}, {1, -2});
  expect_tensor(tensor({{{1}}}, {.dtype = DType::f16, .device = device}), {1, 1, 1}, {1});
  EXPECT_EQ(tensor({9007199254740993}, {.device = device}).item<int64_t>(), 9007199254740993);
  EXPECT_EQ(tensor({{}, {}}, {.device = device}).shape(), (Shape{2, 0}));
}

TEST_ON_DEVICES(Create, host_data) {
  expect_tensor(from(std::vector<int32_t>{1, 2, 3}, device), {3}, {1, 2, 3});
  expect_tensor(from(std::vector<float>{1, 2}, {2, 1}, device), {2, 1}, {1, 2});
  EXPECT_EQ(from(std::vector<float>{}, {0, 2}, device).shape(), (Shape{0, 2}));
}

TEST_ON_DEVICES(Create, bytes_of_bools_may_be_any) {
  const uint8_t bytes[] = {0, 1, 2, 255};
  const Tensor x = from_bytes(bytes, DType::bool_, {4}, device);
  expect_values(x.cast(DType::i32), {0, 1, 1, 1});
  expect_values(x.cumsum(0), {0, 1, 2, 3});
}

TEST(Create, empty_tensors_move_between_devices) {
  for (const DeviceListing& from : devices()) {
    for (const DeviceListing& to : devices()) {
      if (!from.usable || !to.usable) continue;
      const Tensor moved = zeros({0, 2}, {.device = Device(from.name)}).to(Device(to.name));
      expect_tensor(moved, {0, 2}, {});
      EXPECT_EQ(moved.device().name(), Device(to.name).name());
    }
  }
}

TEST_ON_DEVICES(Create, constants) {
  const Options i32{.dtype = DType::i32, .device = device};
  expect_values(full({2}, 7.9, i32), {7, 7});
  EXPECT_EQ(zeros_like(full({2}, 1, i32)).dtype(), DType::i32);
  expect_values(ones_like(zeros({2, 2}, i32)), {1, 1, 1, 1});
  expect_values(eye(2, {.device = device}), {1, 0, 0, 1});
  expect_values(one_hot(integers({2, 0}, device), 3), {0, 0, 1, 1, 0, 0});
}

TEST_ON_DEVICES(Create, ranges) {
  const DataOptions o{.device = device};
  EXPECT_EQ(arange(3, o).dtype(), DType::i64);
  expect_values(arange(2, 8, 3, o), {2, 5});
  expect_values(arange(5, 0, -2, o), {5, 3, 1});
  expect_values(arange(0.0, 1.0, 0.25, o), {0, 0.25, 0.5, 0.75});
  EXPECT_EQ(arange(3, 3, 1, o).shape(), (Shape{0}));
  expect_values(arange(3, 0, -1, {.dtype = DType::u8, .device = device}), {3, 2, 1});
  expect_values(linspace(0, 1, 5, {.device = device}), {0, 0.25, 0.5, 0.75, 1});
  EXPECT_EQ(linspace(0, 0.3, 4, {.device = device})(-1).item<float>(), 0.3f);
  expect_values(linspace(2, 9, 1, {.device = device}), {2});
}

TEST_ON_DEVICES(Cases, C140_seeds) {
  const Options o{.device = device};
  device.seed(42);
  const std::vector<float> first = uniform({5}, 0, 1, o).to_vector<float>();
  device.seed(42);
  EXPECT_EQ(uniform({5}, 0, 1, o).to_vector<float>(), first);
  EXPECT_NE(uniform({5}, 0, 1, o).to_vector<float>(), first);
  EXPECT_FALSE((normal({4096}, 0, 1, o) == 0).any().item<bool>());
}

TEST(Random, equal_on_every_device) {
  std::vector<float> first;
  for (const DeviceListing& listing : devices()) {
    if (!listing.usable) continue;
    const Device device(listing.name);
    device.seed(7);
    const std::vector<float> numbers = uniform({33}, -2, 3, {.device = device}).to_vector<float>();
    if (first.empty()) first = numbers;
    EXPECT_EQ(numbers, first) << listing.name;
  }
}

TEST_ON_DEVICES(Random, distributions) {
  device.seed(3);
  const Options o{.device = device};
  const Tensor u = uniform({10000}, 2, 4, o);
  EXPECT_GE(u.min().item<float>(), 2);
  EXPECT_LT(u.max().item<float>(), 4);
  EXPECT_NEAR(u.mean().item<float>(), 3, 0.03);
  const Tensor n = normal({10000}, 1, 2, o);
  EXPECT_NEAR(n.mean().item<float>(), 1, 0.08);
  EXPECT_NEAR(n.deviation().item<float>(), 2, 0.06);
  const Tensor wide = normal({10000}, 0, 1, {.dtype = DType::f64, .device = device});
  EXPECT_NEAR(wide.variance().item<double>(), 1, 0.06);
  EXPECT_NEAR(bernoulli({10000}, 0.25, device).sum().item<double>(), 2500, 180);
  EXPECT_LT(uniform({20000}, 0, 1, {.dtype = DType::f16, .device = device}).max().item<double>(),
            1);
  EXPECT_LT(uniform({20000}, 0, 1, {.dtype = DType::bf16, .device = device}).max().item<double>(),
            1);
}

TEST_ON_DEVICES(Random, integers_and_permutations) {
  device.seed(4);
  const Tensor dice = random_integers({6000}, 1, 7, device);
  EXPECT_EQ(dice.min().item<int64_t>(), 1);
  EXPECT_EQ(dice.max().item<int64_t>(), 6);
  EXPECT_NEAR(dice.mean().item<float>(), 3.5, 0.1);
  const Tensor wide = random_integers({100}, -(int64_t(1) << 61), int64_t(1) << 61, device);
  EXPECT_TRUE((wide < 0).any().item<bool>());
  expect_values(random_permutation(100, device).sort(), counting(100));
}

TEST_ON_DEVICES(Cases, C129_dropout) {
  device.seed(5);
  const Tensor x = ones({100000}, {.device = device});
  const Tensor y = dropout(x, 0.25);
  EXPECT_TRUE(((y == 0) | (y == 1 / 0.75f)).all().item<bool>());
  EXPECT_NEAR(y.mean().item<float>(), 1, 0.01);
  EXPECT_FALSE(all_close(y, dropout(x, 0.25)));
  EXPECT_EQ(dropout(x, 1).abs().max().item<float>(), 0);
  EXPECT_TRUE(all_close(dropout(x, 0), x));
}

// ── Printing ─────────────────────────────────────────────────────────────────────────────────────
std::string printed(const Tensor& x) { return x.text(); }

TEST(Print, floats) {
  EXPECT_EQ(printed(tensor({{1.0, 2.0}, {3.0, 4.0}})), "tensor([[1., 2.],\n        [3., 4.]])");
  EXPECT_EQ(printed(tensor(1.5)), "tensor(1.5000)");
  EXPECT_EQ(printed(tensor({0.5, -10.25})), "tensor([  0.5000, -10.2500])");
  EXPECT_EQ(printed(tensor({kNan, 1.0, kInf})), "tensor([nan, 1., inf])");
  EXPECT_EQ(printed(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(printed(tensor({1e9})), "tensor([1.0000e+09])");
  EXPECT_EQ(printed(tensor({0.0, 0.0})), "tensor([0., 0.])");
}

TEST(Print, other_dtypes_and_forms) {
  EXPECT_EQ(printed(tensor({1, -20})), "tensor([  1, -20])");
  EXPECT_EQ(printed(tensor({true, false})), "tensor([ True, False])");
  EXPECT_EQ(printed(tensor(3)), "tensor(3)");
  EXPECT_EQ(printed(tensor({1.0}, {.dtype = DType::f16})), "tensor([1.], dtype=f16)");
  EXPECT_EQ(printed(zeros({0})), "tensor([])");
  EXPECT_EQ(printed(zeros({2, 0})), "tensor([], size=[2,0])");
  EXPECT_EQ(printed(zeros({2, 1, 1})), "tensor([[[0.]],\n\n        [[0.]]])");
  const Device reference("reference");
  if (!(reference == Device())) {
    EXPECT_EQ(printed(zeros({1}, {.device = reference})),
              "tensor([0.], device=" + reference.name() + ")");
  }
}

TEST(Print, long_tensors_are_cut) {
  EXPECT_EQ(printed(arange(2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  const std::string text = printed(zeros({100, 100}));
  EXPECT_EQ(text.substr(0, 42), "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n  ");
  EXPECT_NE(text.find("\n        ...,\n"), std::string::npos);
  EXPECT_EQ(printed(arange(30)),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
}

}  // namespace
}  // namespace fornax
