// The page that the setting `view` asks for: every kernel that ran, with its IR as tiles and for
// one thread, its text, what the compiler says of it and how long its launches took, side by side.
//
// Thread-safety: a page may be used from several threads at once.
#pragma once
#include <fornax/function.h>

#include <map>
#include <mutex>
#include <string>

#include "backends/cube/device.h"

namespace fornax::cube {

class ViewPage {
 public:
  void note(const Device& device, const KernelRecipe& recipe, const runtime::Program& program,
            double milliseconds);
  // One file that needs no other; what took longest comes first.
  std::string html() const;

 private:
  struct Kernel {
    std::string device, tile, simt, text;
    runtime::Report report;
    int64_t launches = 0;
    double milliseconds = 0, fastest = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Kernel> kernels_;  // by key
};

// Whether the setting names a file; then launches are timed one by one.
bool wants_view();
// Launches, and notes it on the page, which is written when the program ends.  Error(io): it cannot
// be written.
void launch_viewed(Device& device, ComingProgram& coming, FunctionRef<void()> launch);

}  // namespace fornax::cube
