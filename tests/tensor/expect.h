// What the tests of tensors share: running a test on every device at hand, and comparing values.
#pragma once
#include <fornax/grad.h>
#include <fornax/ops.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fornax {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// TEST whose body runs once per usable device, named `device` in it.
#define TEST_ON_DEVICES(suite, test)                                 \
  static void suite##_##test(fornax::Device device);                 \
  TEST(suite, test) {                                                \
    for (const fornax::DeviceListing& listing : fornax::devices()) { \
      if (!listing.usable) continue;                                 \
      SCOPED_TRACE(listing.name);                                    \
      suite##_##test(fornax::Device(listing.name));                  \
    }                                                                \
  }                                                                  \
  static void suite##_##test([[maybe_unused]] fornax::Device device)

// Within 1e-5 of 1 + |wanted| unless told otherwise; infinities and NaN must match exactly.
inline void expect_values(const Tensor& x, const std::vector<double>& wanted,
                          double tolerance = 1e-5) {
  const std::vector<double> got = x.to_vector<double>();
  ASSERT_EQ(got.size(), wanted.size()) << x.text();
  for (size_t i = 0; i < got.size(); i++) {
    if (std::isnan(wanted[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " of " << x.text();
    } else if (std::isinf(wanted[i])) {
      EXPECT_EQ(got[i], wanted[i]) << "element " << i << " of " << x.text();
    } else {
      EXPECT_NEAR(got[i], wanted[i], tolerance * (1 + std::abs(wanted[i])))
          << "element " << i << " of " << x.text();
    }
  }
}

inline void expect_tensor(const Tensor& x, const Shape& shape, const std::vector<double>& wanted,
                          double tolerance = 1e-5) {
  EXPECT_EQ(text_of(x.shape()), text_of(shape));
  expect_values(x, wanted, tolerance);
}

inline std::vector<double> counting(int64_t count, double start = 0, double step = 1) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; i++) numbers.push_back(start + step * double(i));
  return numbers;
}
inline Tensor floats(std::vector<double> values, Device device) {
  return from(values, device).cast(DType::f32);
}
inline Tensor floats(std::vector<double> values, Shape shape, Device device) {
  return from(values, shape, device).cast(DType::f32);
}
inline Tensor iota(Shape shape, Device device) {
  return arange(shape.element_count(), {.dtype = DType::f32, .device = device}).reshape(shape);
}
inline Tensor integers(std::vector<int64_t> values, Device device) { return from(values, device); }

}  // namespace fornax
