// Ops that make, view and index data.
#include "tests/errors.h"
#include "tests/reference/program.h"

namespace fornax {
namespace {

using Integers = std::vector<int64_t>;

TEST(Make, ranges_and_numbers) {
  Program p;
  const int start = p.number(DType::f32, 1), step = p.number(DType::f32, 0.5);
  p.step(Op::arange, {start, step}, {int64_t(DType::f32), 4});
  expect_numbers(p.doubles(), {1, 1.5, 2, 2.5});

  Program down;
  const int five = down.number(DType::u8, 5), minus = down.number(DType::u8, -2);
  down.step(Op::arange, {five, minus}, {int64_t(DType::u8), 4});
  EXPECT_EQ(down.integers(), (Integers{5, 3, 1, 255}));

  Program half;  // the position is exact although f16 cannot hold it
  const int base = half.number(DType::f16, -2049), one = half.number(DType::f16, 1);
  half.step(Op::arange, {base, one}, {int64_t(DType::f16), 2052});
  EXPECT_EQ(half.doubles().back(), 3);  // -2048 + 2051

  Program full;
  full.step(Op::full, {}, {int64_t(DType::i32), 2});
  full.group().graph.steps[0].scalar = 7;
  EXPECT_EQ(full.integers(), (Integers{7, 7}));
}

TEST(Make, random_words_continue_over_the_counter) {
  Program p;
  const int key = p.number(DType::u64, 0), counter = p.number(DType::u64, 0);
  p.step(Op::random_bits, {key, counter}, {5});
  const Integers first = p.integers();
  EXPECT_EQ(first[0], 0x6627e8d5);
  EXPECT_EQ(first[3], 0x9b00dbd8);

  Program next;
  const int same = next.number(DType::u64, 0), later = next.number(DType::u64, 1);
  next.step(Op::random_bits, {same, later}, {1});
  EXPECT_EQ(next.integers()[0], first[4]);
}

TEST(View, moves_elements) {
  const std::vector<Scalar> x = {0, 1, 2, 3, 4, 5};
  const auto viewed = [&](Op op, Shape shape, Attributes attributes) {
    Program p;
    p.step(op, {p.i64(shape, x)}, std::move(attributes));
    return p.integers();
  };
  EXPECT_EQ(viewed(Op::reshape, {2, 3}, {3, 2}), (Integers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(viewed(Op::permute, {2, 3}, {1, 0}), (Integers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(viewed(Op::permute, {1, 2, 3}, {2, 0, 1}), (Integers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(viewed(Op::expand, {6, 1}, {2, 6, 1}), (Integers{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(viewed(Op::slice, {2, 3}, {1, 2, -1, 0, 2, 2}), (Integers{3, 5, 0, 2}));
  EXPECT_EQ(viewed(Op::unfold, {6}, {0, 3, 2, 1, 6}), (Integers{0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(viewed(Op::unfold, {6}, {0, 2, 3, 2, 6}), (Integers{0, 2, 3, 5}));
}

TEST(Index, fold_adds_windows_back) {
  Program p;
  p.step(Op::fold, {p.f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {0, 3, 2, 1, 6});
  expect_numbers(p.doubles(), {1, 2, 7, 5, 6, 0});
}

TEST(Index, pads_between_and_crops) {
  Program p;
  const int x = p.i64({3}, {1, 2, 3}), nine = p.number(DType::i64, 9);
  p.step(Op::pad, {x, nine}, {1, 2, 1});
  EXPECT_EQ(p.integers(), (Integers{9, 1, 9, 2, 9, 3, 9, 9}));
  Program crop;
  const int y = crop.i64({2, 2}, {1, 2, 3, 4}), zero = crop.number(DType::i64, 0);
  crop.step(Op::pad, {y, zero}, {-1, 0, 0, 1, -1, 0});
  EXPECT_EQ(crop.integers(), (Integers{0, 3}));
}

TEST(Index, joins) {
  Program p;
  const int a = p.i64({2, 1}, {1, 2}), b = p.i64({2, 2}, {3, 4, 5, 6}), c = p.i64({2, 0}, {});
  p.step(Op::cat, {a, b, c}, {1});
  EXPECT_EQ(p.integers(), (Integers{1, 3, 4, 2, 5, 6}));
}

TEST(Index, gathers) {
  Program p;
  const int x = p.f32({2, 3}, {0, 1, 2, 3, 4, 5}), index = p.i64({2, 2}, {2, 0, 1, 1});
  p.step(Op::gather, {x, index}, {1});
  expect_numbers(p.doubles(), {2, 0, 4, 4});
}

TEST(Index, gather_names_what_is_outside) {
  for (int64_t outside : {int64_t(-1), int64_t(3)}) {
    Program p;
    const int x = p.f32({3}, {0, 1, 2}), index = p.i64({2}, {0, outside});
    p.step(Op::gather, {x, index}, {0});
    const std::string message = message_of(ErrorKind::index, [&] { (void)p.run(); });
    EXPECT_EQ(message, fmt::format("gather: index {} is outside axis 0 of f32[3], which has 3 "
                                   "elements",
                                   outside));
  }
}

TEST(Index, scatters_by_mode) {
  const auto scattered = [](DType dtype, ScatterMode mode) {
    Program p;
    const int base = p.leaf(dtype, {3}, {1, 2, 3}), index = p.leaf(DType::u8, {4}, {0, 2, 0, 2});
    const int values = p.leaf(dtype, {4}, {5, 1, 4, 7});
    p.step(Op::scatter, {base, index, values}, ScatterSettings::pack(0, mode));
    return p.doubles();
  };
  for (DType dtype : {DType::f32, DType::i16, DType::u64}) {
    expect_numbers(scattered(dtype, ScatterMode::assign), {4, 2, 7});
    expect_numbers(scattered(dtype, ScatterMode::add), {10, 2, 11});
    expect_numbers(scattered(dtype, ScatterMode::multiply), {20, 2, 21});
    expect_numbers(scattered(dtype, ScatterMode::minimum), {1, 2, 1});
    expect_numbers(scattered(dtype, ScatterMode::maximum), {5, 2, 7});
  }
}

TEST(Index, scatter_names_what_is_outside) {
  Program p;
  const int base = p.f32({2, 1}, {0, 0}), index = p.i64({1, 1}, {2}), value = p.f32({1, 1}, {1});
  p.step(Op::scatter, {base, index, value}, ScatterSettings::pack(0, ScatterMode::add));
  const std::string message = message_of(ErrorKind::index, [&] { (void)p.run(); });
  EXPECT_NE(message.find("scatter: index 2 is outside axis 0"), std::string::npos) << message;
}

}  // namespace
}  // namespace fornax
