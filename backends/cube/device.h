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

#include "backends/cube/order.h"
#include "backends/cube/reports.h"
#include "kernel/ir.h"
#include "runtime/job.h"
#include "runtime/runtime.h"

namespace fornax::cube {

// A kernel that is built only where no program for `key` exists yet.  The key says everything that
// `build` reads and nothing more: two recipes of one key build the same kernel.
struct KernelRecipe {
  std::string key;
  std::function<kernel::Kernel()> build;
};

class Device;

// A program that is ready, or is built and compiled meanwhile.
class ComingProgram final : public runtime::Job {
 public:
  ComingProgram(Device& device, KernelRecipe recipe, std::shared_ptr<const runtime::Program> ready)
      : Job(ready != nullptr),
        device_(device),
        recipe_(std::move(recipe)),
        ready_(std::move(ready)) {}
  const KernelRecipe& recipe() const { return recipe_; }
  // Waits for it.  Error: as Runtime::compile; the next call then tries again.
  const std::shared_ptr<const runtime::Program>& get() {
    wait();
    return ready_;
  }

 private:
  void work() override;

  Device& device_;
  const KernelRecipe recipe_;
  std::shared_ptr<const runtime::Program> ready_;
};

class Device {
 public:
  Device(runtime::Runtime& runtime, int ordinal, const runtime::RuntimeDevice& described)
      : runtime_(runtime), ordinal_(ordinal), described_(described), reports_(runtime, ordinal) {}
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  runtime::Runtime& runtime() { return runtime_; }
  int ordinal() const { return ordinal_; }
  const runtime::RuntimeDevice& described() const { return described_; }
  const runtime::Capabilities& capabilities() const { return described_.capabilities; }

  // Returns at once; equal recipes have one program.  Error(device): the device is not usable.
  std::shared_ptr<ComingProgram> program(const KernelRecipe& recipe);
  size_t program_count();
  // Forgets the programs that no plan holds; the code cache still has them.
  void drop_programs();
  // The kernel as it is compiled: of the simt dialect.
  kernel::Kernel kernel_of(const KernelRecipe& recipe) const;

  // Launches the program, or adds it to the batch that this thread has begun.  `explain`: the
  // kernel reports, and the last argument is overwritten with the address of its status.
  void launch(const std::shared_ptr<const runtime::Program>& program, runtime::Grid grid,
              std::span<uint64_t> arguments, std::span<const Touch> touches,
              const std::shared_ptr<const Explain>& explain);
  Reports& reports() { return reports_; }
  // kTickets i32 that are 0 before and after each launch.  There are kWays of them, for launches
  // that run at the same time.
  static constexpr int64_t kTickets = 4096;
  static constexpr int kWays = 8;
  runtime::Address tickets(int way);

 private:
  runtime::Runtime& runtime_;
  const int ordinal_;
  const runtime::RuntimeDevice described_;
  std::mutex programs_mutex_;
  std::map<std::string, std::shared_ptr<ComingProgram>, std::less<>> programs_;
  Reports reports_;
  std::once_flag tickets_made_;
  runtime::Address tickets_ = 0;
};

}  // namespace fornax::cube
