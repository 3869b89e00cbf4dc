// Convolutions, their gradients and pooling: every window, layout and number type.
#include "tests/cube/anchor.h"

namespace fornax::cube::testing {
namespace {

// A convolution of x [n, c, h, w] with a weight [o, c / groups, kh, kw].
struct Geometry {
  Shape x, weight;
  Window2d window;

  Geometry(const Shape& picture, const Shape& kernel, const Window2d& with = {})
      : x(picture), weight(kernel), window(with) {
    for (int axis = 0; axis < 2; axis++) {
      window.size[axis] = weight[2 + axis];
      window.extent[axis] = x[2 + axis];
    }
  }
  Shape y() const { return {x[0], weight[0], window.count(0, x[2]), window.count(1, x[3])}; }
};

Window2d window_of(Pair stride, Pair before, Pair after, Pair dilation = 1, int64_t groups = 1) {
  Window2d w;
  w.stride[0] = stride.height, w.stride[1] = stride.width;
  w.before[0] = before.height, w.before[1] = before.width;
  w.after[0] = after.height, w.after[1] = after.width;
  w.dilation[0] = dilation.height, w.dilation[1] = dilation.width;
  w.groups = groups;
  return w;
}

// With few channels to a group, and with enough for tiles.
const Geometry kGeometries[] = {
    {{2, 3, 7, 6}, {4, 3, 3, 3}},
    {{2, 4, 9, 8}, {6, 2, 3, 2}, window_of({2, 1}, {1, 0}, {0, 1}, 1, 2)},
    {{1, 6, 11, 10}, {6, 1, 3, 3}, window_of({1, 2}, 2, 2, 2, 6)},
    {{3, 5, 4, 4}, {7, 5, 1, 1}},
    {{1, 2, 5, 13}, {3, 2, 5, 2}, window_of({3, 2}, {4, 1}, {4, 1}, {1, 3})},
    {{2, 9, 8, 7}, {10, 9, 3, 2}, window_of(1, 1, 1)},
    {{2, 18, 9, 8}, {20, 9, 3, 3}, window_of({2, 3}, {1, 2}, {1, 0}, {1, 2}, 2)},
};

class Convolve : public ::testing::Test {
 protected:
  void check(DType dtype, const Geometry& g, Style a = Style::plain, Style b = Style::plain) {
    const auto run = [&](Op op, const Shape& left, const Shape& right, double terms) {
      const std::vector<Operand> operands = {random_operand(dtype, left, a, random_, -1, 1),
                                             random_operand(dtype, right, b, random_, -1, 1)};
      testing::check(*device_, prepare_convolve, op, operands, g.window.pack(), terms);
    };
    const Shape y = g.y();
    const int64_t taps = g.weight[2] * g.weight[3];
    run(Op::convolve, g.x, g.weight, double(g.weight[1] * taps));
    run(Op::convolve_input, y, g.weight, double(g.weight[0] * taps));
    run(Op::convolve_weight, g.x, y, double(y[0] * y[2] * y[3]));
  }
  void check_pool(DType dtype, const Shape& shape, const Window2d& window,
                  Style style = Style::plain) {
    const std::vector<Operand> operands = {operand({dtype, shape}, style, [&]() -> Scalar {
      return random_() % 9 == 0 ? double(NAN) : double(random_() % 5);
    })};
    testing::check(*device_, prepare_pool_argmax, Op::pool_argmax, operands, window.pack());
  }

  std::unique_ptr<Device> device_ = new_device();
  std::mt19937 random_{1};
};

TEST_F(Convolve, EveryGeometryAndType) {
  for (const Geometry& g : kGeometries) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u32, DType::i64}) {
      check(dtype, g);
    }
  }
}

TEST_F(Convolve, EveryLayout) {
  for (const Style a : kStyles) {
    for (const Style b : kStyles) {
      check(DType::f32, kGeometries[1], a, b);
      if (a == b) check(DType::f32, kGeometries[6], a, b);
    }
  }
}

TEST_F(Convolve, ManyBlocksAndNothing) {
  check(DType::f32, {{2, 9, 13, 9}, {11, 9, 3, 3}, window_of(1, 1, 1)});
  check(DType::f32, {{3, 8, 13, 11}, {70, 8, 3, 3}, window_of(2, 1, 1)});
  // Long sums of few results, which blocks share.
  check(DType::f32, {{5, 8, 13, 9}, {9, 8, 2, 2}});
  check(DType::f32, {{0, 3, 5, 5}, {2, 3, 3, 3}});
  check(DType::f32, {{2, 0, 5, 5}, {2, 0, 3, 3}});
  check(DType::f32, {{2, 3, 5, 5}, {0, 3, 3, 3}});
}

TEST_F(Convolve, Pools) {
  Window2d window = window_of(2, 1, 1);
  window.size[0] = window.size[1] = 3;
  for (const Style style : kStyles) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::bf16, DType::i8, DType::u16, DType::i64}) {
      check_pool(dtype, {2, 3, 9, 8}, window, style);
    }
  }
  window = window_of({1, 3}, {0, 1}, {1, 0}, {2, 1});
  window.size[0] = 2, window.size[1] = 4;
  check_pool(DType::f32, {1, 2, 40, 31}, window);
  check_pool(DType::f32, {1, 0, 40, 31}, window);
}

TEST_F(Convolve, AWindowOfPaddingAloneIsRefused) {
  Window2d window = window_of(1, {1, 0}, {1, 0}, {3, 1});
  window.size[0] = 2;
  const std::vector<Operand> operands = {
      random_operand(DType::f32, {1, 1, 2, 5}, Style::plain, random_)};
  const Case c(Op::pool_argmax, operands, window.pack());
  std::string words[2];
  for (const bool kernels : {false, true}) {
    try {
      kernels ? c.by_kernels(*device_, prepare_pool_argmax) : c.by_reference();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      words[kernels] = error.what();
    }
  }
  EXPECT_NE(words[0], "");
  EXPECT_EQ(words[0], words[1]);
}

TEST_F(Convolve, OneProgramForAllSizesOfAClass) {
  check(DType::f32, {{2, 3, 7, 6}, {4, 3, 3, 3}});
  const size_t programs = device_->program_count();
  check(DType::f32, {{3, 2, 15, 11}, {5, 2, 2, 4}, window_of({2, 1}, 1, 0)});
  EXPECT_EQ(device_->program_count(), programs);
}

}  // namespace
}  // namespace fornax::cube::testing
