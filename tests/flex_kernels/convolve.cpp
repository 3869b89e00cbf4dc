// The three convolutions and pool_argmax against plain loops over windows.
#include <cmath>

#include "run.h"

namespace fornax::flex {
namespace {

struct Case {
  int64_t images, inputs, outputs, height, width;  // channels in all
  Window2d window;
};

// Visits every pair of elements that a weight joins: f(x, weight, y) with row-major positions.
template <class F>
void visit(const Case& c, F f) {
  const Window2d& w = c.window;
  const int64_t per_in = c.inputs / w.groups, per_out = c.outputs / w.groups;
  const int64_t rows = w.count(0, c.height), columns = w.count(1, c.width);
  for (int64_t n = 0; n < c.images; n++) {
    for (int64_t o = 0; o < c.outputs; o++) {
      for (int64_t i = 0; i < per_in; i++) {
        for (int64_t kh = 0; kh < w.size[0]; kh++) {
          for (int64_t kw = 0; kw < w.size[1]; kw++) {
            for (int64_t oh = 0; oh < rows; oh++) {
              const int64_t ih = oh * w.stride[0] + kh * w.dilation[0] - w.before[0];
              if (ih < 0 || ih >= c.height) continue;
              for (int64_t ow = 0; ow < columns; ow++) {
                const int64_t iw = ow * w.stride[1] + kw * w.dilation[1] - w.before[1];
                if (iw < 0 || iw >= c.width) continue;
                const int64_t channel = o / per_out * per_in + i;
                f(size_t(((n * c.inputs + channel) * c.height + ih) * c.width + iw),
                  size_t(((o * per_in + i) * w.size[0] + kh) * w.size[1] + kw),
                  size_t(((n * c.outputs + o) * rows + oh) * columns + ow));
              }
            }
          }
        }
      }
    }
  }
}

void check(DType dtype, const Case& c, Style style, std::mt19937& random) {
  Window2d w = c.window;
  w.extent[0] = c.height;
  w.extent[1] = c.width;
  const int64_t rows = w.count(0, c.height), columns = w.count(1, c.width);
  if (rows < 1 || columns < 1) return;
  Value x = random_operand(dtype, {c.images, c.inputs, c.height, c.width}, style, random, -2, 2);
  Value weight = random_operand(dtype, {c.outputs, c.inputs / w.groups, w.size[0], w.size[1]},
                                style, random, -2, 2);
  Value dy = random_operand(dtype, {c.images, c.outputs, rows, columns}, style, random, -2, 2);
  std::vector<double> y(dy.numbers.size()), dx(x.numbers.size()), dw(weight.numbers.size());
  visit(c, [&](size_t at_x, size_t at_weight, size_t at_y) {
    y[at_y] += x.numbers[at_x] * weight.numbers[at_weight];
    dx[at_x] += dy.numbers[at_y] * weight.numbers[at_weight];
    dw[at_weight] += dy.numbers[at_y] * x.numbers[at_x];
  });
  std::string where = text_of(x.type) + " * " + text_of(weight.type) + " style " +
                      std::to_string(int(style)) + " window";
  for (int64_t number : w.pack()) where += " " + std::to_string(number);
  const double terms = double(c.inputs * w.size[0] * w.size[1]);
  expect_near(run(prepare_convolve, Op::convolve, {&x, &weight}, w.pack()), y, terms, where);
  expect_near(run(prepare_convolve, Op::convolve_input, {&dy, &weight}, w.pack()), dx,
              double(c.outputs * w.size[0] * w.size[1]), "input gradient " + where);
  expect_near(run(prepare_convolve, Op::convolve_weight, {&x, &dy}, w.pack()), dw,
              double(c.images * rows * columns), "weight gradient " + where);
}

Window2d window(int64_t kh, int64_t kw, int64_t stride, int64_t dilation, int64_t before,
                int64_t after, int64_t groups) {
  Window2d w;
  w.size[0] = kh, w.size[1] = kw;
  w.stride[0] = stride, w.stride[1] = stride;
  w.dilation[0] = dilation, w.dilation[1] = dilation;
  w.before[0] = before, w.before[1] = after;
  w.after[0] = after, w.after[1] = before;
  w.groups = groups;
  return w;
}

TEST(Convolve, SweepOfWindows) {
  std::mt19937 random(1);
  for (int64_t size : {1, 2, 3, 5}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t dilation : {1, 2}) {
        for (int64_t before : {0, 1, 4}) {
          for (int64_t after : {0, 2}) {
            const int64_t width = size == 5 ? 2 : size;
            const Window2d w = window(size, width, stride, dilation, before, after, 1);
            check(DType::f32, {2, 3, 4, 9, 7, w}, Style::plain, random);
          }
        }
      }
    }
  }
}

// Weight gradients as products: of one picture, of several at once and in turns, and of groups.
TEST(Convolve, ManyChannelsAndShortLines) {
  std::mt19937 random(7);
  for (const Style style : {Style::plain, Style::spaced, Style::reversed_axes}) {
    for (const int64_t stride : {1, 2}) {
      check(DType::f32, {3, 6, 17, 9, 7, window(3, 3, stride, 1, 1, 1, 1)}, style, random);
      check(DType::f64, {1, 40, 34, 5, 6, window(2, 3, stride, 1, 1, 0, 2)}, style, random);
      check(DType::bf16, {2, 20, 16, 6, 6, window(1, 1, stride, 1, 0, 0, 1)}, style, random);
    }
  }
  check(DType::f32, {40, 16, 16, 14, 14, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
}

// Windows that go to Winograd's method: even and odd sizes, every padding, several blocks of lines,
// depths and pictures; f64 goes the plain way.
TEST(Convolve, TilesOfWinograd) {
  std::mt19937 random(8);
  for (const Style style : kStyles) {
    check(DType::f32, {3, 24, 30, 9, 14, window(3, 3, 1, 1, 1, 1, 1)}, style, random);
  }
  for (const int64_t before : {0, 1, 2}) {
    for (const int64_t after : {0, 1, 2}) {
      check(DType::f32, {2, 20, 25, 7, 10, window(3, 3, 1, 1, before, after, 1)}, Style::plain,
            random);
      check(DType::f32, {1, 44, 42, 8, 9, window(3, 3, 1, 1, before, after, 2)}, Style::plain,
            random);
    }
  }
  check(DType::f32, {1, 300, 16, 6, 6, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
  check(DType::f32, {9, 33, 64, 14, 14, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
  check(DType::f32, {2, 32, 32, 5, 270, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
  check(DType::f64, {1, 32, 32, 6, 6, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
}

// What is not finite reaches the results of its windows and no others, as what it is.
TEST(Convolve, NotFiniteStaysInItsWindows) {
  for (const double wrong : {double(INFINITY), double(-INFINITY), double(NAN), 3e38}) {
    const Shape picture{2, 32, 8, 8}, kernel{32, 32, 3, 3};
    Value x = operand(DType::f32, picture, Style::plain, [&](int64_t i) {
      return i == 32 * 64 + 3 * 64 + 4 * 8 + 5 ? wrong : double(i % 7 - 3);
    });
    Value weight = operand(DType::f32, kernel, Style::plain,
                           [](int64_t i) { return i % 5 == 2 ? 64.0 : double(i % 5); });
    Window2d w = window(3, 3, 1, 1, 1, 1, 1);
    w.extent[0] = w.extent[1] = 8;
    std::vector<double> y(2 * 32 * 64), dx(y.size()), dw(32 * 32 * 9);
    visit({2, 32, 32, 8, 8, w}, [&](size_t at_x, size_t at_weight, size_t at_y) {
      y[at_y] += x.numbers[at_x] * weight.numbers[at_weight];
      dx[at_x] += x.numbers[at_y] * weight.numbers[at_weight];
      dw[at_weight] += x.numbers[at_y] * x.numbers[at_x];
    });
    const auto compare = [&](const Value& got, const std::vector<double>& want, const char* what) {
      for (size_t i = 0; i < want.size(); i++) {
        const double as_f32 = double(float(want[i]));
        if (std::isfinite(as_f32)) {
          ASSERT_NEAR(got.numbers[i], as_f32, 1e-6 * std::abs(as_f32) + 1e-2) << what << i;
        } else {
          ASSERT_EQ(std::isnan(got.numbers[i]), std::isnan(as_f32)) << what << i;
          ASSERT_TRUE(std::isnan(as_f32) || got.numbers[i] == as_f32) << what << i;
        }
      }
    };
    compare(run(prepare_convolve, Op::convolve, {&x, &weight}, w.pack()), y, "y ");
    compare(run(prepare_convolve, Op::convolve_input, {&x, &weight}, w.pack()), dx, "dx ");
    compare(run(prepare_convolve, Op::convolve_weight, {&x, &x}, w.pack()), dw, "dw ");
  }
}

TEST(Convolve, GroupsAndDepthwise) {
  std::mt19937 random(2);
  for (int64_t groups : {1, 2, 6}) {
    for (int64_t stride : {1, 2}) {
      check(DType::f32, {2, 6, 12, 11, 13, window(3, 3, stride, 1, 1, 1, groups)}, Style::plain,
            random);
      check(DType::f64, {1, 6, 6, 8, 8, window(3, 2, stride, 1, 1, 0, groups)}, Style::plain,
            random);
    }
  }
}

// A channel on its own is read line by line: lines shorter and longer than vectors, all kinds of
// windows, and padding that leaves lines of zeros alone.
TEST(Convolve, DepthwiseLines) {
  std::mt19937 random(9);
  for (const Style style : kStyles) {
    check(DType::f32, {2, 3, 3, 9, 40, window(3, 3, 1, 1, 1, 1, 3)}, style, random);
  }
  for (const int64_t width : {1, 7, 8, 31, 32, 45}) {
    for (const int64_t size : {1, 2, 3, 5}) {
      for (const int64_t stride : {1, 2}) {
        for (const int64_t dilation : {1, 2}) {
          check(DType::f32, {1, 2, 2, 11, width, window(size, size, stride, dilation, 1, 4, 2)},
                Style::plain, random);
        }
      }
    }
  }
}

TEST(Convolve, EveryLayoutAndType) {
  std::mt19937 random(3);
  for (Style style : kStyles) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64}) {
      check(dtype, {3, 4, 6, 7, 9, window(3, 3, 1, 1, 1, 1, 2)}, style, random);
      check(dtype, {3, 2, 3, 7, 9, window(3, 2, 2, 1, 1, 0, 1)}, style, random);
    }
  }
}

TEST(Convolve, ShapesOfNetworks) {
  std::mt19937 random(4);
  check(DType::f32, {9, 1, 16, 28, 28, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
  check(DType::f32, {5, 16, 32, 14, 14, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
  check(DType::f32, {2, 3, 20, 23, 23, window(7, 7, 2, 1, 3, 3, 1)}, Style::plain, random);
  check(DType::f32, {1, 50, 40, 6, 6, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
  check(DType::f32, {1, 24, 17, 30, 30, window(1, 1, 1, 1, 0, 0, 1)}, Style::plain, random);
  check(DType::f32, {40, 2, 2, 5, 5, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
}

TEST(Convolve, PaddingWiderThanTheKernel) {
  std::mt19937 random(5);
  check(DType::f32, {1, 1, 1, 3, 3, window(1, 1, 1, 1, 4, 5, 1)}, Style::plain, random);
  check(DType::f32, {1, 2, 3, 1, 1, window(3, 3, 1, 1, 3, 3, 1)}, Style::plain, random);
  check(DType::f32, {1, 2, 3, 2, 40, window(3, 3, 3, 2, 6, 6, 1)}, Style::plain, random);
}

TEST(Convolve, NoImages) {
  std::mt19937 random(6);
  check(DType::f32, {0, 2, 3, 5, 5, window(3, 3, 1, 1, 1, 1, 1)}, Style::plain, random);
}

std::vector<double> pooled(const Value& x, const Window2d& w) {
  const Shape& s = x.type.shape;
  const int64_t rows = w.count(0, s[2]), columns = w.count(1, s[3]);
  std::vector<double> out;
  for (int64_t plane = 0; plane < s[0] * s[1]; plane++) {
    for (int64_t t = 0; t < rows * columns; t++) {
      int64_t best = -1;
      for (int64_t k = 0; k < w.size[0] * w.size[1]; k++) {
        const int64_t h = t / columns * w.stride[0] + k / w.size[1] * w.dilation[0] - w.before[0];
        const int64_t v = t % columns * w.stride[1] + k % w.size[1] * w.dilation[1] - w.before[1];
        if (h < 0 || h >= s[2] || v < 0 || v >= s[3]) continue;
        const auto at = [&](int64_t i) { return x.numbers[size_t(plane * s[2] * s[3] + i)]; };
        const int64_t here = h * s[3] + v;
        if (best < 0 || at(here) > at(best) || (std::isnan(at(here)) && !std::isnan(at(best)))) {
          best = here;
        }
      }
      out.push_back(double(std::max<int64_t>(best, 0)));
    }
  }
  return out;
}

TEST(PoolArgmax, WindowsLayoutsAndNan) {
  std::mt19937 random(7);
  for (Style style : kStyles) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::u8}) {
      for (int64_t size : {1, 2, 3}) {
        for (int64_t stride : {1, 2}) {
          for (int64_t dilation : {1, 2}) {
            const Window2d w = window(size, size, stride, dilation, size / 2, 0, 1);
            for (const int64_t width : {7, 38}) {  // more than a vector of windows
              Value x = random_operand(dtype, {2, 3, 8, width}, style, random, -3, 3);
              expect_same(run(prepare_pool, Op::pool_argmax, {&x}, w.pack()), pooled(x, w), "pool");
            }
          }
        }
      }
    }
  }
  Value x = operand(DType::f32, {1, 1, 4, 4}, Style::plain, [](int64_t i) {
    return i == 5 || i == 10 ? NAN : i == 2 ? INFINITY : double(-i);
  });
  const Window2d w = window(2, 2, 2, 1, 0, 0, 1);
  expect_same(run(prepare_pool, Op::pool_argmax, {&x}, w.pack()), pooled(x, w), "pool of nan");
  for (const int64_t stride : {1, 2}) {  // ties, NaN and infinities among many windows
    Value line = operand(DType::f32, {1, 2, 9, 41}, Style::plain, [](int64_t i) {
      return i % 11 == 0 ? NAN : i % 13 == 0 ? INFINITY : i % 17 == 0 ? -INFINITY : double(i % 4);
    });
    const Window2d wide = window(3, 3, stride, 1, 1, 1, 1);
    expect_same(run(prepare_pool, Op::pool_argmax, {&line}, wide.pack()), pooled(line, wide),
                "pool of nan");
  }
}

}  // namespace
}  // namespace fornax::flex
