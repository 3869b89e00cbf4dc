// Errors that kernels found, as the tests expect them: thrown once the launches are done.
#pragma once
#include "backends/cube/device.h"

namespace fornax::cube {

inline void throw_late_error(Device& device) {
  for (const LateError& late : device.reports().collect()) throw Error(*late.error);
}

}  // namespace fornax::cube
