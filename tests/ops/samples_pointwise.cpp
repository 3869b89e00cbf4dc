// Samples of elementwise ops, from their rows alone, and the table of all sample functions.
#include <algorithm>

#include "tests/ops/sample.h"

namespace fornax::conformance {
namespace {

// Which operand is smaller than the result, and how it is repeated.
enum class Spread { none, scalar, row, column };

Shape spread(const Shape& shape, Spread how) {
  Shape result = shape;
  if (shape.rank() == 0 || how == Spread::none) return result;
  if (how == Spread::scalar) return {};
  if (how == Spread::row) return {shape[shape.rank() - 1]};
  result[result.rank() - 1] = 1;
  return result;
}

Sample pointwise(Op op, DType dtype, const Shape& shape, Fill fill, int small = -1,
                 Spread how = Spread::none) {
  Sample sample;
  const OpInfo& row = info(op);
  for (int i = 0; i < row.inputs; i++) {
    const bool condition = row.rule == Rule::selected && i == 0;
    sample.inputs.push_back(
        {{condition ? DType::bool_ : dtype, i == small ? spread(shape, how) : shape},
         condition ? Fill::tame : fill});
  }
  return sample;
}

Samples pointwise_samples(Op op, DType dtype) {
  if (!takes(op, dtype)) return {};
  Samples samples;
  // The first one meets all pairs of special numbers and is tried in every form.
  for (const Shape& shape : {Shape{613}, Shape{2, 3, 5}, Shape{}, Shape{0}, Shape{1},
                             Shape{2, 0, 3}, Shape{7, 1, 13}, Shape{31, 37}}) {
    samples.push_back(pointwise(op, dtype, shape, Fill::special));
  }
  samples.push_back(pointwise(op, dtype, {1009}, Fill::tame));
  if (dtype == DType::f32 || dtype == DType::i64 || dtype == DType::bool_) {
    samples.push_back(pointwise(op, dtype, {70001}, Fill::tame));
  }
  for (int small = 0; small < info(op).inputs && info(op).inputs > 1; small++) {
    for (Spread how : {Spread::scalar, Spread::row, Spread::column}) {
      samples.push_back(pointwise(op, dtype, {5, 3, 4}, Fill::special, small, how));
      samples.push_back(pointwise(op, dtype, {41, 29}, Fill::tame, small, how));
    }
  }
  return samples;
}

using SampleRule = Samples (*)(DType);
constexpr SampleRule kRules[] = {
#define OP1(...) nullptr,
#define OP2(...) nullptr,
#define OP3(...) nullptr,
#define OPX(name, ...) samples_##name,
#include <fornax/ops.def>
};

int64_t largest(const Sample& sample) {
  int64_t count = 0;
  for (const Input& input : sample.inputs) {
    count = std::max(count, input.type.shape.element_count());
  }
  return count;
}

}  // namespace

Samples samples_of(Op op, DType dtype) {
  return is_pointwise(op) ? pointwise_samples(op, dtype) : kRules[size_t(op)](dtype);
}

Samples gradient_samples_of(Op op) {
  Samples samples;
  for (Sample& sample : samples_of(op, DType::f64)) {
    if (largest(sample) > 40) continue;
    for (Input& input : sample.inputs) {
      if (input.fill != Fill::position) input.fill = Fill::tame;
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

Sample speed_sample_of(Op op, DType dtype) {
  if (is_pointwise(op)) {
    return takes(op, dtype) ? pointwise(op, dtype, {1 << 20}, Fill::tame) : Sample{};
  }
  Sample largest_yet;
  for (Sample& sample : samples_of(op, dtype)) {
    if (largest(sample) >= largest(largest_yet)) largest_yet = std::move(sample);
  }
  return largest_yet;
}

}  // namespace fornax::conformance
