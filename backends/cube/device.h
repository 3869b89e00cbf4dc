// A device as this backend sees it: a device of a runtime, the programs that were made ready for
// it, and what running kernels report.
//
// Thread-safety: every function may be called from several threads at once.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cube/reports.h"
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
      : runtime_(runtime), ordinal_(ordinal), described_(described), reports_(runtime, ordinal) {}

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

  // Launches the program, or adds it to the batch that this thread has begun.  `explain`: the
  // kernel reports, and the last argument is overwritten with the address of its status.
  void launch(const std::shared_ptr<const runtime::Program>& program, runtime::Grid grid,
              std::span<uint64_t> arguments, const std::shared_ptr<const Explain>& explain);
  Reports& reports() { return reports_; }

 private:
  runtime::Runtime& runtime_;
  const int ordinal_;
  const runtime::RuntimeDevice described_;
  std::mutex programs_mutex_;
  std::map<std::string, std::shared_ptr<const runtime::Program>, std::less<>> programs_;
  Reports reports_;
};

}  // namespace fornax::cube
