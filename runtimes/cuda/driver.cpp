#include "runtimes/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <pthread.h>

#include <atomic>

namespace fornax::cuda {
namespace {

std::atomic<unsigned> forks{0};

// The driver's own name for a missing file would not help anybody.
std::string why_not_open(const std::string& path, bool chosen) {
  const char* error = dlerror();
  const std::string why = error ? error : "unknown error";
  if (chosen) return fmt::format("the CUDA driver (setting cuda_driver) does not open: {}", why);
  if (why.find("No such file") != why.npos) {
    return fmt::format(
        "there is no {} here: install NVIDIA's driver, or name its library in the "
        "setting cuda_driver",
        path);
  }
  return fmt::format("the CUDA driver does not open: {}", why);
}

}  // namespace

std::shared_ptr<const Driver> Driver::load(const std::string& path, std::string& absence) {
  const std::string file = path.empty() ? "libcuda.so.1" : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    absence = why_not_open(file, !path.empty());
    return nullptr;
  }
  auto driver = std::make_shared<Driver>();
  driver->driver_version =
      reinterpret_cast<decltype(driver->driver_version)>(dlsym(library, "cuDriverGetVersion"));
  if (!driver->driver_version || driver->driver_version(&driver->version) != Result::success) {
    absence = fmt::format("{} is no CUDA driver", file);
    return nullptr;
  }
  if (driver->version < kLeastVersion) {
    absence = fmt::format("the driver supports CUDA {} and {} is needed: install a newer driver",
                          version_text(driver->version), version_text(kLeastVersion));
    return nullptr;
  }
#define FORNAX_CUDA(name, symbol, ...)                                                          \
  driver->name = reinterpret_cast<decltype(driver->name)>(dlsym(library, #symbol));             \
  if (!driver->name) {                                                                          \
    absence = fmt::format("{}, CUDA {}, has no " #symbol, file, version_text(driver->version)); \
    return nullptr;                                                                             \
  }
#define FORNAX_CUDA_LATER(name, symbol, ...) \
  driver->name = reinterpret_cast<decltype(driver->name)>(dlsym(library, #symbol));
#include "runtimes/cuda/driver.def"
  return driver;
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name(result, &name) != Result::success || !name) {
    return fmt::format("CUDA error {}", int(result));
  }
  if (error_text(result, &text) != Result::success || !text) return name;
  return fmt::format("{}, {}", name, text);
}

bool breaks_device(Result result) {
  switch (result) {
    case Result::device_unavailable:
    case Result::memory_error:
    case Result::link_error:
    case Result::contained:
    case Result::illegal_address:
    case Result::timeout:
    case Result::context_destroyed:
    case Result::assertion:
    case Result::stack_error:
    case Result::illegal_instruction:
    case Result::misaligned_address:
    case Result::invalid_address_space:
    case Result::invalid_counter:
    case Result::launch_failed:
    case Result::tensor_memory_leak:
      return true;
    default:
      return false;
  }
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

unsigned fork_count() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks++; });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

}  // namespace fornax::cuda
