// What the tests of recording and planning share.  They run on the reference backend, so that every
// op is recorded: it has no kernels that run small ops at once.
#pragma once
#include <fornax/grad.h>
#include <fornax/ops.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stream/plan.h"
#include "tests/devices.h"

namespace fornax {

inline Device recorder() { return Device("reference").fused(); }

inline Tensor numbers(const Shape& shape, double start = 1, double step = 1) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.element_count(); i++) {
    values.push_back(float(start + step * double(i)));
  }
  return from(values, shape, recorder());
}

// What `work` ran: "[mul add] [sum]".
template <class Work>
std::string groups_of(Work&& work, Device device = recorder()) {
  std::string text;
  for (const ProfileReport::Group& group : device.profile(work).groups) {
    text += (text.empty() ? "[" : " [") + group.ops + "]";
  }
  return text;
}

inline size_t plans() { return cached_plan_count(recorder().physical()); }

}  // namespace fornax
