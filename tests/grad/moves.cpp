// Gradients through views, indexing, joining, products and broadcasting, and in every float dtype.
#include "tests/grad/check.h"

namespace fornax {
namespace {

using Mover = Tensor (*)(const Tensor&);

TEST_ON_DEVICES(Differences, views) {
  const std::pair<const char*, Mover> movers[] = {
      {"reshape",
       [](const Tensor& x) {
         return x.reshape({4, 3});
       }},
      {"transpose", [](const Tensor& x) { return x.transpose(); }},
      {"permute",
       [](const Tensor& x) {
         return x.permute({2, 0, 1});
       }},
      {"expand",
       [](const Tensor& x) {
         return x.sum(1, {.keep_dims = true}).expand({5, 2, 3, 2});
       }},
      {"repeat",
       [](const Tensor& x) {
         return x.repeat({2, 1, 3});
       }},
      {"flip",
       [](const Tensor& x) {
         return x.flip({0, 2});
       }},
      {"roll", [](const Tensor& x) { return x.roll(4, 1); }},
      {"narrow", [](const Tensor& x) { return x.narrow(1, 1, 2); }},
      {"narrow to nothing", [](const Tensor& x) { return x.narrow(1, 1, 0); }},
      {"select", [](const Tensor& x) { return x.select(1, 2); }},
      {"split", [](const Tensor& x) { return x.split(2, 1)[0] * 2; }},
      {"chunk", [](const Tensor& x) { return x.chunk(2, 1)[1]; }},
      {"pad",
       [](const Tensor& x) {
         return x.pad({{1, 2}, {0, 1}}, 3);
       }},
      {"crop",
       [](const Tensor& x) {
         return x.pad({{-1, 1}, {2, -1}});
       }},
      {"unfold", [](const Tensor& x) { return x.unfold(1, 2, 1); }},
      {"diagonal", [](const Tensor& x) { return x.diagonal(); }},
      {"contiguous", [](const Tensor& x) { return x.transpose().contiguous(); }},
      {"unsqueeze", [](const Tensor& x) { return x.unsqueeze(1).squeeze(); }},
      {"steps", [](const Tensor& x) { return x(slice(none, none, -1), slice(0, none, 2)); }},
      {"one and new", [](const Tensor& x) { return x(1, new_axis, ellipsis, -1); }},
      {"steps of steps",
       [](const Tensor& x) { return x.flatten()(slice(10, 1, -3))(slice(1, 3)); }},
  };
  for (const auto& [name, mover] : movers) {
    const Body body = [&, mover = mover](const Many& in) { return mover(in[0]).square(); };
    check_twice(name, body, {scattered({2, 3, 2}, device)});
    const Body of_view = [&, mover = mover](const Many& in) {
      return mover(in[0].permute({2, 1, 0})(slice(0, none, 2)).transpose(0, 2)).exp();
    };
    check_gradients(name, of_view, {scattered({2, 3, 4}, device)});
  }
}

TEST_ON_DEVICES(Differences, indexing) {
  const Tensor rows = integers({1, 0, 1}, device);
  const Tensor index = integers({0, 1, 1, 3, 0, 0}, device).reshape({2, 3});
  const Many two = {scattered({2, 4}, device), scattered({2, 3}, device, 2)};
  const auto check = [&](const char* name, auto function) {
    check_twice(
        name, [&](const Many& in) { return function(in[0], in[1]).square(); }, two);
  };
  check("gather", [&](const Tensor& x, const Tensor& v) { return x.gather(1, index) * v; });
  check("take", [&](const Tensor& x, const Tensor& v) { return x.take(rows) * v.sum(); });
  check("positions", [&](const Tensor& x, const Tensor& v) { return x(rows, rows) * v(0); });
  check("scatter_add",
        [&](const Tensor& x, const Tensor& v) { return x.scatter_add(1, index, v); });
  check("scatter", [&](const Tensor& x, const Tensor& v) { return x.scatter(1, index, v); });
  check("scatter_max",
        [&](const Tensor& x, const Tensor& v) { return x.scatter_max(1, index, v); });
  check("scatter_min",
        [&](const Tensor& x, const Tensor& v) { return x.scatter_min(1, index, v); });
  check("mask", [&](const Tensor& x, const Tensor& v) { return x(x.detach() > 0) * v.mean(); });
  check("masked_fill",
        [&](const Tensor& x, const Tensor& v) { return x.masked_fill(x.detach() > 0, v(0, 1)); });
  check("where", [&](const Tensor& x, const Tensor& v) {
    return where(x.detach() > 0, x, v(0, new_axis, 0));
  });
  check("assignment", [&](const Tensor& x, const Tensor& v) {
    Tensor y = x * 1;
    y.at(slice(0, 2), slice(1)) = v;
    y.at(1, -1) = v(0, 0);
    return y;
  });
  check("added in place", [&](const Tensor& x, const Tensor& v) {
    Tensor y = x * 1;
    y.at(rows, slice(0, 3)) += v(0);
    y.at(slice(none, none, 2), 1) *= v(1, slice(0, 1));
    return y;
  });
  check("its own part", [&](const Tensor& x, const Tensor& v) {
    Tensor y = x * v.sum();
    y.at(slice(), slice(1)) = y(slice(), slice(0, -1));
    return y;
  });
}

TEST_ON_DEVICES(Differences, joining_and_products) {
  const Tensor a = scattered({2, 3}, device), b = scattered({2, 3}, device, 2);
  const auto two = [&](const char* name, auto function, const Tensor& x, const Tensor& y) {
    check_twice(name, [&](const Many& in) { return function(in[0], in[1]); }, {x, y});
  };
  two(
      "cat",
      [](const Tensor& x, const Tensor& y) {
        return cat({x, y.square(), x}, 1);
      },
      a, b);
  two(
      "stack",
      [](const Tensor& x, const Tensor& y) {
        return stack({x, y.exp()}, 1);
      },
      a, b);
  two(
      "cat with nothing",
      [](const Tensor& x, const Tensor& y) {
        return cat({x, y}, 0).exp();
      },
      a, scattered({0, 3}, device));
  const auto product = [](const Tensor& x, const Tensor& y) { return x.matmul(y); };
  two("matmul", product, a, scattered({3, 2}, device));
  two("batched", product, scattered({2, 1, 2, 3}, device), scattered({3, 3, 1}, device));
  two("vectors", product, scattered({3}, device), scattered({3}, device, 2));
  two("row", product, scattered({3}, device), scattered({2, 3, 2}, device, 2));
  two("column", product, scattered({2, 2, 3}, device), scattered({3}, device, 2));
  two("empty inside", product, scattered({2, 0}, device), scattered({0, 3}, device));
  two(
      "transposed", [](const Tensor& x, const Tensor& y) { return x.transpose().matmul(y); }, a, b);
  two(
      "times a transpose", [](const Tensor& x, const Tensor& y) { return x.matmul(y.transpose()); },
      a, b);
  two(
      "transposes in a batch",
      [](const Tensor& x, const Tensor& y) { return x.transpose().matmul(y.transpose()); },
      scattered({2, 3, 2}, device), scattered({2, 4, 3}, device, 2));
  two(
      "outer", [](const Tensor& x, const Tensor& y) { return x.outer(y); }, scattered({3}, device),
      scattered({2}, device, 2));
  two(
      "dot", [](const Tensor& x, const Tensor& y) { return x.dot(y); }, scattered({3}, device),
      scattered({3}, device, 2));
}

TEST_ON_DEVICES(Differences, broadcasting) {
  const std::pair<Shape, Shape> pairs[] = {{{2, 3}, {3}},      {{2, 1}, {1, 3}}, {{}, {2, 2}},
                                           {{1}, {2, 1, 2}},   {{1, 1}, {}},     {{2, 0}, {1}},
                                           {{1, 3}, {2, 2, 1}}};
  const std::pair<const char*, Tensor (*)(const Operand&, const Operand&)> ops[] = {
      {"add", add},         {"sub", sub},         {"mul", mul},     {"div", div},
      {"maximum", maximum}, {"minimum", minimum}, {"atan2", atan2}, {"remainder", remainder},
      {"fmod", fmod}};
  for (const auto& [a, b] : pairs) {
    for (const auto& [name, op] : ops) {
      const Body body = [op = op](const Many& in) { return op(in[0], in[1]); };
      check_gradients(name, body, {scattered(a, device), scattered(b, device, 5)}, 1e-5);
    }
    check_twice(
        "pow", [](const Many& in) { return pow(in[0].abs(), in[1]); },
        {scattered(a, device), scattered(b, device, 2)}, 1e-4);
  }
}

TEST_ON_DEVICES(HigherDerivatives, of_a_polynomial) {
  Tensor x = doubles({2, -1}, {2}, device).require_grad();
  Tensor y = x.pow(4) + x * x * x * 2;
  y = grad({y.sum()}, {x}, {.create_graph = true})[0];
  expect_values(y, {56, 2}, 1e-9);  // 4x^3 + 6x^2
  y = grad({y.sum()}, {x}, {.create_graph = true})[0];
  expect_values(y, {72, 0}, 1e-9);  // 12x^2 + 12x
  y = grad({y.sum()}, {x}, {.create_graph = true})[0];
  expect_values(y, {60, -12}, 1e-9);  // 24x + 12
  y = grad({y.sum()}, {x}, {.create_graph = true})[0];
  expect_values(y, {24, 24}, 1e-9);
  y = grad({y.sum()}, {x}, {.create_graph = true})[0];
  expect_values(y, {0, 0}, 1e-9);
}

TEST_ON_DEVICES(HigherDerivatives, third_of_chains) {
  const auto third = [&](const char* name, const Body& body, const Many& in) {
    check_gradients(name, gradient_body(gradient_body(body)), in, 2e-5);
  };
  third("softmax log", [](const Many& in) { return softmax(in[0]).log().exp() * in[0]; },
        {scattered({4}, device)});
  third("matmul", [](const Many& in) { return in[0].matmul(in[1]).tanh().matmul(in[0]); },
        {scattered({2, 2}, device), scattered({2, 2}, device, 2)});
  third("conv2d", [](const Many& in) { return conv2d(in[0], in[1]).sin(); },
        {scattered({1, 1, 3, 3}, device), scattered({1, 1, 2, 2}, device, 2)});
  third("max_pool2d", [](const Many& in) { return max_pool2d(in[0], 2).exp(); },
        {scattered({1, 1, 4, 2}, device)});
  third("layer_norm", [](const Many& in) { return layer_norm(in[0]); },
        {scattered({2, 3}, device)});
}

TEST_ON_DEVICES(HigherDerivatives, a_gradient_penalty_reaches_the_parameters) {
  const Tensor w = doubles({0.5, -1, 2, 1}, {2, 2}, device);
  const Body penalty = [&](const Many& in) {
    const Tensor x = scattered({3, 2}, device).require_grad();
    const Tensor y = x.matmul(in[0]).tanh().sum();
    return grad({y}, {x}, {.create_graph = true})[0].square().sum();
  };
  check_gradients("penalty", penalty, {w});
}

TEST_ON_DEVICES(DTypes, gradients_have_the_dtype_of_their_values) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    const double tolerance = dtype == DType::bf16 ? 2e-2 : dtype == DType::f16 ? 3e-3 : 1e-5;
    const Tensor x = from(std::vector<double>{0.5, -1.25, 2}, device).cast(dtype).require_grad();
    const Tensor y = (x.exp() * x).sum();
    y.backward();
    EXPECT_EQ(x.grad().dtype(), dtype);
    std::vector<double> wanted;
    for (double v : {0.5, -1.25, 2.0}) wanted.push_back(std::exp(v) * (v + 1));
    expect_values(x.grad(), wanted, tolerance);
    const Tensor mixed = (x.cast(DType::f32) * 3).sum() + softmax(x).cast(DType::f64)(1);
    mixed.backward();
    EXPECT_EQ(x.grad().dtype(), dtype);
  }
}

TEST_ON_DEVICES(DTypes, a_sum_of_many_halves_has_the_gradient_one) {
  const Tensor x = ones({70000}, {.dtype = DType::f16, .device = device}).require_grad();
  x.mean().backward();
  EXPECT_NEAR(x.grad()(5).item<double>() * 70000, 1, 0.02);
}

}  // namespace
}  // namespace fornax
