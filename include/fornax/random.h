// Where the random numbers of a device stand, to go on from there later: what dropout and random
// tensors draw next is a function of this state alone.  Device::seed() starts a new one.
#pragma once
#include <fornax/device.h>

namespace fornax {

struct RandomState {
  uint64_t seed = 0;
  uint64_t counter = 0;  // blocks of numbers drawn since
  bool operator==(const RandomState&) const = default;
};
// Safe from any thread; not to be called while another one draws, whose numbers are then in doubt.
RandomState random_state(const Device& device);
void set_random_state(const Device& device, const RandomState& state);

}  // namespace fornax
