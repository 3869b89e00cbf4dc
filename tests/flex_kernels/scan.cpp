// Scans, argsort, arange and random_bits against plain loops.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.h"
#include "run.h"

namespace fornax::flex {
namespace {

// Calls f(positions of one line along `axis`).
template <class F>
void each_line(const Shape& shape, int axis, F f) {
  int64_t inner = 1, outer = 1;
  for (int i = 0; i < shape.rank(); i++) (i < axis ? outer : inner) *= shape[i];
  if (inner == 0) return;
  const int64_t length = shape[axis];
  inner /= length;
  std::vector<size_t> line(static_cast<size_t>(length));
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      for (int64_t t = 0; t < length; t++) line[size_t(t)] = size_t((o * length + t) * inner + i);
      f(line);
    }
  }
}

double next_of(Op op, double before, double x) {
  if (op == Op::cumsum) return before + x;
  if (op == Op::cumprod) return before * x;
  if (std::isnan(before) || std::isnan(x)) return NAN;
  return op == Op::cummax ? std::max(before, x) : std::min(before, x);
}

TEST(Scan, EveryOpAxisLayoutAndType) {
  std::mt19937 random(1);
  for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin}) {
    for (Style style : kStyles) {
      for (int axis : {0, 1, 2}) {
        for (DType dtype :
             {DType::f32, DType::f64, DType::f16, DType::i8, DType::u16, DType::bool_}) {
          const double range = op == Op::cumprod ? 1 : 1.5;
          Value x = random_operand(dtype, {5, 7, 140}, style, random, -range, range);
          const Value y = run(prepare_scan, op, {&x}, {axis});
          std::vector<double> wanted = x.numbers;
          each_line(x.type.shape, axis, [&](const std::vector<size_t>& line) {
            for (size_t t = 1; t < line.size(); t++) {
              wanted[line[t]] = next_of(op, wanted[line[t - 1]], x.numbers[line[t]]);
            }
          });
          expect_near(y, wanted, 1, "scan");
        }
      }
    }
  }
}

TEST(Scan, NanStays) {
  Value x = operand(DType::f32, {5}, Style::plain, [](int64_t i) {
    const double numbers[] = {1, 3, NAN, 5, 4};
    return numbers[i];
  });
  expect_same(run(prepare_scan, Op::cummax, {&x}, {0}), {1, 3, NAN, NAN, NAN}, "cummax");
  expect_same(run(prepare_scan, Op::cummin, {&x}, {0}), {1, 1, NAN, NAN, NAN}, "cummin");
}

TEST(Scan, LongSumsKeepTheirDigits) {
  Value x = operand(DType::f32, {1000000}, Style::plain, [](int64_t) { return 0.1; });
  const Value y = run(prepare_scan, Op::cumsum, {&x}, {0});
  EXPECT_NEAR(y.numbers.back(), 1000000 * double(0.1f), 0.01);
}

TEST(ArgSort, EveryAxisLayoutAndType) {
  std::mt19937 random(2);
  for (Style style : kStyles) {
    for (int axis : {0, 1}) {
      for (bool descending : {false, true}) {
        for (DType dtype :
             {DType::f32, DType::f64, DType::f16, DType::i32, DType::u8, DType::bool_}) {
          Value x = random_operand(dtype, {60, 90}, style, random, -6, 6);
          const Value y =
              run(prepare_scan, Op::argsort, {&x}, SortSettings::pack(axis, descending));
          std::vector<double> wanted(x.numbers.size());
          each_line(x.type.shape, axis, [&](const std::vector<size_t>& line) {
            std::vector<size_t> order(line.size());
            std::iota(order.begin(), order.end(), size_t(0));
            std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
              const double left = x.numbers[line[a]], right = x.numbers[line[b]];
              return descending ? left > right : left < right;
            });
            for (size_t t = 0; t < line.size(); t++) wanted[line[t]] = double(order[t]);
          });
          expect_same(y, wanted, "argsort");
        }
      }
    }
  }
}

TEST(ArgSort, NanZerosAndTies) {
  const double numbers[] = {0.0, NAN, -0.0, INFINITY, -1, -NAN, -INFINITY};
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e5m2}) {
    Value x = operand(dtype, {7}, Style::plain, [&](int64_t i) { return numbers[i]; });
    expect_same(run(prepare_scan, Op::argsort, {&x}, SortSettings::pack(0, false)),
                {6, 4, 0, 2, 3, 1, 5}, "ascending");
    expect_same(run(prepare_scan, Op::argsort, {&x}, SortSettings::pack(0, true)),
                {1, 5, 3, 0, 2, 4, 6}, "descending");
  }
}

TEST(Generate, Arange) {
  Value start = number_operand(DType::f32, {}, 0.5), step = number_operand(DType::f32, {}, 0.1);
  const Value y = run(prepare_generate, Op::arange, {&start, &step}, {int64_t(DType::f32), 30000});
  std::vector<double> wanted;
  for (int i = 0; i < 30000; i++) wanted.push_back(double(float(0.5 + i * double(0.1f))));
  expect_same(y, wanted, "f32");
  Value first = number_operand(DType::i8, {}, 120), second = number_operand(DType::i8, {}, 3);
  expect_same(run(prepare_generate, Op::arange, {&first, &second}, {int64_t(DType::i8), 4}),
              {120, 123, 126, -127}, "i8 wraps");
  expect_same(run(prepare_generate, Op::arange, {&first, &second}, {int64_t(DType::i8), 0}), {},
              "nothing");
}

TEST(Generate, RandomBits) {
  Value key = operand(DType::u64, {}, Style::plain, [](int64_t) { return 12345678901.0; });
  Value counter = operand(DType::u64, {}, Style::plain, [](int64_t) { return 4294967294.0; });
  for (int64_t count : {0, 1, 6, 100001}) {
    const Value y = run(prepare_generate, Op::random_bits, {&key, &counter}, {count});
    std::vector<double> wanted;
    for (int64_t i = 0; i < count; i++) {
      wanted.push_back(double(random_word(12345678901u, 4294967294u, uint64_t(i))));
    }
    expect_same(y, wanted, "bits");
  }
}

}  // namespace
}  // namespace fornax::flex
