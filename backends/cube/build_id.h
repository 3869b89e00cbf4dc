// Which code builds the kernels: compiled kernels are kept for later processes, and what another
// version of the library would build is another program.
#pragma once
#include <string>

namespace fornax::cube {

// The linker's id of the program or shared library that this is part of, in hexadecimal; empty
// where the linker made none.  Found once, safe from any thread.
const std::string& build_id();

}  // namespace fornax::cube
