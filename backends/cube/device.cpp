#include "backends/cube/device.h"

#include "backends/cube/batch.h"
#include "backends/cube/build_id.h"
#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "emit/emit.h"
#include "kernel/lower.h"

namespace fornax::cube {
namespace {

constexpr size_t kLongestLabel = 100;

struct RuntimeRecipe : runtime::Recipe {
  const KernelRecipe& recipe;
  const Device& device;
  RuntimeRecipe(const KernelRecipe& r, const Device& d) : recipe(r), device(d) {
    if (build_id().empty()) return;
    key = fmt::format("{}{} {}", r.key, settings().check ? " checked" : "", build_id());
  }
  runtime::Source make() const override {
    runtime::Source source =
        emit(device.kernel_of(recipe), device.capabilities(), {.checked = settings().check});
    source.label = recipe.key.substr(0, kLongestLabel);
    log(4, "source of {}:\n{}", recipe.key, source.text);
    return source;
  }
};

}  // namespace

kernel::Kernel Device::kernel_of(const KernelRecipe& recipe) const {
  kernel::Kernel kernel = recipe.build();
  if (kernel.dialect != kernel::Dialect::tile) return kernel;
  return kernel::lower(kernel, capabilities().warp);
}

void ComingProgram::work() {
  ready_ = device_.runtime().compile(device_.ordinal(), RuntimeRecipe(recipe_, device_));
}

std::shared_ptr<ComingProgram> Device::program(const KernelRecipe& recipe) {
  {
    std::lock_guard lock(programs_mutex_);
    const auto known = programs_.find(recipe.key);
    if (known != programs_.end()) return known->second;
  }
  // Not under the lock: others may go on meanwhile, and the first one made is kept.
  std::shared_ptr<const runtime::Program> found =
      runtime_.find(ordinal_, RuntimeRecipe(recipe, *this));
  const bool must_compile = !found;
  const auto made = std::make_shared<ComingProgram>(*this, recipe, std::move(found));
  {
    std::lock_guard lock(programs_mutex_);
    const auto [kept, first] = programs_.emplace(recipe.key, made);
    if (!first) return kept->second;
  }
  if (must_compile) runtime::run_later(made);
  return made;
}

// Threads that compile use the device.
Device::~Device() {
  for (const auto& [key, coming] : programs_) coming->cancel();
}

runtime::Address Device::tickets(int way) {
  std::call_once(tickets_made_, [&] {
    const std::vector<int32_t> zeros(static_cast<size_t>(kTickets * kWays));
    const size_t bytes = zeros.size() * sizeof(int32_t);
    tickets_ = runtime_.allocate(ordinal_, bytes);
    runtime_.write(ordinal_, tickets_, zeros.data(), bytes);
  });
  return tickets_ + uint64_t(way) * kTickets * sizeof(int32_t);
}

void Device::drop_programs() {
  std::lock_guard lock(programs_mutex_);
  std::erase_if(programs_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

size_t Device::program_count() {
  std::lock_guard lock(programs_mutex_);
  return programs_.size();
}

void Device::launch(const std::shared_ptr<const runtime::Program>& program, runtime::Grid grid,
                    std::span<uint64_t> arguments, std::span<const Touch> touches,
                    const std::shared_ptr<const Explain>& explain) {
  if (LaunchBatch* batch = LaunchBatch::begun(*this)) {
    return batch->add(program, grid, arguments, touches, explain);
  }
  if (!explain) return runtime_.launch(ordinal_, *program, grid, arguments);
  const Reports::Request request{Execution::current(), explain};
  reports_.run({&request, 1}, [&](std::span<const runtime::Address> slots) {
    arguments.back() = slots[0];
    runtime_.launch(ordinal_, *program, grid, arguments);
  });
}

}  // namespace fornax::cube
