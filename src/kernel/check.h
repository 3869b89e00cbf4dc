// What running kernels tell of themselves: failed assertions, and accesses beyond a memory's end in
// the checked mode (setting `check`).  Such a kernel has a status buffer; what fails is noted there
// once, by whoever is first, and the access does not happen: a load gives 0.  Nothing traps, so the
// device stays usable.
//
// The arguments of a launch are the kernel's parameters; then, checked, the element count of every
// buffer parameter as i64, in order; then, where reports() is true, the address of the status.
#pragma once
#include <array>

#include "kernel/ir.h"

namespace fornax::kernel {

// The status buffer, zero before the launch: whether anything failed (0 or 1), the number of the
// instruction, the index there (of assert_, its second operand where it has one, else 0), and the
// element count of the memory (of assert_, 0).
using Status = std::array<int64_t, 4>;

// Whether a launch of the kernel takes a status buffer.
bool reports(const Kernel& kernel, bool checked);

// What the status says, in words: "softmax: load of x[1024] in rows.cpp:31, which has 1000
// elements", or the text of the assertion with {} replaced by the index.  Requires: status[0] is 1.
std::string describe(const Kernel& kernel, const Status& status);

// "load in rows.cpp:31": an instruction for people.
std::string place_of(const Instruction& instruction);

}  // namespace fornax::kernel
