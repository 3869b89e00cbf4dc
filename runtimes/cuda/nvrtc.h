// NVRTC, NVIDIA's run-time compiler, opened at run time: CUDA C++ in, machine code out.  It needs
// neither a device nor a context.
//
// Thread-safety: compile may be called from several threads at once.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "runtime/runtime.h"

namespace fornax::cuda {

struct Compiled {
  std::string code;  // a cubin
  runtime::Report report;
};

struct NvrtcFunctions;

class Nvrtc {
 public:
  // nullptr where there is none, and `absence` says where it was looked for.  An empty path: where
  // CUDA toolkits put it, the newest that the driver's version can run code of first.
  static std::shared_ptr<const Nvrtc> load(const std::string& path, int driver_version,
                                           std::string& absence);

  // Error(internal): the text does not compile; with the compiler's log.  Error(device): this
  // compiler is too old for the target.
  Compiled compile(const runtime::Source& source, const std::string& target) const;

  // What compiled code depends on beside its text and target: "nvrtc 13.0 -fmad=false ..."
  const std::string& version() const { return version_; }

 private:
  Nvrtc() = default;
  static std::shared_ptr<const Nvrtc> open(const std::string& file, int driver_version,
                                           std::string& absence);

  std::shared_ptr<const NvrtcFunctions> functions_;
  std::string version_;
  std::string file_;
};

// What a log of "ptxas -v" says of one of its programs.
runtime::Report read_report(std::string_view log, const std::string& entry);

}  // namespace fornax::cuda
