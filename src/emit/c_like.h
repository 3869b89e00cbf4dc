// The emitter for languages like C: walks a simt kernel once and writes a function, with the
// spelling of one language.
//
// Each value has an expression.  That of a pure instruction which is used once, in its own region,
// is not written where the instruction stands but where it is used; all others become constants
// named by the value's number.  Values that change (carried by loops, joined by conditions) are
// variables, assigned at the ends of regions.
#pragma once
#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/spelling.h"

namespace fornax::c_like {

// A program, the parts apart.
struct Program {
  std::string entry;
  std::string types;  // declarations that everything else uses
  std::vector<const Helper*> helpers;
  std::string function;
  std::string text() const;  // all of it
};

// Requires: the kernel is verified.  Error(internal): as emit().
Program write(const Spelling& spelling, const kernel::Kernel& kernel, EmitSettings settings);

}  // namespace fornax::c_like
