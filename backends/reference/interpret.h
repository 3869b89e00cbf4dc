// Running a group step by step.  Safe from any thread: nothing is kept between runs.
#pragma once
#include "backend/backend.h"

namespace fornax::reference {

// Error(internal): the group breaks the rules of backend/backend.h.
void check(const Group& group);

// Computes the group's outputs.  All are written after the last input was read, so they may share
// memory with inputs.  Error(index, value): as Backend::execute.
void interpret(const Group& group, std::span<const Argument> inputs,
               std::span<const Argument> outputs);

}  // namespace fornax::reference
