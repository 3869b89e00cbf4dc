// Ops that move data on cube: errors, order, and which kernels are made.  Their values are checked
// by tests/ops.
#include <algorithm>
#include <numeric>

#include "base/philox.h"
#include "graph/attributes.h"
#include "tests/cube/run.h"
#include "tests/errors.h"

namespace fornax::cube {
namespace {

class Anchors : public CubeTest {
 protected:
  Tensor whole(DType dtype, const Shape& shape, const std::vector<int64_t>& numbers) {
    Tensor tensor = empty({dtype, shape});
    for (size_t i = 0; i < numbers.size(); i++) {
      store(dtype, tensor.buffer->data, int64_t(i), word_of(dtype, numbers[i]));
    }
    return tensor;
  }
  std::vector<double> gathered(const Tensor& x, const Tensor& index, int axis) {
    Case c;
    c.anchor(Op::gather, {c.input(x), c.input(index)}, {axis});
    return values(run(c)[0]);
  }
  std::vector<double> scattered(const Tensor& base, const Tensor& index, const Tensor& values_,
                                ScatterMode mode) {
    Case c;
    c.anchor(Op::scatter, {c.input(base), c.input(index), c.input(values_)},
             ScatterSettings::pack(0, mode));
    return values(run(c)[0]);
  }
};

TEST_F(Anchors, GatherSaysWhichIndexIsWrong) {
  const Tensor x = counting({DType::f32, {5}});
  EXPECT_EQ(gathered(x, whole(DType::i64, {2}, {4, 0}), 0), (std::vector<double>{1, -3}));
  const std::string words = "gather: index 5 is outside axis 0 of f32[5], which has 5 elements";
  EXPECT_EQ(message_of([&] { gathered(x, whole(DType::i64, {2}, {4, 5}), 0); }), words);
  const std::string below = "gather: index -1 is outside axis 0 of f32[5], which has 5 elements";
  EXPECT_EQ(message_of([&] { gathered(x, whole(DType::i8, {2}, {-1, 2}), 0); }), below);
  // The device is as usable as before.
  EXPECT_EQ(gathered(x, whole(DType::i64, {1}, {2}), 0), (std::vector<double>{-1}));
}

TEST_F(Anchors, RowsAreGatheredAsVectors) {
  const Tensor table = counting({DType::f32, {7, 12}});
  Tensor index = whole(DType::i32, {3}, {6, 0, 3});
  index.type.shape = {3, 12};
  index.layout = {0, {1, 0}};
  const auto rows = gathered(table, index, 0);
  const auto all = values(table);
  for (size_t i = 0; i < 12; i++) {
    EXPECT_EQ(rows[i], all[72 + i]);
    EXPECT_EQ(rows[12 + i], all[i]);
    EXPECT_EQ(rows[24 + i], all[36 + i]);
  }
  EXPECT_NE(last_source().find("f32x4"), std::string::npos) << last_source();
}

TEST_F(Anchors, TheLastAssignedWins) {
  // Short lines go one by one, long ones mark their places.
  for (const int64_t count : {12, 300}) {
    std::vector<int64_t> places(size_t(count), 0), numbers(size_t(count), 0);
    for (size_t i = 0; i < places.size(); i++) places[i] = int64_t(i * 5 % 9);
    std::iota(numbers.begin(), numbers.end(), 100);
    std::vector<double> wanted(10, -1);
    for (size_t i = 0; i < places.size(); i++) wanted[size_t(places[i])] = double(numbers[i]);
    const Tensor base = whole(DType::i32, {10}, std::vector<int64_t>(10, -1));
    const auto y = scattered(base, whole(DType::i64, {count}, places),
                             whole(DType::i32, {count}, numbers), ScatterMode::assign);
    EXPECT_EQ(y, wanted);
  }
}

TEST_F(Anchors, WholeNumbersMeetInAnyOrder) {
  for (const ScatterMode mode : {ScatterMode::add, ScatterMode::minimum, ScatterMode::maximum}) {
    const int64_t count = 300;
    std::vector<int64_t> places, numbers, wanted(10, 2);
    for (int64_t i = 0; i < count; i++) {
      places.push_back(i * 7 % 9);
      numbers.push_back(i * 31 % 17 - 8);
      int64_t& y = wanted[size_t(places.back())];
      const int64_t x = numbers.back();
      y = mode == ScatterMode::add       ? y + x
          : mode == ScatterMode::minimum ? std::min(y, x)
                                         : std::max(y, x);
    }
    const auto y =
        scattered(whole(DType::i32, {10}, std::vector<int64_t>(10, 2)),
                  whole(DType::i64, {count}, places), whole(DType::i32, {count}, numbers), mode);
    EXPECT_EQ(y, std::vector<double>(wanted.begin(), wanted.end()));
    EXPECT_NE(last_source().find("atomic"), std::string::npos);
  }
}

// Values that floats represent exactly, so that the order of addition cannot be seen.
TEST_F(Anchors, PartsOfLongLinesAreAddedUp) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const int64_t count = 333, width = 3;
    std::vector<int64_t> places, numbers, wanted(15, 2);
    for (int64_t i = 0; i < count * width; i++) {
      if (i % width == 0) places.push_back(i * 7 % 5);
      numbers.push_back(i * 31 % 17 - 8);
      wanted[size_t(places.back() * width + i % width)] += numbers.back();
    }
    Tensor index = whole(DType::i64, {count}, places);
    index.type.shape = {count, width};
    index.layout = {0, {1, 0}};
    const auto y = scattered(whole(dtype, {5, width}, std::vector<int64_t>(15, 2)), index,
                             whole(dtype, {count, width}, numbers), ScatterMode::add);
    EXPECT_EQ(y, std::vector<double>(wanted.begin(), wanted.end()));
    EXPECT_NE(last_source().find("sums"), std::string::npos) << last_source();
  }
}

TEST_F(Anchors, ScatterSaysWhichIndexIsWrong) {
  const std::string words = "scatter: index 10 is outside axis 0 of i32[10], which has 10 elements";
  for (const ScatterMode mode : {ScatterMode::assign, ScatterMode::add, ScatterMode::multiply}) {
    std::vector<int64_t> places(40, 3);
    places[20] = 10;
    const Tensor base = whole(DType::i32, {10}, std::vector<int64_t>(10, 1));
    const Tensor index = whole(DType::i64, {40}, places);
    EXPECT_EQ(message_of([&] {
                scattered(base, index, counting({DType::i32, {40}}), mode);
              }),
              words);
  }
}

TEST_F(Anchors, RandomBitsAreThoseOfTheHost) {
  const uint64_t key = 0x123456789abcdef0, counter = 0xfffffffffffffffe;
  for (const int64_t count : {1, 6, 16, 1027}) {
    Case c;
    const int k = c.number(DType::u64, key), n = c.number(DType::u64, counter);
    c.anchor(Op::random_bits, {k, n}, {count});
    const auto words = values(run(c)[0]);
    for (size_t i = 0; i < words.size(); i++) {
      ASSERT_EQ(words[i], double(random_word(key, counter, i))) << i;
    }
  }
  EXPECT_EQ(programs(), 2u);
}

TEST_F(Anchors, NewSizesFindOldPrograms) {
  size_t first = 0;
  for (const int64_t rows : {3, 5}) {
    Case pad;
    const Tensor x = counting({DType::f32, {rows, 2 * rows}});
    pad.anchor(Op::pad, {pad.input(x), pad.number(DType::f32, 9)}, {1, rows, 0, 2, 2, 1});
    run(pad);
    Case cat;
    cat.anchor(Op::cat, {cat.input(x), cat.input(counting({DType::f32, {1, 2 * rows}}))}, {0});
    run(cat);
    Case fold;
    const Tensor windows = counting({DType::f32, {rows, 3}});
    fold.anchor(Op::fold, {fold.input(windows)}, {0, 3, 1, 1, rows + 2});
    run(fold);
    Case gather;
    const Tensor index =
        whole(DType::i64, {1, 2 * rows}, std::vector<int64_t>(size_t(2 * rows), 1));
    gather.anchor(Op::gather, {gather.input(x), gather.input(index)}, {0});
    run(gather);
    if (rows == 3) first = programs();
  }
  EXPECT_EQ(programs(), first);
}

}  // namespace
}  // namespace fornax::cube
