// matmul against plain loops: shapes around the tiles' edges, every layout, every number type.
#include "backends/flex/gemm.h"
#include "backends/flex/pool.h"
#include "run.h"

namespace fornax::flex {
namespace {

std::vector<double> product(const Value& a, const Value& b) {
  const Shape& s = a.type.shape;
  const int rank = s.rank();
  const int64_t m = s[rank - 2], k = s[rank - 1], n = b.type.shape[rank - 1];
  int64_t batches = 1;
  for (int i = 0; i < rank - 2; i++) batches *= s[i];
  std::vector<double> c(size_t(batches * m * n));
  for (int64_t q = 0; q < batches; q++) {
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++) {
          sum += a.numbers[size_t((q * m + i) * k + p)] * b.numbers[size_t((q * k + p) * n + j)];
        }
        c[size_t((q * m + i) * n + j)] = sum;
      }
    }
  }
  return c;
}

void check(DType dtype, const Shape& a_shape, const Shape& b_shape, Style a_style, Style b_style,
           std::mt19937& random) {
  Value a = random_operand(dtype, a_shape, a_style, random, -2, 2);
  Value b = random_operand(dtype, b_shape, b_style, random, -2, 2);
  const Value c = run(prepare_matmul, Op::matmul, {&a, &b}, {});
  expect_near(c, product(a, b), double(a_shape[a_shape.rank() - 1]),
              text_of(a.type) + " x " + text_of(b.type) + " styles " +
                  std::to_string(int(a_style)) + std::to_string(int(b_style)));
}

TEST(Matmul, ShapesAroundTheTiles) {
  std::mt19937 random(1);
  for (DType dtype : {DType::f32, DType::f64}) {
    for (int64_t m : {1, 2, 5, 6, 7, 13, 29}) {
      for (int64_t n : {1, 3, 15, 16, 17, 33, 70}) {
        for (int64_t k : {1, 2, 7, 64, 131}) {
          check(dtype, {m, k}, {k, n}, Style::plain, Style::plain, random);
        }
      }
    }
  }
}

TEST(Matmul, EveryLayout) {
  std::mt19937 random(2);
  for (Style a : kStyles) {
    for (Style b : kStyles) {
      for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32}) {
        check(dtype, {11, 37}, {37, 150}, a, b, random);
        check(dtype, {3, 2, 5, 9}, {3, 2, 9, 4}, a, b, random);
        check(dtype, {1, 40}, {40, 33}, a, b, random);
        check(dtype, {70, 40}, {40, 1}, a, b, random);
      }
    }
  }
}

TEST(Matmul, LargeEnoughForEveryBlock) {
  std::mt19937 random(3);
  check(DType::f32, {307, 523}, {523, 271}, Style::plain, Style::plain, random);
  check(DType::f32, {307, 523}, {523, 271}, Style::reversed_axes, Style::reversed_axes, random);
  check(DType::f64, {151, 300}, {300, 2100}, Style::plain, Style::plain, random);
  check(DType::f16, {40, 600}, {600, 90}, Style::plain, Style::reversed_axes, random);
}

// All columns of b stay in the first-level cache: a panel of a is multiplied with all of them.
TEST(Matmul, SmallRightSides) {
  std::mt19937 random(10);
  for (DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [n, k] : {std::pair{17, 129}, {32, 128}, {47, 64}, {64, 64}, {130, 33}}) {
      for (int64_t m : {1, 6, 25, 128}) {
        for (Style a : {Style::plain, Style::reversed_axes, Style::spaced}) {
          check(dtype, {m, k}, {k, n}, a, Style::plain, random);
          check(dtype, {m, k}, {k, n}, a, Style::reversed_axes, random);
        }
      }
    }
  }
}

TEST(Matmul, WhatIsNotFiniteStaysInItsRowAndColumn) {
  constexpr int64_t kM = 25, kN = 39, kK = 64, kRow = 7, kColumn = 38;
  for (const bool transposed : {false, true}) {
    std::vector<float> a(size_t(kM * kK), 1), b(size_t(kK * kN), 1), c(size_t(kM * kN));
    const Matrix left{a.data(), DType::f32, transposed ? 1 : kK, transposed ? kM : 1};
    const Matrix right{b.data(), DType::f32, transposed ? 1 : kN, transposed ? kK : 1};
    a[size_t(kRow * left.row + 3 * left.column)] = NAN;
    b[size_t(5 * right.row + kColumn * right.column)] = INFINITY;
    gemm(ProductSize{kM, kN, kK}, left, right, c.data());
    for (int64_t i = 0; i < kM; i++) {
      for (int64_t j = 0; j < kN; j++) {
        const float sum = c[size_t(i * kN + j)];
        if (i == kRow) {
          EXPECT_TRUE(std::isnan(sum)) << i << " " << j;
        } else {
          EXPECT_EQ(sum, j == kColumn ? INFINITY : float(kK)) << i << " " << j;
        }
      }
    }
  }
}

// What is packed of a at once: several rounds of its rows, and of its depth.
TEST(Matmul, SeveralRounds) {
  std::mt19937 random(7);
  check(DType::f32, {8200, 130}, {130, 200}, Style::reversed_axes, Style::plain, random);
  check(DType::f64, {1030, 1100}, {1100, 61}, Style::reversed_axes, Style::plain, random);
}

// Rows of a matrix that is too large for the caches are read in order.
TEST(Matmul, FewRows) {
  std::mt19937 random(8);
  for (DType dtype : {DType::f32, DType::f64}) {
    for (int64_t m : {1, 2, 3, 4, 5, 6, 12, 31, 32, 33}) {
      check(dtype, {m, 131}, {131, 1301}, Style::plain, Style::plain, random);
    }
    check(dtype, {5, 600}, {600, 67}, Style::reversed_axes, Style::plain, random);
    check(dtype, {8, 70}, {70, 512}, Style::negative, Style::plain, random);
    check(dtype, {7, 3}, {3, 9000}, Style::plain, Style::plain, random);
    check(dtype, {7, 130}, {130, 260}, Style::plain, Style::spaced, random);
    check(dtype, {7, 130}, {130, 260}, Style::plain, Style::reversed_axes, random);
  }
  check(DType::f32, {4, 1030}, {1030, 2100}, Style::plain, Style::plain, random);  // in no cache
}

TEST(Matmul, ThreadsDoNotChangeResults) {
  for (const ProductSize& size : {ProductSize{8, 900, 333}, ProductSize{300, 290, 600},
                                  ProductSize{1, 3000, 500}, ProductSize{700, 40, 1000}}) {
    std::mt19937 random(9);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> a(size_t(size.m * size.k)), b(size_t(size.k * size.n));
    for (std::vector<float>* operand : {&a, &b}) {
      for (float& number : *operand) number = uniform(random);
    }
    const Matrix left{a.data(), DType::f32, size.k, 1}, right{b.data(), DType::f32, size.n, 1};
    std::vector<float> many(size_t(size.m * size.n), NAN), one = many;
    gemm(size, left, right, many.data());
    // A body of parallel() computes alone.
    parallel(2, 1, [&](int64_t begin, int64_t) {
      if (begin == 0) gemm(size, left, right, one.data());
    });
    EXPECT_EQ(many, one) << size.m << " " << size.n << " " << size.k;
  }
}

TEST(Matmul, EmptySizes) {
  std::mt19937 random(4);
  for (DType dtype : {DType::f32, DType::i8, DType::bf16}) {
    check(dtype, {0, 3}, {3, 4}, Style::plain, Style::plain, random);
    check(dtype, {3, 0}, {0, 4}, Style::plain, Style::plain, random);
    check(dtype, {3, 4}, {4, 0}, Style::plain, Style::plain, random);
    check(dtype, {0, 3, 4}, {0, 4, 5}, Style::plain, Style::plain, random);
  }
}

TEST(Matmul, BatchesThatShareTheRightSide) {
  std::mt19937 random(5);
  // Style repeated makes the first axis one of stride 0.
  check(DType::f32, {6, 4, 10}, {6, 10, 20}, Style::plain, Style::repeated, random);
  check(DType::f32, {6, 1, 10}, {6, 10, 20}, Style::plain, Style::repeated, random);
  check(DType::f32, {40, 8, 8}, {40, 8, 8}, Style::plain, Style::plain, random);
}

TEST(Matmul, WholeNumbersWrap) {
  Value a = operand(DType::u8, {2, 3}, Style::plain, [](int64_t i) { return double(200 + i); });
  Value b = operand(DType::u8, {3, 1}, Style::plain, [](int64_t i) { return double(100 + i); });
  const Value c = run(prepare_matmul, Op::matmul, {&a, &b}, {});
  std::vector<double> wanted = product(a, b);
  for (double& number : wanted) number = double(int64_t(number) % 256);
  expect_same(c, wanted, "u8");
}

TEST(Matmul, NumbersAndSmallFloats) {
  std::mt19937 random(6);
  Value a = number_operand(DType::f32, {5, 7}, 0.5);
  Value b = random_operand(DType::f32, {7, 9}, Style::plain, random);
  expect_near(run(prepare_matmul, Op::matmul, {&a, &b}, {}), product(a, b), 7, "number");
  check(DType::f8e4m3, {5, 7}, {7, 9}, Style::plain, Style::plain, random);
  check(DType::f8e5m2, {5, 7}, {7, 1}, Style::plain, Style::plain, random);
}

}  // namespace
}  // namespace fornax::flex
