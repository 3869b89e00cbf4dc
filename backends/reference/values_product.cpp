// Reference values of matrix products, convolutions and pooling: plain loops that collect the terms
// of one result and add them by halves, in double or in 64-bit integers that wrap.
#include <cmath>
#include <limits>

#include "backends/reference/value.h"
#include "base/error.h"
#include "graph/attributes.h"

namespace fornax::reference {
namespace {

size_t at(const Shape& shape, int64_t i, int64_t j, int64_t k, int64_t l) {
  return size_t(((i * shape[1] + j) * shape[2] + k) * shape[3] + l);
}

// Element `tap` of window `window` along spatial axis `axis` is this element of x.
int64_t place(const Window2d& w, int axis, int64_t window, int64_t tap) {
  return window * w.stride[axis] - w.before[axis] + tap * w.dilation[axis];
}

bool within(int64_t i, int64_t size) { return i >= 0 && i < size; }

// Which of `count` windows along `axis` has element `i` of x under its tap `tap`; -1 where none.
int64_t window_at(const Window2d& w, int axis, int64_t i, int64_t tap, int64_t count) {
  const int64_t start = i + w.before[axis] - tap * w.dilation[axis];
  if (start < 0 || start % w.stride[axis] != 0) return -1;
  const int64_t window = start / w.stride[axis];
  return window < count ? window : -1;
}

// A product that the other backends' accumulators cannot hold is infinite here, too.
template <class N>
N held(DType dtype, N product) {
  if constexpr (std::is_same_v<N, double>) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    if (dtype != DType::f64 && std::fabs(product) > kLargest) {
      return std::copysign(std::numeric_limits<double>::infinity(), product);
    }
  }
  return product;
}

// result at (i, j, k, l) = the sum of the terms that collect(i, j, k, l, add) adds, each add(a, b)
// being the product of element a of input 0 and element b of input 1.
template <class Collect>
void sum_products(const Work& work, Value& result, Collect&& collect) {
  const std::vector<Word>& a = work.input(0).words;
  const std::vector<Word>& b = work.input(1).words;
  with_number_type(result.type.dtype, [&](auto number) {
    using N = decltype(number);
    if constexpr (std::is_same_v<N, numbers::Boolean>) {
      fail(ErrorKind::internal, "{}: bool has no products", info(work.step.op).name);
    } else {
      std::vector<N> terms;
      each(result.type.shape, [&](const Position& p, size_t i) {
        terms.clear();
        collect(p, [&](size_t x, size_t y) {
          terms.push_back(held(result.type.dtype, N(as<N>(a[x]) * as<N>(b[y]))));
        });
        result.words[i] = word_of(sum_of(std::span<const N>(terms)));
      });
    }
  });
}

}  // namespace

void value_matmul(const Work& work, Value& result) {
  const int rank = result.type.shape.rank();
  const size_t row = size_t(rank - 2), column = size_t(rank - 1);
  const Shape &a = work.input(0).type.shape, &b = work.input(1).type.shape;
  sum_products(work, result, [&](const Position& p, auto&& add) {
    Position left = p, right = p;
    for (int64_t k = 0; k < a[rank - 1]; k++) {
      left[column] = right[row] = k;
      add(flat_of(a, left), flat_of(b, right));
    }
  });
}

void value_convolve(const Work& work, Value& result) {
  const Window2d w(work.attributes());
  const Shape &x = work.input(0).type.shape, &weight = work.input(1).type.shape;
  const int64_t per_group = weight[0] / w.groups;
  sum_products(work, result, [&](const Position& p, auto&& add) {
    const auto [n, o, oh, ow] = std::array{p[0], p[1], p[2], p[3]};
    for (int64_t c = 0; c < weight[1]; c++) {
      for (int64_t kh = 0; kh < weight[2]; kh++) {
        for (int64_t kw = 0; kw < weight[3]; kw++) {
          const int64_t h = place(w, 0, oh, kh), v = place(w, 1, ow, kw);
          if (!within(h, x[2]) || !within(v, x[3])) continue;
          add(at(x, n, o / per_group * weight[1] + c, h, v), at(weight, o, c, kh, kw));
        }
      }
    }
  });
}

void value_convolve_input(const Work& work, Value& result) {
  const Window2d w(work.attributes());
  const Shape &dy = work.input(0).type.shape, &weight = work.input(1).type.shape;
  const int64_t per_group = weight[0] / w.groups;
  sum_products(work, result, [&](const Position& p, auto&& add) {
    const auto [n, c, h, v] = std::array{p[0], p[1], p[2], p[3]};
    const int64_t first = c / weight[1] * per_group;
    for (int64_t o = first; o < first + per_group; o++) {
      for (int64_t kh = 0; kh < weight[2]; kh++) {
        for (int64_t kw = 0; kw < weight[3]; kw++) {
          const int64_t oh = window_at(w, 0, h, kh, dy[2]), ow = window_at(w, 1, v, kw, dy[3]);
          if (oh >= 0 && ow >= 0) add(at(dy, n, o, oh, ow), at(weight, o, c % weight[1], kh, kw));
        }
      }
    }
  });
}

void value_convolve_weight(const Work& work, Value& result) {
  const Window2d w(work.attributes());
  const Shape &x = work.input(0).type.shape, &dy = work.input(1).type.shape;
  const int64_t channels = result.type.shape[1], per_group = dy[1] / w.groups;
  sum_products(work, result, [&](const Position& p, auto&& add) {
    const auto [o, c, kh, kw] = std::array{p[0], p[1], p[2], p[3]};
    for (int64_t n = 0; n < x[0]; n++) {
      for (int64_t oh = 0; oh < dy[2]; oh++) {
        for (int64_t ow = 0; ow < dy[3]; ow++) {
          const int64_t h = place(w, 0, oh, kh), v = place(w, 1, ow, kw);
          if (!within(h, x[2]) || !within(v, x[3])) continue;
          add(at(x, n, o / per_group * channels + c, h, v), at(dy, n, o, oh, ow));
        }
      }
    }
  });
}

void value_pool_argmax(const Work& work, Value& result) {
  const Window2d w(work.attributes());
  const Value& x = work.input(0);
  const Shape& shape = x.type.shape;
  with_number_type(x.type.dtype, [&](auto number) {
    using N = decltype(number);
    each(result.type.shape, [&](const Position& p, size_t i) {
      int64_t best = -1;
      N largest{};
      for (int64_t kh = 0; kh < w.size[0]; kh++) {
        for (int64_t kw = 0; kw < w.size[1]; kw++) {
          const int64_t h = place(w, 0, p[2], kh), v = place(w, 1, p[3], kw);
          if (!within(h, shape[2]) || !within(v, shape[3])) continue;
          const N element = as<N>(x.words[at(shape, p[0], p[1], h, v)]);
          const bool beats =
              !numbers::is_nan(largest) && (numbers::is_nan(element) || element > largest);
          if (best >= 0 && !beats) continue;
          best = h * shape[3] + v;
          largest = element;
        }
      }
      if (best < 0) {
        fail(ErrorKind::value, "pool_argmax: window [{},{}] over {} holds padding only; use less",
             p[2], p[3], text_of(x.type));
      }
      result.words[i] = word_of(numbers::Signed(best));
    });
  });
}

}  // namespace fornax::reference
