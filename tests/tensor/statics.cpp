// Devices and tensors in static objects of a program, which may be made before any of the library's
// own files is initialised.
#include "tests/tensor/expect.h"

namespace fornax {
namespace {

const Device kDevice;
const Device kNamed("reference");
const Tensor kTensor = full({2, 3}, 2.0) * 3;

TEST(Statics, hold_devices_and_tensors) {
  EXPECT_EQ(kDevice.name(), Device().name());
  EXPECT_EQ(kNamed.name(), "reference:0");
  expect_tensor(kTensor, {2, 3}, {6, 6, 6, 6, 6, 6});
}

}  // namespace
}  // namespace fornax
