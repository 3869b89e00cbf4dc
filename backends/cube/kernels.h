// The families of kernels: each turns a group with a certain anchor into launches.  A new family is
// a file with its prepare function, a line here and a line in backend.cpp.
#pragma once
#include <memory>

#include "backends/cube/launch.h"

namespace fornax::cube {

// Groups of steps that work element by element.
std::unique_ptr<PreparedGroup> prepare_pointwise(Device& device, const Group& group);

// Groups with reductions.
std::unique_ptr<PreparedGroup> prepare_rows(Device& device, const Group& group);

// Groups of one step, their anchor.
std::unique_ptr<PreparedGroup> prepare_matmul(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_scan(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_argsort(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_convolve(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_pool_argmax(Device& device, const Group& group);

}  // namespace fornax::cube
