// What the models of the benches start from.  For one thread.
#pragma once
#include <cmath>

#include "bench/common/work.h"

namespace bench {

// The same start on every side: matrices from the counter, within 1 / sqrt(rows), kernels of
// convolutions within sqrt(6 / inputs); weights of norms 1 and every bias 0.
template <class Model>
void start(Model& model, Device device) {
  State state = state_of(model);
  uint32_t number = 0;
  for (auto& [path, value] : state) {
    if (path.ends_with("running_mean") || path.ends_with("running_var")) continue;
    const uint32_t seed = 100 + number++;
    std::vector<int64_t> shape;
    for (int axis = 0; axis < value.rank(); axis++) shape.push_back(value.shape(axis));
    if (value.rank() == 4) {
      const double inputs = double(shape[1] * shape[2] * shape[3]);
      value = values(seed, shape, DType::f32, device) * std::sqrt(6 / inputs);
    } else if (value.rank() == 2) {
      value = values(seed, shape, DType::f32, device) / std::sqrt(double(shape[0]));
    } else {
      value = path.ends_with("weight") ? ones_like(value) : zeros_like(value);
    }
  }
  load_state(model, state);
  device.sync();
}

}  // namespace bench
