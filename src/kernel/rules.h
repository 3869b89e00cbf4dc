// What verify and the text form share.  Each function says in words what is wrong, or nothing.
#pragma once
#include <string>

#include "kernel/ir.h"

namespace fornax::kernel {

inline constexpr int64_t kMostTile = 1 << 20;  // elements

// The first fault of the kernel, and the instruction it is in, or -1.
std::string find_problem(const Kernel& kernel, InstructionId& at);

std::string type_problem(const Kernel& kernel, const ValueType& type);
// Before the regions are looked into: dialect, counts of operands, results, regions, attributes.
// Requires: the operands are values.
std::string form_problem(const Kernel& kernel, const Instruction& instruction);
// The types.  Requires: form_problem finds nothing, the regions' values are values.
std::string rule_problem(const Kernel& kernel, const Instruction& instruction);

// How many columns of a tile the threads share out at once.
int column_unit(const Distribution& distribution);

// The instruction in text form, without the insides of its regions.
std::string line_of(const Kernel& kernel, InstructionId id);

}  // namespace fornax::kernel
