// Reading results back and measuring how far apart they are.
#include "tests/ops/compare.h"

#include <fmt/core.h>
#include <fornax/ops.h>

#include <algorithm>
#include <cmath>

#include "graph/attributes.h"
#include "graph/evaluate.h"

namespace fornax::conformance {
namespace {

// How the dtype spaces its numbers: bits of the fraction, smallest and largest exponent.
struct Format {
  int fraction, lowest, highest;
};
Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3:
      return {3, -6, 8};
    case DType::f8e5m2:
      return {2, -14, 15};
    case DType::f16:
      return {10, -14, 15};
    case DType::bf16:
      return {7, -126, 127};
    case DType::f32:
      return {23, -126, 127};
    default:
      return {52, -1022, 1023};
  }
}

double unit_at(double x, const Format& format) {
  const int exponent = x == 0 ? format.lowest : std::ilogb(x);
  return std::ldexp(1.0, std::max(exponent, format.lowest) - format.fraction);
}

// Infinity as a number, so that its distance to the largest finite one can be measured.  f64 has no
// number for that: there an overflow must be one on both sides.
double finite(double x, const Format& format) {
  if (!std::isinf(x) || format.highest >= 1023) return x;
  return std::copysign(std::ldexp(1.0, format.highest + 1), x);
}

bool adds(Op op, const Attributes& attributes) {
  switch (op) {
    case Op::sum:
    case Op::prod:
    case Op::cumsum:
    case Op::cumprod:
    case Op::fold:
    case Op::matmul:
    case Op::convolve:
    case Op::convolve_input:
    case Op::convolve_weight:
      return true;
    case Op::scatter: {
      const ScatterMode mode = ScatterSettings(attributes).mode;
      return mode == ScatterMode::add || mode == ScatterMode::multiply;
    }
    default:
      return false;
  }
}

double double_at(const Host& host, int64_t i) {
  const Word word = load(host.type.dtype, host.bytes.data(), i);
  return scalar_of(host.type.dtype, word).as_double();
}

bool agree(const Host& got, const Host& want, int64_t i, const Tolerance& tolerance) {
  const DType dtype = want.type.dtype;
  const Word a = load(dtype, got.bytes.data(), i), b = load(dtype, want.bytes.data(), i);
  if (a == b) return true;
  if (!is_floating(dtype)) return false;
  const double x = as<double>(a), y = as<double>(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  const double absolute = tolerance.absolute.empty() ? 0 : tolerance.absolute[size_t(i)];
  if (tolerance.units == 0 && absolute == 0) return false;  // signed zeros differ
  const Format format = format_of(dtype);
  const double p = finite(x, format), q = finite(y, format);
  return p == q || std::fabs(p - q) <= tolerance.units * unit_at(q, format) + absolute;
}

// The same sum of the operands' magnitudes, in f64.
Host magnitudes(Op op, const Sample& sample, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> wide;
  for (size_t i = 0; i < inputs.size(); i++) {
    const bool position = sample.inputs[i].fill == Fill::position;
    wide.push_back(position ? inputs[i] : inputs[i].cast(DType::f64).abs());
  }
  return read(apply(op, wide, sample.attributes));
}

}  // namespace

bool is_exact(Op op) {
  if (!is_pointwise(op)) return true;
  if (op == Op::div || op == Op::sqrt || op == Op::reciprocal) return true;
  return !gives_floats(info(op).rule) && op != Op::pow;
}

Host read(const Tensor& tensor) {
  Host host{{tensor.dtype(), tensor.shape()}, {}};
  const auto count = size_t(tensor.element_count());
  host.bytes.resize(count * size_of(host.type.dtype));
  switch (host.type.dtype) {
#define FORNAX_DTYPE(name, type, ...)                                             \
  case DType::name:                                                               \
    tensor.copy_to(std::span(reinterpret_cast<type*>(host.bytes.data()), count)); \
    break;
#include <fornax/dtypes.def>
  }
  return host;
}

Tolerance tolerance_of(Op op, const Sample& sample, const std::vector<Tensor>& reference_inputs) {
  Tolerance tolerance;
  if (sample.inputs.empty()) return tolerance;
  const DType dtype = sample.inputs.back().type.dtype;
  if (!is_floating(dtype)) return tolerance;
  const bool narrow = size_of(dtype) < 4;
  if (!adds(op, sample.attributes)) {
    tolerance.units = narrow ? (is_pointwise(op) ? 1 : 0) : is_exact(op) ? 0 : 5;
    return tolerance;
  }
  const Host sums = magnitudes(op, sample, reference_inputs);
  const int64_t results = std::max<int64_t>(sums.type.shape.element_count(), 1);
  double terms = 1;
  for (const Input& input : sample.inputs) {
    terms = std::max(terms, double(input.type.shape.element_count()));
  }
  // Products reuse operands, so the largest operand bounds the terms of one result.
  if (is_reduce(op)) terms /= double(results);
  const bool multiplies = op == Op::prod || op == Op::cumprod || op == Op::scatter;
  const double roundings = multiplies ? terms : 4 + std::sqrt(terms);
  const double epsilon = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  tolerance.units = 1;
  for (int64_t i = 0; i < sums.type.shape.element_count(); i++) {
    tolerance.absolute.push_back(epsilon * roundings * double_at(sums, i));
  }
  return tolerance;
}

std::optional<std::string> difference(const Host& got, const Host& want,
                                      const Tolerance& tolerance) {
  if (got.type != want.type) {
    return fmt::format("is {}, not {}", fornax::text_of(got.type), fornax::text_of(want.type));
  }
  const int64_t count = want.type.shape.element_count();
  int64_t first = -1, wrong = 0;
  for (int64_t i = 0; i < count; i++) {
    if (agree(got, want, i, tolerance)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return std::nullopt;
  std::string text = fmt::format("element {} is {:.17g}, not {:.17g}", first, double_at(got, first),
                                 double_at(want, first));
  if (wrong > 1) text += fmt::format(" ({} of {} are wrong)", wrong, count);
  return text;
}

}  // namespace fornax::conformance
