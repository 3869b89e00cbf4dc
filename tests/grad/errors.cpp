// What goes wrong with functions of the user: empty ones, what they return, errors within them.
#include "tests/grad/check.h"

namespace fornax {
namespace {

Many same(const Many& in) { return in; }

TEST_ON_DEVICES(GradErrors, of_empty_functions) {
  const Tensor x = tracked({1, 2}, device);
  const auto value = ErrorKind::value;
  expect_error_here(value, "mine: the op has no forward", [&] {
    (void)CustomOp{"mine", {}, {}}({x});
  });
  const CustomOp forward_only{"mine", [](const Many& in) { return Many{in[0] * 2}; }, {}};
  expect_values(forward_only({x})[0], {2, 4});
  expect_error_here(value, "mine: the op has no backward",
                    [&] { forward_only({x})[0].sum().backward(); });
  expect_error_here(value, "on_gradient: the hook is empty", [&] { on_gradient(x, {}); });
  expect_error_here(value, "checkpoint: the function is empty", [&] { (void)checkpoint({})({x}); });
  (x * 2).sum().backward();
  expect_values(x.grad(), {2, 2});
}

TEST_ON_DEVICES(GradErrors, of_what_hooks_return) {
  const Tensor x = tracked({1, 2}, device), y = x * 3, z = x * 3;
  on_gradient(y, [](const Tensor& g) { return cat({g, g}); });
  expect_error_here(ErrorKind::shape, "the hook returned f32[4] for a gradient that is f32[2]",
                    [&] { y.sum().backward(); });
  on_gradient(z, [](const Tensor& g) { return g.cast(DType::f64); });
  expect_error_here(ErrorKind::shape, "the hook returned f64[2] for a gradient that is f32[2]",
                    [&] { z.sum().backward(); });
  EXPECT_FALSE(x.grad().defined());
}

TEST(GradErrors, of_gradients_on_other_devices) {
  const Device cpu("cpu"), other("reference");
  const Tensor x = tracked({1, 2}, cpu), there = ones({2}, {.device = other});
  const auto expect_both = [&](const char* who, FunctionRef<void()> act) {
    const std::string message = message_of(ErrorKind::device, act);
    expect_words(message, who);
    expect_words(message, "a gradient is on reference:0, its value on cpu:0");
  };
  expect_both("set_grad:", [&] { x.set_grad(there); });
  expect_both("backward:", [&] { (x * 2).backward(there); });
  const CustomOp op{"mine", same,
                    [&](const Many&, const Many&, const Many&) { return Many{there}; }};
  expect_both("mine:", [&] { op({x})[0].sum().backward(); });
  const Tensor y = x * 3;
  on_gradient(y, [&](const Tensor&) { return there; });
  expect_both("on_gradient:", [&] { y.sum().backward(); });
}

TEST_ON_DEVICES(GradErrors, within_functions_name_their_own_op_and_line) {
  const Tensor x = tracked({1, 2}, device);
  const auto wrong = [](const Many& in) {
    return Many{in[0].matmul(ones({3, 3}, {.device = in[0].device()}))};
  };
  const auto gradient = [](const Many&, const Many&, const Many& g) {
    return Many{g[0].reshape({7})};
  };
  const CustomOp forward{"mine", wrong, gradient}, backward{"mine", same, gradient};
  expect_error_here(ErrorKind::shape, "matmul: ", [&] { (void)forward({x}); });
  expect_error_here(ErrorKind::shape, "reshape: ", [&] { backward({x})[0].sum().backward(); });
  expect_error_here(ErrorKind::shape, "matmul: ", [&] { (void)checkpoint(wrong)({x}); });
  const Tensor y = x * 3;
  on_gradient(y, [](const Tensor& g) { return g.reshape({7}); });
  expect_error_here(ErrorKind::shape, "reshape: ", [&] { y.sum().backward(); });
  (x * 2).sum().backward();
  expect_values(x.grad(), {2, 2});
}

}  // namespace
}  // namespace fornax
