// Gradients of values of which several slices were read.
#include "tests/grad/check.h"

namespace fornax {
namespace {

using Reader = Tensor (*)(const Tensor&);

TEST_ON_DEVICES(Parts, of_one_value) {
  const std::pair<const char*, Reader> readers[] = {
      {"all",
       [](const Tensor& x) { return x.narrow(1, 0, 2) * x.narrow(1, 4, 2) * x.narrow(1, 2, 2); }},
      {"with a gap", [](const Tensor& x) { return x.select(1, 4) * x.select(1, 1); }},
      {"that overlap", [](const Tensor& x) { return x.narrow(1, 0, 5) * x.narrow(1, 1, 5); }},
      {"one of them twice",
       [](const Tensor& x) { return x.select(1, 0) * x.select(1, 0).exp() * x.select(1, 3); }},
      {"along two axes",
       [](const Tensor& x) { return x.select(1, 2).sum() * x.select(0, 1) * x.select(0, 0); }},
      {"beside the whole",
       [](const Tensor& x) { return x.narrow(1, 1, 1) * x * x.narrow(1, 0, 1); }},
      {"of a permuted one",
       [](const Tensor& x) {
         const Tensor y = x.permute({1, 2, 0});
         return y.narrow(0, 0, 3) * y.narrow(0, 3, 3);
       }},
      {"of a permuted one that is read too",
       [](const Tensor& x) {
         const Tensor y = x.permute({1, 2, 0});
         return y.narrow(0, 0, 1) * y * y.narrow(0, 3, 1);
       }},
      {"in steps",
       [](const Tensor& x) { return x(0, slice(0, none, 2)) * x(1, slice(5, none, -2)); }},
  };
  for (const auto& [name, reader] : readers) {
    const Body body = [reader = reader](const Many& in) { return reader(in[0]); };
    check_twice(name, body, {scattered({2, 6, 2}, device)});
  }
}

TEST_ON_DEVICES(Parts, are_put_together_at_once) {
  const Tensor x = scattered({4, 60, 5}, device).require_grad();
  const ProfileReport report = device.profile([&] {
    const Tensor y = x.reshape({4, 3, 20, 5}).permute({1, 0, 2, 3});
    (y.select(0, 0) * y.select(0, 1) + y.select(0, 2)).sum().backward();
    (void)x.grad().to_vector<double>();
  });
  std::vector<std::string> moves;
  for (const auto& group : report.groups) {
    if (group.ops == "cat" || group.ops == "copy" || group.ops == "pad") moves.push_back(group.ops);
  }
  EXPECT_EQ(moves, std::vector<std::string>{"cat"});
}

TEST_ON_DEVICES(Parts, are_seen_together) {
  const Tensor x = tracked({1, 2, 3, 4}, device);
  const Tensor y = x.reshape({2, 2}).transpose();
  std::vector<double> seen;
  on_gradient(y, [&](const Tensor& g) {
    seen = g.to_vector<double>();
    return g * 2;
  });
  (y.select(0, 0) * y.select(0, 1) * floats({1, 10}, device)).sum().backward();
  EXPECT_EQ(seen, (std::vector<double>{2, 40, 1, 30}));
  expect_values(x.grad(), {4, 2, 80, 60});
}

}  // namespace
}  // namespace fornax
