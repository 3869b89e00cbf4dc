// Samples of leaves, views and ops that index.
#include "graph/attributes.h"
#include "tests/ops/sample.h"

namespace fornax::conformance {
namespace {

// One operand of each shape with the attributes beside it.
struct Row {
  Shape shape;
  Attributes attributes;
};
Samples unary(DType dtype, std::initializer_list<Row> rows, Fill fill = Fill::special) {
  Samples samples;
  for (const Row& row : rows) samples.push_back({{{{dtype, row.shape}, fill}}, row.attributes});
  return samples;
}

Attributes window(int64_t axis, int64_t size, int64_t step, int64_t dilation, int64_t extent) {
  return {axis, size, step, dilation, extent};
}
Attributes both(Attributes a, const Attributes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

// Every operand is a leaf, and the form `number` a full: samples of other ops cover both.
Samples samples_leaf(DType) { return {}; }
Samples samples_full(DType) { return {}; }

Samples samples_arange(DType dtype) {
  if (is_boolean(dtype)) return {};
  Samples samples;
  for (int64_t count : {0, 1, 6, 1009}) {
    const Input scalar{{dtype, {}}};
    samples.push_back({{scalar, scalar}, {int64_t(dtype), count}});
  }
  return samples;
}

Samples samples_random_bits(DType dtype) {
  if (dtype != DType::u64) return {};  // the dtype of key and counter
  Samples samples;
  for (const Attributes& sizes : {Attributes{}, {0}, {5}, {3, 7}, {1009}}) {
    samples.push_back(
        {{{{dtype, {}}, Fill::position, 1 << 30}, {{dtype, {}}, Fill::special}}, sizes});
  }
  return samples;
}

Samples samples_cast(DType dtype) {
  Samples samples;
  for (int to = 0; to < kDTypeCount; to++) {
    samples.push_back({{{{dtype, {67}}, Fill::special}}, {to}});
    samples.push_back({{{{dtype, {3, 0}}, Fill::special}}, {to}});
  }
  samples.push_back({{{{dtype, {1009}}, Fill::tame}}, {int64_t(DType::f32)}});
  return samples;
}

Samples samples_detach(DType dtype) { return unary(dtype, {{{2, 3}, {}}, {{}, {}}, {{0}, {}}}); }

Samples samples_reshape(DType dtype) {
  return unary(dtype, {{{2, 6}, {3, 4}},
                       {{0, 4}, {2, 0}},
                       {{}, {1, 1}},
                       {{3, 1, 4}, {12}},
                       {{1}, {}},
                       {{41, 29}, {29, 41}}});
}

Samples samples_permute(DType dtype) {
  return unary(dtype, {{{2, 3, 4}, {2, 0, 1}},
                       {{}, {}},
                       {{0, 3}, {1, 0}},
                       {{2, 2, 3, 2}, {3, 1, 2, 0}},
                       {{61, 67}, {1, 0}}});
}

Samples samples_expand(DType dtype) {
  return unary(dtype, {{{3, 1}, {2, 3, 4}}, {{}, {2, 2}}, {{1}, {0}}, {{1, 29}, {37, 29}}});
}

Samples samples_slice(DType dtype) {
  return unary(dtype, {{{7, 5}, {1, 3, 2, 4, 5, -1}},
                       {{9}, {8, 3, -3}},
                       {{4}, {0, 0, 1}},
                       {{4}, {3, 1, -7}},
                       {{61, 67}, {60, 31, -2, 3, 20, 3}}});
}

Samples samples_unfold(DType dtype) {
  return unary(dtype, {{{7}, window(0, 3, 2, 1, 7)},
                       {{4, 5}, both(window(0, 2, 1, 1, 4), window(1, 2, 1, 3, 5))},
                       {{2, 3, 4}, window(1, 3, 1, 1, 3)},
                       {{31, 37}, both(window(1, 5, 3, 2, 37), window(0, 4, 2, 1, 31))}});
}

Samples samples_fold(DType dtype) {
  return unary(dtype,
               {{{3, 2}, window(0, 2, 1, 1, 4)},
                {{2, 3, 2, 2}, both(window(0, 2, 1, 1, 3), window(1, 2, 2, 2, 7))},
                {{0, 2, 2}, window(1, 2, 1, 1, 3)},
                {{14, 10, 5, 4}, both(window(1, 5, 3, 2, 37), window(0, 4, 2, 1, 31))}},
               Fill::tame);
}

Samples samples_pad(DType dtype) {
  Samples samples;
  for (const Row& row :
       {Row{{3, 4}, {1, 2, 0, 0, 1, 1}}, Row{{5, 4}, {-1, -2, 0, 2, -1, 2}}, Row{{}, {}},
        Row{{0, 2}, {1, 1, 0, 0, 0, 0}}, Row{{3}, {0, 0, 2}}, Row{{31, 37}, {2, 3, 1, -5, 0, 0}}}) {
    samples.push_back({{{{dtype, row.shape}, Fill::special}, {{dtype, {}}}}, row.attributes});
  }
  return samples;
}

Samples samples_cat(DType dtype) {
  const auto part = [&](Shape shape) { return Input{{dtype, shape}, Fill::special}; };
  return {{{part({2, 3}), part({2, 0}), part({2, 4})}, {1}},
          {{part({2, 3}), part({1, 3})}, {0}},
          {{part({5})}, {0}},
          {{part({0}), part({0})}, {0}},
          {{part({2}), part({1}), part({1}), part({3}), part({2}), part({1}), part({1}), part({3}),
            part({2}), part({4})},
           {0}},
          {{part({31, 37}), part({31, 1}), part({31, 5})}, {1}}};
}

Samples samples_gather(DType dtype) {
  const auto sample = [&](Shape x, DType index, Shape index_shape, int axis) {
    return Sample{{{{dtype, x}, Fill::special}, {{index, index_shape}, Fill::position, x[axis]}},
                  {axis}};
  };
  return {sample({5, 4}, DType::i64, {3, 4}, 0),
          sample({2, 3, 4}, DType::i32, {2, 3, 2}, 2),
          sample({2, 3, 4}, DType::u8, {2, 5, 4}, 1),
          sample({5, 4}, DType::i64, {0, 4}, 0),
          sample({7}, DType::i64, {1}, 0),
          sample({31, 37}, DType::i64, {61, 37}, 0),
          sample({31, 37}, DType::i16, {31, 64}, 1)};
}

Samples samples_scatter(DType dtype) {
  Samples samples;
  for (ScatterMode mode : {ScatterMode::assign, ScatterMode::add, ScatterMode::multiply,
                           ScatterMode::minimum, ScatterMode::maximum}) {
    const Fill fill = mode == ScatterMode::multiply ? Fill::unit : Fill::tame;
    const auto sample = [&](Shape base, DType index, Shape shape, int axis) {
      samples.push_back({{{{dtype, base}, fill},
                          {{index, shape}, Fill::position, base[axis]},
                          {{dtype, shape}, fill}},
                         ScatterSettings::pack(axis, mode)});
    };
    sample({5, 3}, DType::i64, {4, 3}, 0);
    sample({2, 3, 2}, DType::i32, {2, 5, 2}, 1);
    sample({2, 4}, DType::i64, {2, 0}, 1);
    sample({31, 37}, DType::i64, {31, 64}, 1);
  }
  return samples;
}

}  // namespace fornax::conformance
