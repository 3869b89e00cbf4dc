// pad, cat, fold, gather and scatter against plain loops.
#include <algorithm>

#include "run.h"

namespace fornax::flex {
namespace {

// Row-major position of a multi-index.
int64_t flat(const Shape& shape, const int64_t* at) {
  int64_t position = 0;
  for (int axis = 0; axis < shape.rank(); axis++) position = position * shape[axis] + at[axis];
  return position;
}

// Calls f(multi-index, row-major position) for every element.
template <class F>
void each(const Shape& shape, F f) {
  const int64_t count = shape.element_count();
  for (int64_t i = 0; i < count; i++) {
    int64_t at[kMaxRank], rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; axis--) {
      at[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    f(at, size_t(i));
  }
}

TEST(Pad, BeforeAfterBetweenAndCrop) {
  std::mt19937 random(1);
  for (Style style : kStyles) {
    for (DType dtype : {DType::f32, DType::u8, DType::f64, DType::bf16}) {
      for (const Attributes& pads :
           {Attributes{1, 2, 0, 0, 3, 1}, Attributes{-1, 0, 2, 2, -2, 0},
            Attributes{0, 0, 0, 0, 0, 0}, Attributes{-2, -2, 1, 0, 0, 0}}) {
        Value x = random_operand(dtype, {4, 5}, style, random);
        Value value = number_operand(dtype, {}, 7);
        const Value y = run(prepare_index, Op::pad, {&x, &value}, pads);
        std::vector<double> wanted(y.numbers.size(), 7);
        each(x.type.shape, [&](const int64_t* at, size_t i) {
          int64_t to[2];
          bool kept = true;
          for (int axis = 0; axis < 2; axis++) {
            to[axis] = pads[size_t(axis) * 3] + at[axis] * (1 + pads[size_t(axis) * 3 + 2]);
            kept &= to[axis] >= 0 && to[axis] < y.type.shape[axis];
          }
          if (kept) wanted[size_t(flat(y.type.shape, to))] = x.numbers[i];
        });
        expect_same(y, wanted, "pad");
      }
    }
  }
}

TEST(Cat, PartsOfAnySizeAndLayout) {
  std::mt19937 random(2);
  for (Style style : kStyles) {
    for (int axis : {0, 1, 2}) {
      Shape shapes[3] = {{2, 3, 4}, {2, 3, 4}, {2, 3, 4}};
      shapes[0][axis] = 5, shapes[1][axis] = 0, shapes[2][axis] = 1;
      Value a = random_operand(DType::i16, shapes[0], style, random);
      Value b = random_operand(DType::i16, shapes[1], Style::plain, random);
      Value c = number_operand(DType::i16, shapes[2], -3);
      const Value y = run(prepare_index, Op::cat, {&a, &b, &c}, {axis});
      std::vector<double> wanted(y.numbers.size());
      each(y.type.shape, [&](const int64_t* at, size_t i) {
        int64_t from[3] = {at[0], at[1], at[2]};
        wanted[i] = from[axis] < 5 ? a.numbers[size_t(flat(shapes[0], from))] : -3;
      });
      expect_same(y, wanted, "cat");
    }
  }
}

TEST(Fold, OverlappingWindows) {
  std::mt19937 random(3);
  for (Style style : kStyles) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::u8}) {
      // Windows over axes 1 and 3 of [2, 11, 3, 7]: 4 by 2 apart with dilation 2, and 3 by 1.
      const Attributes windows{1, 4, 2, 2, 11, 3, 3, 1, 1, 7};
      Value x = random_operand(dtype, {2, 3, 3, 5, 4, 3}, style, random, -2, 2);
      const Value y = run(prepare_index, Op::fold, {&x}, windows);
      std::vector<double> wanted(y.numbers.size());
      each(x.type.shape, [&](const int64_t* at, size_t i) {
        const int64_t to[4] = {at[0], at[1] * 2 + at[4] * 2, at[2], at[3] + at[5]};
        wanted[size_t(flat(y.type.shape, to))] += x.numbers[i];
      });
      expect_near(y, wanted, 6, "fold");
    }
  }
}

std::vector<double> gathered(const Value& x, const Value& index, int axis) {
  std::vector<double> wanted(index.numbers.size());
  each(index.type.shape, [&](const int64_t* at, size_t i) {
    int64_t from[kMaxRank];
    std::copy_n(at, index.type.shape.rank(), from);
    from[axis] = int64_t(index.numbers[i]);
    wanted[i] = x.numbers[size_t(flat(x.type.shape, from))];
  });
  return wanted;
}

TEST(Gather, EveryAxisLayoutAndIndexType) {
  std::mt19937 random(4);
  for (Style style : kStyles) {
    for (int axis : {0, 1, 2}) {
      for (DType dtype : {DType::f32, DType::u8, DType::f64, DType::f16}) {
        for (DType index_type : {DType::i64, DType::i32, DType::u8}) {
          Shape shape{4, 3, 5};
          Value x = random_operand(dtype, shape, style, random);
          const double size = double(shape[axis]);
          shape[axis] = 7;
          Value index = random_operand(index_type, shape, style, random, 0, size);
          expect_same(run(prepare_index, Op::gather, {&x, &index}, {axis}),
                      gathered(x, index, axis), "gather");
        }
      }
    }
  }
}

// An index of `count` rows, the same in every column.
Value row_index(int64_t count, int64_t columns, std::mt19937& random, double size) {
  Value index = random_operand(DType::i64, {count, 1}, Style::plain, random, 0, size);
  index.type.shape = {count, columns};
  index.layout.strides[1] = 0;
  read_back(index);
  return index;
}

TEST(Gather, RowsOfATable) {
  std::mt19937 random(5);
  for (Style style : {Style::plain, Style::reversed_axes, Style::negative}) {
    Value table = random_operand(DType::f32, {50, 33}, style, random);
    Value index = row_index(700, 33, random, 50);
    expect_same(run(prepare_index, Op::gather, {&table, &index}, {0}), gathered(table, index, 0),
                "rows");
  }
}

TEST(Gather, IndexOutside) {
  Value x = operand(DType::f32, {5}, Style::plain, [](int64_t i) { return double(i); });
  for (double wrong : {7.0, -1.0}) {
    Value index = operand(DType::i64, {2}, Style::plain, [&](int64_t i) { return i ? wrong : 1; });
    const std::string words =
        fmt::format("index {} is outside axis 0 of f32[5], which has 5 elements", wrong);
    expect_error(ErrorKind::index, "gather: " + words, [&] {
      run(prepare_index, Op::gather, {&x, &index}, {0});
    });
    expect_error(ErrorKind::index, "scatter: " + words, [&] {
      Value values = number_operand(DType::f32, {2}, 1);
      run(prepare_index, Op::scatter, {&x, &index, &values},
          ScatterSettings::pack(0, ScatterMode::add));
    });
  }
}

std::vector<double> scattered(const Value& base, const Value& index, const Value& values, int axis,
                              ScatterMode mode) {
  std::vector<double> wanted = base.numbers;
  each(index.type.shape, [&](const int64_t* at, size_t i) {
    int64_t to[kMaxRank];
    std::copy_n(at, index.type.shape.rank(), to);
    to[axis] = int64_t(index.numbers[i]);
    double& old = wanted[size_t(flat(base.type.shape, to))];
    const double value = values.numbers[i];
    switch (mode) {
      case ScatterMode::assign:
        old = value;
        break;
      case ScatterMode::add:
        old += value;
        break;
      case ScatterMode::multiply:
        old *= value;
        break;
      case ScatterMode::minimum:
        old = std::min(old, value);
        break;
      case ScatterMode::maximum:
        old = std::max(old, value);
        break;
    }
  });
  return wanted;
}

constexpr ScatterMode kModes[] = {ScatterMode::assign, ScatterMode::add, ScatterMode::multiply,
                                  ScatterMode::minimum, ScatterMode::maximum};

TEST(Scatter, EveryModeAxisLayoutAndType) {
  std::mt19937 random(6);
  for (Style style : kStyles) {
    for (int axis : {0, 1, 2}) {
      for (DType dtype : {DType::f32, DType::f64, DType::i64, DType::bf16}) {
        for (ScatterMode mode : kModes) {
          Shape shape{4, 3, 5};
          Value base = random_operand(dtype, shape, style, random, -2, 2);
          const double size = double(shape[axis]);
          shape[axis] = 7;
          Value index = random_operand(DType::i32, shape, style, random, 0, size);
          Value values = random_operand(dtype, shape, style, random, -2, 2);
          expect_near(run(prepare_index, Op::scatter, {&base, &index, &values},
                          ScatterSettings::pack(axis, mode)),
                      scattered(base, index, values, axis, mode), 8, "scatter");
        }
      }
    }
  }
}

TEST(Scatter, RowsWithRepeatsAndNoRows) {
  std::mt19937 random(7);
  for (int64_t count : {0, 1, 900}) {
    Value base = random_operand(DType::f32, {40, 300}, Style::plain, random);
    Value index = row_index(count, 300, random, 40);
    Value values = random_operand(DType::f32, {count, 300}, Style::plain, random);
    expect_near(run(prepare_index, Op::scatter, {&base, &index, &values},
                    ScatterSettings::pack(0, ScatterMode::add)),
                scattered(base, index, values, 0, ScatterMode::add), 30, "rows");
  }
}

TEST(Scatter, NanStaysInMinimumAndMaximum) {
  Value base = operand(DType::f32, {2}, Style::plain, [](int64_t i) { return i ? NAN : 1; });
  Value index = operand(DType::i64, {2}, Style::plain, [](int64_t i) { return double(i); });
  Value values = operand(DType::f32, {2}, Style::plain, [](int64_t i) { return i ? 1 : NAN; });
  for (ScatterMode mode : {ScatterMode::minimum, ScatterMode::maximum}) {
    expect_same(
        run(prepare_index, Op::scatter, {&base, &index, &values}, ScatterSettings::pack(0, mode)),
        {NAN, NAN}, "nan");
  }
}

}  // namespace
}  // namespace fornax::flex
