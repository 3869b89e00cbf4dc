// The runtimes of this program, made at first use.
//
// Thread-safety: runtimes() may be called from any thread.
#pragma once
#include <memory>
#include <vector>

#include "runtime/runtime.h"

namespace fornax::runtime {

// By ascending rank.  They live as long as the process: memory and programs point at them, also
// those that are destroyed by static destructors.
const std::vector<Runtime*>& runtimes();

// A runtime registers itself by a static object in one of its files.
struct Registered {
  Registered(int rank, std::unique_ptr<Runtime> (*make)());
};

}  // namespace fornax::runtime
