// A device as this backend sees it: a device of a runtime, the programs that were made ready for
// it, and the status in which running kernels note what went wrong.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <fornax/function.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kernel/check.h"
#include "kernel/ir.h"
#include "runtime/runtime.h"

namespace fornax::cube {

// A kernel that is built only where no program for `key` exists yet.  The key says everything that
// `build` reads and nothing more: two recipes of one key build the same kernel.
struct KernelRecipe {
  std::string key;
  std::function<kernel::Kernel()> build;
};

class Device {
 public:
  Device(runtime::Runtime& runtime, int ordinal, const runtime::RuntimeDevice& described)
      : runtime_(runtime), ordinal_(ordinal), described_(described) {}

  runtime::Runtime& runtime() { return runtime_; }
  int ordinal() const { return ordinal_; }
  const runtime::RuntimeDevice& described() const { return described_; }
  const runtime::Capabilities& capabilities() const { return described_.capabilities; }

  // Found, or built and compiled.  Error: as Runtime::compile.
  std::shared_ptr<const runtime::Program> program(const KernelRecipe& recipe);
  size_t program_count();
  // Forgets the programs that no plan holds; the code cache still has them.
  void drop_programs();
  // The kernel as it is compiled: of the simt dialect.
  kernel::Kernel kernel_of(const KernelRecipe& recipe) const;

  // Runs `launch` with a status buffer, waits for it, and returns what the status says afterwards.
  kernel::Status run_reporting(FunctionRef<void(runtime::Address status)> launch);

 private:
  runtime::Runtime& runtime_;
  const int ordinal_;
  const runtime::RuntimeDevice described_;
  std::mutex programs_mutex_;
  std::map<std::string, std::shared_ptr<const runtime::Program>, std::less<>> programs_;
  std::mutex status_mutex_;
  runtime::Address status_ = 0;  // zeroed between launches; allocated at first use
};

}  // namespace fornax::cube
