// scatter of rows: every element is what a loop over the values gives that goes through them in
// their order, to the last bit.
#include <cmath>
#include <limits>
#include <random>

#include "graph/attributes.h"
#include "tests/cube/run.h"
#include "tests/errors.h"

namespace fornax::cube {
namespace {

struct Problem {
  ScatterMode mode = ScatterMode::add;
  DType dtype = DType::f32, index = DType::i64;
  int64_t batch = 1, rows = 300, count = 700, columns = 40;
  int most = 300;             // places are below it
  bool numbers = false;       // the base is a number
  int64_t columns_apart = 1;  // from column to column of the values
};

class ScatterRows : public CubeTest {
 protected:
  Tensor random_tensor(const Type& type, double low, double high) {
    Tensor tensor = empty(type);
    std::uniform_real_distribution<double> uniform(low, high);
    for (int64_t i = 0; i < type.shape.element_count(); i++) {
      store(type.dtype, tensor.buffer->data, i, word_of(type.dtype, uniform(random_)));
    }
    return tensor;
  }
  // Places of the batch's rows, which repeat along the columns.
  Tensor places(const Problem& p) {
    Tensor index = empty({p.index, {p.batch, p.count}});
    for (int64_t i = 0; i < p.batch * p.count; i++) {
      store(p.index, index.buffer->data, i,
            word_of(p.index, int64_t(random_() % uint64_t(p.most))));
    }
    index.type.shape = {p.batch, p.count, p.columns};
    index.layout = {0, {p.count, 1, 0}};
    return index;
  }
  std::vector<double> scattered(const Problem& p, const Tensor& base, const Tensor& index,
                                const Tensor& put) {
    Case c;
    const int from = p.numbers ? c.number(p.dtype, 0.5, base.type.shape) : c.input(base);
    c.anchor(Op::scatter, {from, c.input(index), c.input(put)}, ScatterSettings::pack(1, p.mode));
    return values(run(c)[0]);
  }
  static float combine(ScatterMode mode, float a, float b) {
    switch (mode) {
      case ScatterMode::add:
        return a + b;
      case ScatterMode::multiply:
        return a * b;
      case ScatterMode::minimum:
        return std::min(a, b);
      default:
        return std::max(a, b);
    }
  }
  double rounded(DType dtype, double value) {
    return scalar_of(dtype, word_of(dtype, value)).as_double();
  }

  void check(const Problem& p) {
    const Shape shape{p.batch, p.rows, p.columns};
    const Tensor base = random_tensor({p.dtype, shape}, 0.9, 1.1), index = places(p);
    Tensor put =
        random_tensor({p.dtype, {p.batch, p.count, p.columns * p.columns_apart}}, 0.9, 1.1);
    put.type.shape = index.type.shape;
    put.layout = {0, {p.count * p.columns * p.columns_apart, p.columns * p.columns_apart, 1}};
    std::vector<float> wanted;
    for (const double x : values(base)) wanted.push_back(p.numbers ? 0.5f : float(x));
    const auto where = values(index), what = values(put);
    for (size_t i = 0; i < what.size(); i++) {
      const size_t columns = size_t(p.columns), batch = i / columns / size_t(p.count);
      float& y = wanted[(batch * size_t(p.rows) + size_t(where[i])) * columns + i % columns];
      y = combine(p.mode, y, float(what[i]));
    }
    const auto got = scattered(p, base, index, put);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); i++) {
      ASSERT_EQ(got[i], rounded(p.dtype, double(wanted[i]))) << "element " << i;
    }
  }

 private:
  std::mt19937 random_{7};
};

TEST_F(ScatterRows, ValuesAreAddedInTheirOrder) {
  check({});
  EXPECT_NE(last_source().find("ballot"), std::string::npos) << last_source();
  EXPECT_NE(last_source().find("f32x4"), std::string::npos) << last_source();
  EXPECT_GT(runtime.grids.back()[0], 1u);
  check({.index = DType::i32, .rows = 1000, .count = 20, .most = 1000});
  check({.numbers = true});
}

// More meet than are listed at once.
TEST_F(ScatterRows, ManyValuesMeetInARow) {
  check({.count = 5000, .most = 1});
  check({.count = 4096, .most = 3});
  check({.dtype = DType::bf16, .count = 3000, .most = 2});
  check({.mode = ScatterMode::minimum, .count = 3000, .most = 2, .numbers = true});
}

TEST_F(ScatterRows, RowsOfAnyWidth) {
  for (const int64_t columns : {32, 33, 130, 1100}) {
    check({.rows = 20, .count = 60, .columns = columns, .most = 20});
  }
}

TEST_F(ScatterRows, BatchesAndSpacedRows) {
  check({.batch = 3, .rows = 70, .count = 90, .most = 70});
  check({.batch = 2, .rows = 70, .count = 90, .columns = 36, .most = 70, .columns_apart = 2});
}

TEST_F(ScatterRows, AllModesAndFloats) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const ScatterMode mode :
         {ScatterMode::add, ScatterMode::multiply, ScatterMode::minimum, ScatterMode::maximum}) {
      check({.mode = mode, .dtype = dtype, .rows = 40, .count = 200, .most = 40});
    }
  }
}

TEST_F(ScatterRows, ZerosInfinitiesAndNan) {
  const Problem p{.rows = 40, .count = 40, .columns = 32};
  Tensor base = empty({p.dtype, {1, p.rows, p.columns}}),
         index = places({.columns = 32, .most = 1});
  const Tensor put = empty({p.dtype, {1, p.count, p.columns}});
  index.type.shape = put.type.shape;
  const auto set = [](const Tensor& x, int64_t i, double value) {
    store(x.type.dtype, x.buffer->data, i, word_of(x.type.dtype, value));
  };
  for (int64_t i = 0; i < p.rows * p.columns; i++) set(base, i, -0.0), set(put, i, 0);
  set(put, 1, INFINITY), set(put, 2, NAN), set(put, 32 + 2, 1);
  const auto y = scattered(p, base, index, put);
  EXPECT_FALSE(std::signbit(y[0]));  // -0 + 0
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_TRUE(std::signbit(y[32]));  // nothing was put there
}

TEST_F(ScatterRows, SaysWhichPlaceIsWrong) {
  const Problem p{.rows = 40, .count = 40, .columns = 32, .most = 40};
  const Tensor base = counting({p.dtype, {1, p.rows, p.columns}});
  const Tensor put = counting({p.dtype, {1, p.count, p.columns}});
  for (const int64_t wrong : {40, -1}) {
    const Tensor index = places(p);
    store(p.index, index.buffer->data, 23, word_of(p.index, wrong));
    EXPECT_EQ(
        message_of([&] { scattered(p, base, index, put); }),
        fmt::format("scatter: index {} is outside axis 1 of f32[1,40,32], which has 40 elements",
                    wrong));
  }
}

TEST_F(ScatterRows, NewSizesFindOldPrograms) {
  check({});
  const size_t programs = this->programs();
  check({.rows = 77, .count = 133, .columns = 80, .most = 77});
  EXPECT_EQ(this->programs(), programs);
}

}  // namespace
}  // namespace fornax::cube
