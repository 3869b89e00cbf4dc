// oneDNN as flex's kernel for large products: against gemm, in every layout, cut by threads or not,
// and absent.
#include "backends/flex/onednn.h"

#include <dirent.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "backends/flex/pool.h"
#include "run.h"

namespace fornax::flex {
namespace {

constexpr ProductSize kSize{1030, 2053, 71};

std::vector<float> numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

int threads_of_process() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

struct Operands {
  explicit Operands(const ProductSize& s)
      : size(s), left(numbers(s.m * s.k, 1)), right(numbers(s.k * s.n, 2)) {}
  Matrix a(bool transposed = false) const { return matrix(left, size.m, size.k, transposed); }
  Matrix b(bool transposed = false) const { return matrix(right, size.k, size.n, transposed); }
  static Matrix matrix(const std::vector<float>& data, int64_t rows, int64_t columns,
                       bool transposed) {
    if (transposed) return {data.data(), DType::f32, 1, rows};
    return {data.data(), DType::f32, columns, 1};
  }
  std::vector<float> result() const { return std::vector<float>(size_t(size.m * size.n), NAN); }
  ProductSize size;
  std::vector<float> left, right;
};

#define NEEDS_ONEDNN() \
  if (!onednn()) GTEST_SKIP() << describe_onednn()

TEST(OneDnn, AgreesWithGemm) {
  NEEDS_ONEDNN();
  for (const ProductSize& size :
       {kSize, ProductSize{32, 2050, 2100}, ProductSize{2300, 1033, 64}, {1024, 4200, 32}}) {
    const Operands operands(size);
    for (bool a : {false, true}) {
      for (bool b : {false, true}) {
        ASSERT_TRUE(suits_onednn(size, operands.a(a), operands.b(b)));
        std::vector<float> wanted = operands.result(), got = operands.result();
        gemm(size, operands.a(a), operands.b(b), wanted.data());
        ASSERT_TRUE(onednn_product(*onednn(), size, operands.a(a), operands.b(b), got.data()));
        for (size_t i = 0; i < got.size(); i++) {
          ASSERT_NEAR(got[i], wanted[i], 2e-7 * double(size.k)) << i << " " << a << b;
        }
      }
    }
  }
}

TEST(OneDnn, MatmulOfEveryLayout) {
  std::mt19937 random(3);
  for (Style a_style : kStyles) {
    for (Style b_style : kStyles) {
      Value a = random_operand(DType::f32, {kSize.m, kSize.k}, a_style, random, -1, 1);
      Value b = random_operand(DType::f32, {kSize.k, kSize.n}, b_style, random, -1, 1);
      const Value c = run(prepare_matmul, Op::matmul, {&a, &b}, {});
      for (int64_t i = 0; i < kSize.m; i += 37) {
        for (int64_t j = 0; j < kSize.n; j++) {
          double sum = 0;
          for (int64_t p = 0; p < kSize.k; p++) {
            sum += a.numbers[size_t(i * kSize.k + p)] * b.numbers[size_t(p * kSize.n + j)];
          }
          ASSERT_NEAR(c.numbers[size_t(i * kSize.n + j)], sum, 2e-7 * double(kSize.k))
              << int(a_style) << int(b_style) << " " << i << " " << j;
        }
      }
    }
  }
}

TEST(OneDnn, RowsMayLieApart) {
  NEEDS_ONEDNN();
  const Operands wide({kSize.m, kSize.n + 9, kSize.k});
  const Matrix b{wide.right.data() + 4, DType::f32, kSize.n + 9, 1};
  ASSERT_TRUE(suits_onednn(kSize, wide.a(), b));
  std::vector<float> wanted(size_t(kSize.m * kSize.n)), got = wanted;
  gemm(kSize, wide.a(), b, wanted.data());
  ASSERT_TRUE(onednn_product(*onednn(), kSize, wide.a(), b, got.data()));
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], wanted[i], 1e-4) << i;
}

TEST(OneDnn, ThreadsDoNotChangeResults) {
  NEEDS_ONEDNN();
  const Operands operands(kSize);
  std::vector<float> many = operands.result(), one = operands.result();
  ASSERT_TRUE(onednn_product(*onednn(), kSize, operands.a(), operands.b(), many.data()));
  // A body of parallel() computes alone.
  parallel(2, 1, [&](int64_t begin, int64_t) {
    if (begin == 0) onednn_product(*onednn(), kSize, operands.a(), operands.b(), one.data());
  });
  EXPECT_EQ(many, one);
}

TEST(OneDnn, StartsNoThreads) {
  NEEDS_ONEDNN();
  const Operands operands(kSize);
  std::vector<float> result = operands.result();
  gemm(kSize, operands.a(), operands.b(), result.data());  // starts the pool
  const int threads = threads_of_process(), allowed = onednn()->threads();
  for (int i = 0; i < 3; i++) {
    onednn_product(*onednn(), kSize, operands.a(), operands.b(), result.data());
  }
  EXPECT_EQ(threads_of_process(), threads);
  EXPECT_EQ(onednn()->threads(), allowed);
}

TEST(OneDnn, TakesLargeProductsOfF32) {
  const float number = 0;
  const auto suits = [&](ProductSize size, DType dtype, int64_t a_row, int64_t a_column) {
    return suits_onednn(size, {&number, dtype, a_row, a_column}, {&number, DType::f32, size.n, 1});
  };
  EXPECT_TRUE(suits({1024, 2048, 512}, DType::f32, 512, 1));
  EXPECT_TRUE(suits({1024, 2048, 512}, DType::f32, 1, 1024));
  EXPECT_TRUE(suits({2048, 1024, 512}, DType::f32, 512, 1));
  EXPECT_TRUE(suits({8192, 8192, 32}, DType::f32, 32, 1));
  EXPECT_TRUE(suits({64, 2052, 1024}, DType::f32, 1024, 1));
  EXPECT_TRUE(suits({256, 4100, 4096}, DType::f32, 4096, 1));
  EXPECT_FALSE(suits({256, 4096, 4096}, DType::f32, 4096, 1));
  EXPECT_FALSE(suits({1023, 2048, 512}, DType::f32, 512, 1));
  EXPECT_FALSE(suits({2047, 2047, 512}, DType::f32, 512, 1));
  EXPECT_FALSE(suits({8192, 8192, 16}, DType::f32, 16, 1));
  EXPECT_FALSE(suits({1024, 2048, 63}, DType::f32, 63, 1));
  EXPECT_FALSE(suits({16, 8200, 8192}, DType::f32, 8192, 1));
  EXPECT_FALSE(suits({256, 8200, 256}, DType::f32, 256, 1));
  EXPECT_FALSE(suits({257, 4100, 4096}, DType::f32, 4096, 1));
  EXPECT_FALSE(suits({8192, 64, 4096}, DType::f32, 4096, 1));
  EXPECT_FALSE(suits({1024, 2048, 512}, DType::f16, 512, 1));
  EXPECT_FALSE(suits({1024, 2048, 512}, DType::f32, 0, 1));
  EXPECT_FALSE(suits({1024, 2048, 512}, DType::f32, 1024, 2));
  EXPECT_FALSE(suits({1024, 2048, 512}, DType::f32, -512, 1));
}

// Few rows of a: whether b's rows may be whole pages apart depends on how they are read.
TEST(OneDnn, TakesFewRowsByTheLayoutOfTheOther) {
  const float number = 0;
  const ProductSize size{64, 2048, 1024};
  const Matrix a{&number, DType::f32, 1024, 1};
  EXPECT_FALSE(suits_onednn(size, a, {&number, DType::f32, 2048, 1}));
  EXPECT_TRUE(suits_onednn(size, a, {&number, DType::f32, 2049, 1}));
  EXPECT_TRUE(suits_onednn(size, a, {&number, DType::f32, 1, 1024}));
}

TEST(OneDnn, MissingLibrary) {
  EXPECT_FALSE(open_onednn(std::array{"libdnnl.so.0"}));
  EXPECT_FALSE(open_onednn(std::array{"libm.so.6"}));  // is there, but is another
  EXPECT_FALSE(open_onednn({}));
  NEEDS_ONEDNN();
  EXPECT_TRUE(open_onednn(std::array{"libm.so.6", "libdnnl.so.3", "libdnnl.so.2"}));
}

// Settings are read once in a process, so another one has to look.
TEST(OneDnnDeathTest, SwitchedOff) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto look = [] {
    setenv("FORNAX_ONEDNN", "0", 1);
    const bool off = !onednn();
    std::fprintf(stderr, "%s\n", describe_onednn().c_str());
    std::exit(off ? 0 : 1);
  };
  EXPECT_EXIT(look(), testing::ExitedWithCode(0), "oneDNN switched off by FORNAX_ONEDNN=0");
}

}  // namespace
}  // namespace fornax::flex
