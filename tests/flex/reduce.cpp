// Reduce groups against straightforward loops, and fused against one by one.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "backends/flex/pool.h"
#include "graph/attributes.h"
#include "tests/flex/group.h"

namespace fornax::flex {
namespace {

const Op kReductions[] = {Op::sum, Op::prod, Op::max,    Op::min,
                          Op::any, Op::all,  Op::argmax, Op::argmin};

// The elements that output element `keep` of the reduction over `axes` is made of, in order.
Words elements_of(const Tensor& x, const Attributes& axes, int64_t keep) {
  const Shape& shape = x.type.shape;
  Shape kept = shape;
  for (int64_t axis : axes) kept[int(axis)] = 1;
  Words words;
  for (int64_t e = 0; e < shape.element_count(); e++) {
    int64_t rest = e, at = 0, stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; axis--) {
      const int64_t index = rest % shape[axis];
      rest /= shape[axis];
      at += (kept[axis] == 1 ? 0 : index) * stride;
      stride *= kept[axis];
    }
    if (at == keep) words.push_back(x.at(e));
  }
  return words;
}

double number_of(DType dtype, Word word) {
  if (is_floating(dtype)) return as<double>(word);
  return is_signed(dtype) ? double(int64_t(word.bits)) : double(word.bits);
}
bool is_above(DType dtype, Word a, Word b) {
  if (is_floating(dtype)) {
    return as<double>(b) == as<double>(b) && !(as<double>(a) <= as<double>(b));
  }
  return is_signed(dtype) ? int64_t(a.bits) > int64_t(b.bits) : a.bits > b.bits;
}
bool is_below(DType dtype, Word a, Word b) {
  if (is_floating(dtype)) {
    return as<double>(b) == as<double>(b) && !(as<double>(a) >= as<double>(b));
  }
  return is_signed(dtype) ? int64_t(a.bits) < int64_t(b.bits) : a.bits < b.bits;
}

void check(Op op, const Tensor& x, const Attributes& axes, const Tensor& result, int64_t keep) {
  const DType dtype = x.type.dtype;
  const Words words = elements_of(x, axes, keep);
  const Word got = result.at(keep);
  const std::string what = std::string(info(op).name) + " of " + text_of(x.type);
  if (op == Op::any || op == Op::all) {
    bool any = false, every = true;
    for (Word w : words) {
      const bool yes = is_floating(dtype) ? as<double>(w) != 0 : w.bits != 0;
      any |= yes, every &= yes;
    }
    ASSERT_EQ(got.bits, uint64_t(op == Op::any ? any : every)) << what;
  } else if (op == Op::sum || op == Op::prod) {
    uint64_t whole = op == Op::prod;
    long double exact = op == Op::prod, magnitude = op == Op::prod;
    for (Word w : words) {
      if (op == Op::prod) {
        whole *= w.bits, exact *= number_of(dtype, w), magnitude *= number_of(dtype, w);
      } else {
        whole += w.bits, exact += number_of(dtype, w), magnitude += std::fabs(number_of(dtype, w));
      }
    }
    if (!is_floating(dtype)) {
      ASSERT_EQ(got.bits, whole) << what;
      return;
    }
    const double value = as<double>(got);
    if (!std::isfinite(double(exact)) || double(magnitude) > 1e30) return;
    // Rounded once to the dtype after arithmetic in f32 or f64.
    const double last = dtype == DType::f64 ? 2e-16 : 1e-7;
    const double steps = op == Op::prod ? double(words.size()) + 1 : 24;
    const double error = std::fabs(value - double(exact));
    ASSERT_TRUE(ulps(dtype, double(exact), value) <= 0.51 ||
                error <= std::fabs(double(magnitude)) * last * steps)
        << what << ": want " << double(exact) << " got " << value;
  } else {
    size_t best = 0;
    const bool largest = op == Op::max || op == Op::argmax;
    for (size_t i = 1; i < words.size(); i++) {
      if (largest ? is_above(dtype, words[i], words[best]) : is_below(dtype, words[i], words[best]))
        best = i;
    }
    if (op == Op::argmax || op == Op::argmin) {
      ASSERT_EQ(got.bits, best) << what;
    } else if (is_floating(dtype) && as<double>(words[best]) == 0) {
      ASSERT_EQ(as<double>(got), 0) << what;
    } else {
      ASSERT_TRUE(same_number(dtype, words[best], got)) << what;
    }
  }
}

Tensor finite_tensor(const Type& type, std::mt19937& random) {
  Tensor x = empty(type);
  for (int64_t i = 0; i < type.shape.element_count(); i++) {
    Word w = word_of(std::uniform_real_distribution<double>(-2, 2)(random));
    convert(DType::f64, type.dtype, std::span(&w, 1));
    store(type.dtype, x.buffer->data, i, w);
  }
  return x;
}

struct Shaped {
  Shape shape;
  Attributes axes;
};
const Shaped kShapes[] = {
    {{7}, {0}},          {{1}, {0}},       {{3, 5}, {0}},          {{3, 5}, {1}},
    {{4, 3, 5}, {0, 2}}, {{4, 3, 5}, {1}}, {{4, 3, 5}, {0, 1, 2}}, {{2, 2500}, {1}},
    {{2500, 3}, {0}},    {{20, 600}, {0}}, {{2, 3, 4, 5}, {1, 3}}, {{2, 3, 4, 5}, {0, 2}},
    {{3, 1, 4}, {1}},    {{5, 4}, {}},     {{1, 1}, {0, 1}}};

TEST(FlexReduce, EveryReductionOfEveryDtypeOverAnyAxes) {
  std::mt19937 random(11);
  for (Op op : kReductions) {
    for (int d = 0; d < kDTypeCount; d++) {
      for (const Shaped& s : kShapes) {
        const bool position = op == Op::argmax || op == Op::argmin;
        if (position && s.axes.size() != 1) continue;
        const Type type{DType(d), s.shape};
        const Tensor x = op == Op::sum || op == Op::prod ? finite_tensor(type, random)
                                                         : random_tensor(type, random);
        const Tensor result = run_one(op, {x}, s.axes);
        const int64_t count = result.type.shape.element_count();
        for (int64_t keep = 0; keep < std::min<int64_t>(count, 40); keep++) {
          check(op, x, s.axes, result, keep);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(FlexReduce, NothingGivesTheIdentity) {
  const Tensor x = empty({DType::f32, {0, 3}});
  EXPECT_EQ(as<double>(run_one(Op::sum, {x}, {0}).at(1)), 0);
  EXPECT_EQ(as<double>(run_one(Op::prod, {x}, {0}).at(1)), 1);
  EXPECT_EQ(run_one(Op::any, {x}, {0}).at(1).bits, 0u);
  EXPECT_EQ(run_one(Op::all, {x}, {0}).at(1).bits, 1u);
}

TEST(FlexReduce, TheErrorOfASumDoesNotGrowWithItsLength) {
  const int64_t count = 10'000'000;
  Tensor x = empty({DType::f32, {count}});
  for (int64_t i = 0; i < count; i++) static_cast<float*>(x.buffer->data)[i] = 0.1f;
  const double exact = double(0.1f) * double(count);
  EXPECT_NEAR(as<double>(run_one(Op::sum, {x}, {0}).at(0)), exact, exact * 2e-6);
  x.type.shape = {count / 5, 5};
  x.layout = row_major(x.type.shape);
  EXPECT_NEAR(as<double>(run_one(Op::sum, {x}, {0}).at(3)), exact / 5, exact / 5 * 2e-6);
}

TEST(FlexReduce, LongRowsGiveTheSameBitsOnOneThreadAndOnSeveral) {
  std::mt19937 random(13);
  const Shaped shapes[] = {{{300001}, {0}}, {{100001, 3}, {0}}, {{2, 150000}, {1}}};
  for (Op op : {Op::sum, Op::max, Op::min, Op::argmax, Op::argmin}) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::u8, DType::i64}) {
      for (const Shaped& s : shapes) {
        const Type type{dtype, s.shape};
        const Tensor x = op == Op::sum ? finite_tensor(type, random) : random_tensor(type, random);
        const Tensor split = run_one(op, {x}, s.axes);
        // A body of parallel() computes alone.
        std::mutex mutex;
        std::vector<Tensor> alone;
        parallel(2, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) {
            const Tensor result = run_one(op, {x}, s.axes);
            const std::lock_guard lock(mutex);
            alone.push_back(result);
          }
        });
        for (const Tensor& result : alone) {
          for (int64_t e = 0; e < split.type.shape.element_count(); e++) {
            ASSERT_TRUE(same_number(split.type.dtype, split.at(e), result.at(e)))
                << info(op).name << " of " << text_of(type) << " element " << e;
          }
        }
      }
    }
  }
}

TEST(FlexReduce, PositionsInLongRowsAreTheFirst) {
  for (const Shape& shape : {Shape{300000}, Shape{300000, 2}}) {
    const int64_t width = shape.rank() == 1 ? 1 : shape[1];
    Tensor x = empty({DType::f32, shape});
    float* data = static_cast<float*>(x.buffer->data);
    std::fill_n(data, 300000 * width, 1.0f);
    const auto position = [&] { return run_one(Op::argmax, {x}, {0}).at(width - 1).bits; };
    EXPECT_EQ(position(), 0u);
    const auto put = [&](int64_t row, float value) { data[row * width + width - 1] = value; };
    put(299999, 2);
    EXPECT_EQ(position(), 299999u);
    put(150000, 2);
    EXPECT_EQ(position(), 150000u);
    put(200000, NAN);
    put(200001, INFINITY);
    EXPECT_EQ(position(), 200000u);
    put(70000, NAN);
    EXPECT_EQ(position(), 70000u);
  }
}

TEST(FlexReduce, FusedEqualsOneByOneBitForBit) {
  std::mt19937 random(12);
  for (int round = 0; round < 200; round++) {
    const Shaped& s = kShapes[random() % std::size(kShapes)];
    const Op op = kReductions[random() % std::size(kReductions)];
    if ((op == Op::argmax || op == Op::argmin) && s.axes.size() != 1) continue;
    const DType dtype = std::array{DType::f32, DType::f16, DType::i16, DType::f64}[random() % 4];
    const Tensor x = random_view({dtype, s.shape}, random),
                 y = random_view({dtype, s.shape}, random);
    const Tensor product = run_one(Op::mul, {x, y}), reduced = run_one(op, {product}, s.axes);
    const Tensor bias = random_tensor(reduced.type, random);
    const Tensor after = run_one(Op::maximum, {reduced, bias});

    Case c;
    const int a = c.input(x), b = c.input(y), z = c.input(bias);
    const int mul = c.add(Op::mul, {a, b}), reduce = c.add(op, {mul}, s.axes);
    const int last = c.add(Op::maximum, {reduce, z});
    c.group.anchor = reduce;
    c.group.domain = s.shape;
    c.group.graph.outputs = {last};
    if (random() % 2) c.group.graph.outputs.push_back(reduce);
    if (random() % 2) c.group.graph.outputs.push_back(mul);
    const auto results = c.run();
    for (size_t i = 0; i < results.size(); i++) {
      const int step = c.group.graph.outputs[i];
      const Tensor& want = step == last ? after : step == reduce ? reduced : product;
      for (int64_t e = 0; e < want.type.shape.element_count(); e++) {
        ASSERT_TRUE(same_number(want.type.dtype, want.at(e), results[i].at(e)))
            << "round " << round << " element " << e << "\n"
            << text_of(c.group.graph);
      }
    }
  }
}

}  // namespace
}  // namespace fornax::flex
