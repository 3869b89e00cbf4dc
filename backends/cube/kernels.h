// The families of kernels: each turns a group with a certain anchor into launches.  A new family is
// a file with its prepare function, a line here and one in prepare_group().
#pragma once
#include <memory>

#include "backends/cube/launch.h"

namespace fornax::cube {

// By the group's anchor.
std::unique_ptr<PreparedGroup> prepare_group(Device& device, const Group& group);

// Groups of steps that work element by element.
std::unique_ptr<PreparedGroup> prepare_pointwise(Device& device, const Group& group);

// Ops that stand alone.
std::unique_ptr<PreparedGroup> prepare_arange(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_random_bits(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_pad(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_cat(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_fold(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_gather(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_scatter(Device& device, const Group& group);

// Groups with reductions.
std::unique_ptr<PreparedGroup> prepare_rows(Device& device, const Group& group);

// Groups of one step, their anchor.
std::unique_ptr<PreparedGroup> prepare_matmul(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_scan(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_argsort(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_convolve(Device& device, const Group& group);
std::unique_ptr<PreparedGroup> prepare_pool_argmax(Device& device, const Group& group);

}  // namespace fornax::cube
