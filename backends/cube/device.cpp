#include "backends/cube/device.h"

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"

namespace fornax::cube {
namespace {

runtime::ParameterKind kind_of(const kernel::ValueType& type) {
  const bool wide = type.memory == kernel::Memory::global || size_of(type.dtype) == 8;
  return wide ? runtime::ParameterKind::word64 : runtime::ParameterKind::word32;
}

// The kernel's parameters, and those that kernel/check.h puts behind them.
std::vector<runtime::ParameterKind> parameters_of(const kernel::Kernel& kernel, bool checked) {
  std::vector<runtime::ParameterKind> kinds;
  for (const kernel::Parameter& parameter : kernel.parameters) {
    kinds.push_back(kind_of(parameter.type));
  }
  for (const kernel::Parameter& parameter : kernel.parameters) {
    if (checked && parameter.type.memory == kernel::Memory::global) {
      kinds.push_back(runtime::ParameterKind::word64);
    }
  }
  if (kernel::reports(kernel, checked)) kinds.push_back(runtime::ParameterKind::word64);
  return kinds;
}

runtime::Source source_of(const kernel::Kernel& kernel, const runtime::Capabilities& device,
                          const std::string& key) {
  runtime::Source source;
  source.label = key.substr(0, 100);
  source.entry = kernel.name;
  source.threads = kernel.threads;
  source.parameters = parameters_of(kernel, settings().check);
  switch (device.language) {
    case runtime::Language::kernel:
      source.text = kernel::text_of(kernel);
      return source;
    case runtime::Language::cuda:
      break;
  }
  fail(ErrorKind::internal, "cube: there is no text of kernels for {}", device.target);
}

struct RuntimeRecipe : runtime::Recipe {
  const KernelRecipe& recipe;
  const runtime::Capabilities& capabilities;
  RuntimeRecipe(const KernelRecipe& r, const runtime::Capabilities& c)
      : recipe(r), capabilities(c) {
    key = settings().check ? r.key + " checked" : r.key;
  }
  runtime::Source make() const override {
    runtime::Source source = source_of(recipe.build(), capabilities, recipe.key);
    log(4, "source of {}:\n{}", recipe.key, source.text);
    return source;
  }
};

}  // namespace

std::shared_ptr<const runtime::Program> Device::program(const KernelRecipe& recipe) {
  {
    std::lock_guard lock(programs_mutex_);
    const auto found = programs_.find(recipe.key);
    if (found != programs_.end()) return found->second;
  }
  // Not under the lock: others may go on while this one compiles, and the first one made is kept.
  std::shared_ptr<const runtime::Program> made =
      runtime_.compile(ordinal_, RuntimeRecipe(recipe, capabilities()));
  std::lock_guard lock(programs_mutex_);
  return programs_.emplace(recipe.key, std::move(made)).first->second;
}

size_t Device::program_count() {
  std::lock_guard lock(programs_mutex_);
  return programs_.size();
}

kernel::Status Device::run_reporting(FunctionRef<void(runtime::Address)> launch) {
  std::lock_guard lock(status_mutex_);
  kernel::Status status{};
  if (status_ == 0) {
    status_ = runtime_.allocate(ordinal_, sizeof status);
    runtime_.write(ordinal_, status_, &status, sizeof status);
  }
  launch(status_);
  runtime_.read(ordinal_, &status, status_, sizeof status);
  if (status[0] != 0) {
    const kernel::Status clear{};
    runtime_.write(ordinal_, status_, &clear, sizeof clear);
  }
  return status;
}

}  // namespace fornax::cube
