// Samples of reductions, scans, products and convolutions.
#include "graph/attributes.h"
#include "tests/ops/sample.h"

namespace fornax::conformance {
namespace {

Samples reduce(DType dtype, Fill fill, bool of_nothing) {
  Samples samples;
  const auto add = [&](Shape shape, Attributes axes) {
    samples.push_back({{{{dtype, shape}, fill}}, std::move(axes)});
  };
  add({5, 7}, {0});
  add({5, 7}, {1});
  add({5, 7}, {0, 1});
  add({2, 3, 2, 3}, {1, 3});
  add({2, 3, 2, 3}, {0, 2});
  add({}, {});
  add({4}, {});
  add({0, 3}, {1});
  add({1009}, {0});
  add({257, 33}, {0});
  add({33, 257}, {1});
  add({3, 65, 17}, {1});
  if (of_nothing) {
    add({3, 0}, {1});
    add({0}, {0});
  }
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::i32) add({70001}, {0});
  return samples;
}

// Each along one axis.
Samples argument(DType dtype) {
  Samples samples;
  for (Fill fill : {Fill::ties, Fill::special}) {
    for (Sample& sample : reduce(dtype, fill, false)) {
      if (sample.attributes.size() == 1) samples.push_back(std::move(sample));
    }
  }
  return samples;
}

Samples scan(DType dtype, Fill fill) {
  Samples samples;
  const auto add = [&](Shape shape, int64_t axis) {
    samples.push_back({{{{dtype, shape}, fill}}, {axis}});
  };
  add({5, 7}, 0);
  add({5, 7}, 1);
  add({2, 3, 4}, 1);
  add({1}, 0);
  add({0, 3}, 0);
  add({0, 3}, 1);
  add({1009}, 0);
  add({33, 257}, 1);
  add({257, 33}, 0);
  return samples;
}

Samples both(Samples a, const Samples& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool is_number(DType dtype) { return !is_boolean(dtype); }

// A convolution: x [n, c, h, w], `outputs` channels, and the window.
struct Convolution {
  Shape x;
  int64_t outputs;
  Window2d window;
  Type input(DType dtype) const { return {dtype, x}; }
  Type weight(DType dtype) const {
    return {dtype, {outputs, x[1] / window.groups, window.size[0], window.size[1]}};
  }
  Type result(DType dtype) const {
    return {dtype, {x[0], outputs, window.count(0, x[2]), window.count(1, x[3])}};
  }
};

Window2d windowed(int64_t height, int64_t width, int64_t stride = 1, int64_t before = 0,
                  int64_t after = 0, int64_t dilation = 1, int64_t groups = 1) {
  Window2d w;
  w.size[0] = height, w.size[1] = width;
  for (int i = 0; i < 2; i++) {
    w.stride[i] = stride, w.before[i] = before, w.after[i] = after, w.dilation[i] = dilation;
  }
  w.groups = groups;
  return w;
}

std::vector<Convolution> convolutions() {
  return {{{1, 1, 4, 5}, 1, windowed(3, 3)},
          {{2, 2, 3, 3}, 2, windowed(2, 2, 1, 1, 1)},
          {{1, 2, 4, 4}, 2, windowed(2, 1, 2)},
          {{1, 2, 5, 3}, 2, windowed(2, 2, 1, 0, 1, 2, 2)},
          {{1, 3, 2, 2}, 2, windowed(1, 1)},
          {{0, 2, 4, 4}, 3, windowed(3, 3)},
          {{3, 8, 13, 11}, 16, windowed(3, 3, 1, 1, 1)},
          {{2, 6, 17, 9}, 12, windowed(3, 5, 2, 2, 1, 1, 3)},
          {{2, 16, 7, 7}, 16, windowed(3, 3, 1, 1, 1, 1, 16)},
          {{2, 24, 8, 8}, 32, windowed(1, 1)}};
}

}  // namespace

Samples samples_sum(DType dtype) { return reduce(dtype, Fill::tame, true); }
Samples samples_prod(DType dtype) { return reduce(dtype, Fill::unit, true); }
Samples samples_max(DType dtype) {
  return both(reduce(dtype, Fill::tame, false), reduce(dtype, Fill::special, false));
}
Samples samples_min(DType dtype) { return samples_max(dtype); }
Samples samples_any(DType dtype) { return reduce(dtype, Fill::special, true); }
Samples samples_all(DType dtype) { return reduce(dtype, Fill::special, true); }
Samples samples_argmax(DType dtype) { return argument(dtype); }
Samples samples_argmin(DType dtype) { return argument(dtype); }

Samples samples_cumsum(DType dtype) { return scan(dtype, Fill::tame); }
Samples samples_cumprod(DType dtype) { return scan(dtype, Fill::unit); }
Samples samples_cummax(DType dtype) {
  return both(scan(dtype, Fill::tame), scan(dtype, Fill::special));
}
Samples samples_cummin(DType dtype) { return samples_cummax(dtype); }

Samples samples_argsort(DType dtype) {
  Samples samples;
  for (Fill fill : {Fill::ties, Fill::special}) {
    for (Sample& sample : scan(dtype, fill)) {
      for (bool descending : {false, true}) {
        sample.attributes = SortSettings::pack(axis_of(sample.attributes), descending);
        samples.push_back(sample);
      }
    }
  }
  return samples;
}

Samples samples_matmul(DType dtype) {
  if (!is_number(dtype)) return {};
  Samples samples;
  const auto add = [&](Shape a, Shape b) { samples.push_back({{{{dtype, a}}, {{dtype, b}}}, {}}); };
  add({3, 4}, {4, 5});
  add({2, 3, 4}, {2, 4, 3});
  add({2, 1, 2, 3}, {2, 1, 3, 2});
  add({1, 1}, {1, 1});
  add({0, 4}, {4, 3});
  add({3, 0}, {0, 2});
  add({0, 2, 3}, {0, 3, 2});
  add({1, 300}, {300, 1});
  add({17, 33}, {33, 65});
  add({3, 40, 7}, {3, 7, 30});
  add({70, 1}, {1, 90});
  if (is_floating(dtype) && size_of(dtype) >= 2) add({129, 70}, {70, 131});
  return samples;
}

Samples samples_convolve(DType dtype) {
  Samples samples;
  if (!is_number(dtype)) return samples;
  for (const Convolution& c : convolutions()) {
    samples.push_back({{{c.input(dtype)}, {c.weight(dtype)}}, c.window.pack()});
  }
  return samples;
}

Samples samples_convolve_input(DType dtype) {
  Samples samples;
  if (!is_number(dtype)) return samples;
  for (Convolution& c : convolutions()) {
    c.window.extent[0] = c.x[2], c.window.extent[1] = c.x[3];
    samples.push_back({{{c.result(dtype)}, {c.weight(dtype)}}, c.window.pack()});
  }
  return samples;
}

Samples samples_convolve_weight(DType dtype) {
  Samples samples;
  if (!is_number(dtype)) return samples;
  for (const Convolution& c : convolutions()) {
    samples.push_back({{{c.input(dtype)}, {c.result(dtype)}}, c.window.pack()});
  }
  return samples;
}

Samples samples_pool_argmax(DType dtype) {
  Samples samples;
  if (!is_number(dtype)) return samples;
  for (Fill fill : {Fill::special, Fill::ties}) {
    for (const Convolution& c : {Convolution{{1, 1, 4, 6}, 1, windowed(2, 2, 2)},
                                 Convolution{{2, 3, 5, 7}, 3, windowed(3, 2, 1, 1, 0)},
                                 Convolution{{1, 2, 9, 9}, 2, windowed(2, 2, 2, 0, 1, 3)},
                                 Convolution{{0, 2, 4, 4}, 2, windowed(2, 2, 2)},
                                 Convolution{{2, 17, 14, 14}, 17, windowed(2, 2, 2)}}) {
      samples.push_back({{{c.input(dtype), fill}}, c.window.pack()});
    }
  }
  return samples;
}

}  // namespace fornax::conformance
