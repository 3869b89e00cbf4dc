// Gradients against central differences in f64.  A plain header for the tests of this folder.
#pragma once
#include "tests/devices.h"
#include "tests/errors.h"
#include "tests/tensor/expect.h"

namespace fornax {

using Many = std::vector<Tensor>;
using Body = Function<Tensor(const Many&)>;

inline Tensor doubles(const std::vector<double>& values, const Shape& shape, Device device) {
  return from(values, shape, device);
}

// Numbers from -2 to 2 of which no two are closer than 1e-3 and none is near a whole or half one,
// where many functions have corners.
inline Tensor scattered(const Shape& shape, Device device, int seed = 1) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.element_count(); i++) {
    const double turn = std::fmod(0.6180339887498949 * double(i + 1) + 0.137 * seed, 1);
    const double x = 4 * turn - 2, near = std::round(x * 2) / 2;
    values.push_back(std::abs(x - near) < 0.03 ? near + 0.07 : x);
  }
  return doubles(values, shape, device);
}

inline Tensor tracked(const Tensor& x) { return x.detach().require_grad(); }
inline Tensor tracked(std::vector<double> values, Device device) {
  return floats(std::move(values), device).require_grad();
}

// A single number in which every element of y has a weight of its own.
inline Tensor weighted(const Tensor& y) {
  return (y * scattered(y.shape(), y.device(), 3).cast(y.dtype())).sum();
}

inline double value_at(const Body& body, Many inputs, size_t which, size_t element, double change) {
  std::vector<double> values = inputs[which].to_vector<double>();
  values[element] += change;
  inputs[which] = doubles(values, inputs[which].shape(), inputs[which].device());
  return weighted(body(inputs)).item<double>();
}

// Compares d weighted(body(inputs)) / d inputs with differences; inputs are f64.  An input that the
// result does not depend on has the gradient 0.
inline void check_gradients(const char* what, const Body& body, const Many& inputs,
                            double tolerance = 2e-6) {
  SCOPED_TRACE(what);
  Many leaves;
  for (const Tensor& input : inputs) leaves.push_back(tracked(input));
  const Tensor loss = weighted(body(leaves));
  Many gradients(inputs.size());
  if (loss.requires_grad()) gradients = grad({loss}, leaves, {.allow_unused = true});
  const double step = 1e-5;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!gradients[i].defined()) gradients[i] = zeros_like(inputs[i]);
    ASSERT_EQ(text_of(gradients[i].shape()), text_of(inputs[i].shape()));
    ASSERT_EQ(gradients[i].dtype(), inputs[i].dtype());
    const std::vector<double> got = gradients[i].to_vector<double>();
    for (size_t k = 0; k < got.size(); k++) {
      const double above = value_at(body, inputs, i, k, step);
      const double below = value_at(body, inputs, i, k, -step);
      const double wanted = (above - below) / (2 * step);
      EXPECT_NEAR(got[k], wanted, tolerance * (1 + std::abs(wanted)))
          << "input " << i << " element " << k;
    }
  }
}

// The gradient of `body` in its first input as a function of all inputs, itself differentiable.
inline Body gradient_body(Body body) {
  return [body = std::move(body)](const Many& inputs) {
    Many all = inputs;
    if (!all[0].requires_grad()) all[0] = tracked(all[0]);
    const Tensor loss = weighted(body(all));
    if (!loss.requires_grad()) return zeros_like(all[0]);
    const Tensor found = grad({loss}, {all[0]}, {.create_graph = true, .allow_unused = true})[0];
    return found.defined() ? found : zeros_like(all[0]);
  };
}

inline void check_twice(const char* what, const Body& body, const Many& inputs,
                        double tolerance = 2e-6) {
  check_gradients(what, body, inputs, tolerance);
  check_gradients((std::string(what) + ", second derivative").c_str(), gradient_body(body), inputs,
                  tolerance);
}

// What `work` leaves allocated on the device, after everything recorded has run.
inline int64_t growth(Device device, FunctionRef<void()> work) {
  device.sync();
  const size_t before = device.memory().in_use;
  work();
  device.sync();
  return int64_t(device.memory().in_use) - int64_t(before);
}

}  // namespace fornax
