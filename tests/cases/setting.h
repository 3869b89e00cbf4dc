// The ways in which every numeric case runs: on each device, eager and fused, tracked and not, from
// contiguous values and from a view with holes.
#pragma once
#include "tests/tensor/expect.h"

namespace fornax {

struct Setting {
  Device device;
  bool tracks = false;  // gradients on
  bool views = false;   // operands are not contiguous

  // The same values, lying every second element in memory where `views`.
  Tensor laid(const Tensor& x) const {
    return views && x.rank() < kMaxRank ? stack({x, full_like(x, 99)}, -1).select(-1, 0) : x;
  }
  // The value as this setting wants operands.
  Tensor given(const Tensor& x) const {
    return laid(tracks && is_floating(x.dtype()) ? x.require_grad() : x);
  }
  Tensor floats(std::vector<double> values, Shape shape, DType dtype = DType::f32) const {
    return given(from(values, shape, device).cast(dtype));
  }
  Tensor floats(std::vector<double> values, DType dtype = DType::f32) const {
    const Shape shape{int64_t(values.size())};
    return floats(std::move(values), shape, dtype);
  }
  Tensor integers(std::vector<int64_t> values, DType dtype = DType::i64) const {
    return given(from(values, device).cast(dtype));
  }
  // Constants, which take no memory where they are contiguous.
  Tensor zeros(Shape shape) const { return given(fornax::zeros(shape, {.device = device})); }
  Tensor ones(Shape shape) const { return given(fornax::ones(shape, {.device = device})); }
  Tensor iota(Shape shape) const { return given(fornax::iota(shape, device)); }

  // Plain loops in double, on which long cases take too long.
  bool is_slow() const { return device == Device("reference"); }
};

inline void in_every_setting(void (*body)(const Setting&)) {
  for (const DeviceListing& listing : devices()) {
    if (!listing.usable) continue;
    for (int bits = 0; bits < 8; bits++) {
      Device device(listing.name);
      if (bits & 1) device = device.eager();
      if (bits & 2) device = device.autodiff();
      SCOPED_TRACE(listing.name + (bits & 1 ? " eager" : " fused") + (bits & 2 ? " tracked" : "") +
                   (bits & 4 ? " from views" : ""));
      body({device, (bits & 2) != 0, (bits & 4) != 0});
    }
  }
}

// A case of its id, run in every setting, which is named `s` in the body.
#define CASE(id)                                    \
  static void id(const fornax::Setting& s);         \
  TEST(Cases, id) { fornax::in_every_setting(id); } \
  static void id([[maybe_unused]] const fornax::Setting& s)

// A case about gradients: without tracking it has nothing to say.
#define GRADIENT_CASE(id)                                         \
  static void id(const fornax::Setting& s);                       \
  TEST(Cases, id) {                                               \
    fornax::in_every_setting([](const fornax::Setting& setting) { \
      if (setting.tracks) id(setting);                            \
    });                                                           \
  }                                                               \
  static void id(const fornax::Setting& s)

}  // namespace fornax
