// What belongs to an anchor in its group: that it is part of it, and gives what it gives by itself.
#include <fornax/fornax.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <tuple>

#include "tests/devices.h"

namespace fornax {
namespace {

using Operands = std::vector<Tensor>;
using Function = std::function<Tensor(const Operands&)>;

Device kernels() {
  setenv("FORNAX_INTERPRETER", "1", 1);
  return Device("interpreter");
}

Tensor random(const Shape& shape, DType dtype = DType::f32) {
  return normal(shape, 0, 1, {.device = kernels()}).cast(dtype);
}

std::string groups_of(const Function& function, const Operands& operands, Tensor& result) {
  kernels().sync();
  std::string text;
  const ProfileReport report = kernels().profile([&] {
    result = function(operands);
    result.device().sync();
  });
  for (const auto& group : report.groups) text += (text.empty() ? "[" : " [") + group.ops + "]";
  return text;
}

// Each op by itself gives the same bits.
void check(const Function& function, const Operands& operands, const std::string& groups) {
  Operands eager;
  for (const Tensor& x : operands) eager.push_back(x.to(kernels().eager()));
  Tensor result;
  EXPECT_EQ(groups_of(function, operands, result), groups);
  const Tensor expected = function(eager);
  ASSERT_EQ(result.shape(), expected.shape());
  EXPECT_EQ(result.cast(DType::f64).to_vector<double>(),
            expected.cast(DType::f64).to_vector<double>());
}

TEST(Epilogue, IsPartOfTheProduct) {
  const Function layer = [](const Operands& x) { return relu(x[0].matmul(x[1]) + x[2]); };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const auto& [m, k, n] : {std::tuple(5, 7, 3), std::tuple(64, 32, 64),
                                  std::tuple(65, 16, 68), std::tuple(1, 5, 130)}) {
      check(layer, {random({m, k}, dtype), random({k, n}, dtype), random({n}, dtype)},
            "[matmul add less_equal where]");
    }
  }
}

TEST(Epilogue, ReadsWhatBroadcastsAndAnyLayout) {
  const Function residual = [](const Operands& x) { return x[0].matmul(x[1]) * 0.5 + x[2]; };
  const Tensor a = random({70, 9}), b = random({9, 66});
  for (const Tensor& c :
       {random({70, 66}), random({70, 1}), random({1, 66}), random({}),
        random({66, 70}).transpose(), random({70, 132})(slice(), slice(0, 132, 2)),
        random({71, 67})(slice(1), slice(1)), full({70, 66}, 2.5, {.device = kernels()})}) {
    check(residual, {a, b, c}, "[matmul mul add]");
  }
}

TEST(Epilogue, OfBatches) {
  const Function add = [](const Operands& x) { return x[0].matmul(x[1]) + x[2]; };
  const Tensor a = random({2, 3, 5, 8}), b = random({2, 3, 8, 6});
  for (const Shape& shape : {Shape{2, 3, 5, 6}, Shape{6}, Shape{3, 1, 6}, Shape{2, 1, 5, 1}}) {
    check(add, {a, b, random(shape)}, "[matmul add]");
  }
  // One matrix for the whole batch, with and without something that tells its members apart.
  for (const Shape& shape : {Shape{6}, Shape{4, 5, 6}, Shape{4, 1, 6}, Shape{5, 1}}) {
    check(add, {random({4, 5, 8}), random({8, 6}), random(shape)}, "[matmul add]");
  }
}

TEST(Epilogue, SeesThroughRowsThatAreSplit) {
  const Function layer = [](const Operands& x) {
    return x[0].reshape({24, 7}).matmul(x[1]).reshape({2, 3, 4, 10}) * x[2] + 1;
  };
  for (const Shape& shape : {Shape{10}, Shape{2, 3, 4, 10}, Shape{3, 1, 1}, Shape{4, 1}}) {
    const Tensor x = random({2, 3, 4, 7}), w = random({7, 10}), scale = random(shape);
    check(layer, {x, w, scale}, "[matmul mul add]");
    check(layer, {random({24, 14})(slice(), slice(0, 14, 2)), w, scale}, "[matmul mul add]");
    check(layer, {random({7, 24}).transpose(), random({10, 7}).transpose(), scale},
          "[matmul mul add]");
  }
  // What reads the product before its rows are split has another shape.
  const Function both = [](const Operands& x) {
    const Tensor product = x[0].matmul(x[1]);
    return (product + 1).reshape({2, 3, 4}) * product.reshape({2, 3, 4});
  };
  check(both, {random({6, 5}), random({5, 4})}, "[matmul add] [mul]");
}

TEST(Epilogue, KeepsWhatIsReadLaterToo) {
  Tensor before;
  const Function two = [&](const Operands& x) {
    before = x[0].matmul(x[1]) + x[2];
    return before.exp().cast(DType::f16);
  };
  const Operands operands = {random({33, 20}), random({20, 40}), random({40})};
  check(two, operands, "[matmul add exp cast]");
  Tensor result;
  groups_of(two, operands, result);
  EXPECT_EQ(before.exp().cast(DType::f16).cast(DType::f32).to_vector<float>(),
            result.cast(DType::f32).to_vector<float>());
}

TEST(Epilogue, ReadsWhatTheProductReads) {
  const Function square = [](const Operands& x) { return x[0].matmul(x[0]) - x[0]; };
  check(square, {random({34, 34})}, "[matmul sub]");
}

TEST(Epilogue, WaitsForWhatItReads) {
  // The sum is recorded after the product, and runs before it.
  const Function late = [](const Operands& x) {
    const Tensor product = x[0].matmul(x[1]);
    const Tensor scale = x[2].sum(0);
    return product * scale;
  };
  check(late, {random({12, 10}), random({10, 8}), random({5, 8})}, "[sum] [matmul mul]");
  // The sum is of the product, which so cannot wait for it.
  const Function own = [](const Operands& x) {
    const Tensor product = x[0].matmul(x[1]);
    return product * product.sum(0);
  };
  check(own, {random({12, 10}), random({10, 8})}, "[matmul] [sum mul]");
}

TEST(Epilogue, TakesWorkIntoItThatOnlyItReads) {
  const Function update = [](const Operands& x) {
    const Tensor gradient = x[0].matmul(x[1]);
    const Tensor momentum = x[2] * 0.9 + gradient * 0.1;
    return x[3] - momentum / (momentum.abs().sqrt() + 1e-8);
  };
  check(update, {random({20, 9}), random({9, 34}), random({20, 34}), random({20, 34})},
        "[matmul mul mul add abs sqrt add div sub]");
  const Function rows = [](const Operands& x) {
    const Tensor gradient = x[0].sum(0);
    return x[2] - (x[1] * 0.9 + gradient * 0.1) * 1e-3;
  };
  check(rows, {random({20, 34}), random({34}), random({34})}, "[sum mul mul add mul sub]");
  // What somebody else reads too stays by itself.
  const Function shared = [](const Operands& x) {
    const Tensor half = x[2] * 0.5;
    return x[0].matmul(half) + half;
  };
  check(shared, {random({9, 9}), random({1, 1}), random({9, 9})}, "[mul] [matmul add]");
}

TEST(Epilogue, CastsWeightsWhereTheyAreRead) {
  const Function norm = [](const Operands& x) {
    return layer_norm(x[0], 1, {.weight = x[1], .bias = x[2]});
  };
  const std::string groups =
      "[cast sum div sub square sum div add rsqrt mul cast mul cast add cast]";
  for (const int64_t rows : {40, 24}) {  // as many rows as columns make no difference
    check(norm,
          {random({rows, 24}, DType::bf16), random({24}, DType::bf16), random({24}, DType::bf16)},
          groups);
  }
  Tensor kept;
  const Function twice = [&](const Operands& x) {
    const Tensor weight = x[1].cast(DType::f32);
    kept = weight;
    return x[0].cast(DType::f32) * weight;
  };
  check(twice, {random({40, 24}, DType::bf16), random({24}, DType::bf16)}, "[cast] [cast mul]");
}

TEST(Rows, StoreWhatIsTheSameAllAlongThem) {
  for (const int64_t axis : {0, 1}) {
    for (const Shape& shape : {Shape{7, 1}, Shape{1, 130}, Shape{}}) {
      Tensor product;
      const Function sum = [&](const Operands& x) {
        product = full({7, 130}, 2.0, {.device = x[0].device()}) * x[0];
        return product.sum(axis);
      };
      const Tensor x = random(shape);
      check(sum, {x}, "[mul sum]");
      const Tensor eager = product;
      Tensor result;
      groups_of(sum, {x}, result);
      EXPECT_EQ(product.to_vector<float>(), eager.to_vector<float>());
    }
  }
}

// As the gradients of biases do: each is of a product further on.
TEST(Rows, ReductionsFarApartShareAGroup) {
  const auto layers = [](const Operands& x, Tensor y, int count) {
    for (int i = 0; i < count; i++) y = y.matmul(x[1]);
    return y;
  };
  const Function sums = [&](const Operands& x) {
    const Tensor first = layers(x, x[0], 1), a = first.sum(0);
    const Tensor b = layers(x, first, 6).sum(0);
    return (x[2] - a * 0.1) * (x[2] - b * 0.1);
  };
  const std::string products = "[matmul] [matmul] [matmul] [matmul] [matmul] [matmul] [matmul] ";
  const Operands operands = {random({20, 10}), random({10, 10}), random({10})};
  check(sums, operands, products + "[sum sum mul sub mul sub mul]");
  // What the second sum is of comes after the first one.
  const Function chain = [&](const Operands& x) {
    const Tensor first = layers(x, x[0], 1), a = first.sum(0);
    return layers(x, first * a, 6).sum(0) * a;
  };
  check(chain, operands, "[matmul] [sum mul] " + products.substr(9) + "[sum mul]");
  // Five are more than share one.
  const Function many = [&](const Operands& x) {
    Tensor y = x[0], all = x[2];
    for (int i = 0; i < 5; i++) {
      y = layers(x, y, 5);
      all = all + y.sum(0);
    }
    return all;
  };
  Tensor result;
  const std::string groups = groups_of(many, operands, result);
  EXPECT_NE(groups.find("[sum add sum add sum add sum add]"), std::string::npos) << groups;
}

TEST(Placement, HeadsAreWrittenSideBySide) {
  const Function attention = [](const Operands& x) {
    const Tensor heads = x[0].matmul(x[1]).permute({0, 2, 1, 3}).reshape({2, 5, 24});
    return heads.matmul(x[2]);
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    check(attention,
          {random({2, 3, 5, 7}, dtype), random({2, 3, 7, 8}, dtype), random({24, 6}, dtype)},
          "[matmul] [matmul]");
  }
  // Somebody else reads them as they are.
  const Function both = [](const Operands& x) {
    const Tensor y = x[0].matmul(x[1]);
    return y.permute({1, 0, 2}).reshape({5, 24}).exp().sum() * y.sum();
  };
  check(both, {random({3, 5, 7}), random({3, 7, 8})}, "[matmul] [sum] [copy] [exp sum mul]");
}

TEST(Placement, PartsAreMadeWhereTheyGo) {
  const Function joined = [](const Operands& x) {
    const Tensor product = x[0].matmul(x[1]), turned = x[2].matmul(x[3]).transpose();
    const Tensor scaled = x[4] / x[4].sum(1, {.keep_dims = true});
    return cat({product, x[4].exp(), turned, scaled.unsqueeze(1).squeeze(1)}, 1) * 2;
  };
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const int64_t width : {4, 5, 40}) {
      check(joined,
            {random({34, 9}, dtype), random({9, width}, dtype), random({width, 9}, dtype),
             random({9, 34}, dtype), random({34, width}, dtype)},
            width == 5 ? "[matmul] [matmul] [sum div] [exp] [cat] [mul]"  // not aligned
                       : "[matmul] [matmul] [sum div] [exp] [mul]");
    }
  }
  // A product of a batch by one matrix is computed as one of more rows.
  const Function batch = [](const Operands& x) {
    return cat({x[0].matmul(x[1]) + x[2], x[0].exp()}, 1) * 2;
  };
  check(batch, {random({3, 5, 8}), random({8, 8}), random({8})}, "[matmul add] [exp] [cat] [mul]");
  // Twice the same part, and one that is kept.
  Tensor kept;
  const Function shared = [&](const Operands& x) {
    const Tensor y = x[0].exp();
    kept = x[0].sin();
    return cat({cat({y, y}, 0), cat({kept, x[0].cos()}, 0)}, 1) * 2;
  };
  check(shared, {random({6, 5})}, "[exp sin cos] [cat] [cat] [cat] [mul]");
}

TEST(Positions, AreComputedWhereTheyAreRead) {
  const auto positions = [](int64_t count, const Operands& x, DType dtype = DType::i64) {
    return arange(3, 3 + 2 * count, 2, {.dtype = dtype, .device = x[0].device()});
  };
  for (const int64_t count : {7, 32}) {
    const Function one_hot = [&](const Operands& x) {
      return where(
          positions(count, x).unsqueeze(0) == x[0].sum(1, {.keep_dims = true}).cast(DType::i64),
          x[0], 0.5);
    };
    check(one_hot, {random({9, count})}, "[sum cast arange equal where]");
    const Function all = [&](const Operands& x) { return x[0] * positions(count, x, DType::f32); };
    check(all, {random({9, count})}, "[arange mul]");
    check(all, {random({count, 40}).transpose()}, "[arange mul]");
    const Function converted = [&](const Operands& x) {
      return x[0] * positions(count, x).cast(DType::f32);
    };
    check(converted, {random({9, count})}, "[arange cast mul]");
    const Function columns = [&](const Operands& x) {
      return (x[0] * positions(count, x, DType::f32)).sum(0, {.keep_dims = true}) -
             positions(count, x, DType::f32);
    };
    check(columns, {random({9, count})}, "[arange mul sum arange sub]");
    const Function rows = [&](const Operands& x) {
      return (x[0] * positions(count, x, DType::f32)).sum(1);
    };
    check(rows, {random({9, count})}, "[arange mul sum]");
    const Function product = [&](const Operands& x) {
      return x[0].matmul(x[1]) + positions(count, x, DType::f32);
    };
    check(product, {random({9, 5}), random({5, count})}, "[matmul arange add]");
    // Along another axis, backwards, and for somebody who keeps them.
    const Function down = [&](const Operands& x) {
      return x[0] * positions(9, x, DType::f32).unsqueeze(1);
    };
    check(down, {random({9, count})}, "[arange] [mul]");
    const Function back = [&](const Operands& x) {
      return x[0] * positions(count, x, DType::f32).flip({0});
    };
    check(back, {random({9, count})}, "[arange] [mul]");
    Tensor kept;
    const Function keeps = [&](const Operands& x) {
      kept = positions(count, x, DType::f32);
      return x[0] * kept;
    };
    check(keeps, {random({9, count})}, "[arange] [mul]");
  }
}

TEST(Epilogue, WritesOverWhatItReads) {
  const Tensor a = random({70, 9}), b = random({9, 66});
  const auto step = [&](const Tensor& x) { return x * 0.9 - a.matmul(b); };
  Tensor eager = random({70, 66}), x = eager + 0;
  kernels().sync();
  const size_t in_use = kernels().memory().in_use;
  for (int i = 0; i < 3; i++) {
    x = step(x);
    kernels().sync();
    EXPECT_EQ(kernels().memory().in_use, in_use);
    eager = (eager.to(kernels().eager()) * 0.9 - a.to(kernels().eager()).matmul(b));
  }
  EXPECT_EQ(x.to_vector<float>(), eager.to_vector<float>());
}

// No thread reads what another one writes, which the interpreter would tell.
TEST(Epilogue, WritesOverSingleRowsAndColumns) {
  for (const auto& [m, n] : {std::pair(1, 1), std::pair(1, 70), std::pair(70, 1)}) {
    const Tensor a = random({m, 9}), b = random({9, n}), start = random({m, n});
    const Tensor expected =
        start.to(kernels().eager()) * 0.9 - a.to(kernels().eager()).matmul(b.to(kernels().eager()));
    Tensor x = start + 0;
    kernels().sync();
    x = x * 0.9 - a.matmul(b);
    EXPECT_EQ(x.to_vector<float>(), expected.to_vector<float>());
  }
}

}  // namespace
}  // namespace fornax
