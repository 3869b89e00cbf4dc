// Where parameters start.  Random numbers come from the device's seed, so that equal seeds give
// equal models on every backend.
#include <fornax/nn.h>

#include <cmath>

#include "base/error.h"

namespace fornax::nn {
namespace {

double divisor(Initializer::Scale scale, Fan fan) {
  switch (scale) {
    case Initializer::Scale::none:
      return 1;
    case Initializer::Scale::fan_in:
      return std::sqrt(double(fan.in));
    case Initializer::Scale::fan_out:
      return std::sqrt(double(fan.out));
    case Initializer::Scale::fan_average:
      return std::sqrt(double(fan.in + fan.out) / 2);
  }
  return 1;
}

// Makes the `count` vectors of `length` in `values` orthonormal, twice over as once loses digits.
void orthonormalize(std::vector<double>& values, size_t count, size_t length) {
  for (size_t i = 0; i < count; i++) {
    double* vector = &values[i * length];
    for (int pass = 0; pass < 2; pass++) {
      for (size_t j = 0; j < i; j++) {
        const double* other = &values[j * length];
        double dot = 0;
        for (size_t k = 0; k < length; k++) dot += vector[k] * other[k];
        for (size_t k = 0; k < length; k++) vector[k] -= dot * other[k];
      }
    }
    double norm = 0;
    for (size_t k = 0; k < length; k++) norm += vector[k] * vector[k];
    norm = std::sqrt(norm);
    for (size_t k = 0; k < length; k++) vector[k] /= norm;
  }
}

Tensor orthogonal_start(const Shape& shape, double gain, Options o) {
  if (shape.rank() < 2 || shape.element_count() == 0) {
    fail(ErrorKind::shape, "orthogonal: {} is not a matrix; it needs two axes and some elements",
         text_of(shape));
  }
  const int64_t rows = shape[0], columns = shape.element_count() / rows;
  const bool wide = rows <= columns;
  const int64_t count = wide ? rows : columns, length = wide ? columns : rows;
  const Device device = o.device.inner();
  std::vector<double> values =
      fornax::normal({count, length}, 0, 1, {DType::f64, device}).to_vector<double>();
  orthonormalize(values, size_t(count), size_t(length));
  const Tensor vectors = from(values, {count, length}, device);
  const Tensor matrix = wide ? vectors : vectors.transpose();
  return (matrix * gain).reshape(shape).cast(o.dtype);
}

}  // namespace

Tensor Initializer::operator()(const Shape& shape, Fan fan, Options o, Site site) const {
  const Call call("initializer", site);
  const double by = divisor(scale, fan);
  Tensor value;
  switch (kind) {
    case Kind::constant:
      value = full(shape, a, o);
      break;
    case Kind::uniform:
      value = fornax::uniform(shape, a / by, b / by, o);
      break;
    case Kind::normal:
      value = fornax::normal(shape, a, b / by, o);
      break;
    case Kind::orthogonal:
      value = orthogonal_start(shape, a, o).to(o.device);
      break;
  }
  return value.detach();
}

Initializer constant(double value) { return {.kind = Initializer::Kind::constant, .a = value}; }

Initializer uniform(double low, double high) {
  return {.kind = Initializer::Kind::uniform, .a = low, .b = high};
}

Initializer normal(double mean, double deviation) {
  return {.kind = Initializer::Kind::normal, .a = mean, .b = deviation};
}

namespace {
// A uniform distribution within +-bound has the deviation bound / sqrt(3).
Initializer uniform_with(double deviation, Initializer::Scale scale) {
  const double bound = deviation * std::sqrt(3.0);
  return {.kind = Initializer::Kind::uniform, .scale = scale, .a = -bound, .b = bound};
}
Initializer normal_with(double deviation, Initializer::Scale scale) {
  return {.kind = Initializer::Kind::normal, .scale = scale, .a = 0, .b = deviation};
}
Initializer::Scale scale_of(FanMode mode) {
  return mode == FanMode::in ? Initializer::Scale::fan_in : Initializer::Scale::fan_out;
}
}  // namespace

Initializer kaiming_uniform(double gain, FanMode mode) {
  return uniform_with(gain, scale_of(mode));
}
Initializer kaiming_normal(double gain, FanMode mode) { return normal_with(gain, scale_of(mode)); }
Initializer xavier_uniform(double gain) {
  return uniform_with(gain, Initializer::Scale::fan_average);
}
Initializer xavier_normal(double gain) {
  return normal_with(gain, Initializer::Scale::fan_average);
}
Initializer orthogonal(double gain) { return {.kind = Initializer::Kind::orthogonal, .a = gain}; }
Initializer fan_in_uniform() {
  return {.kind = Initializer::Kind::uniform, .scale = Initializer::Scale::fan_in, .a = -1, .b = 1};
}

}  // namespace fornax::nn
