#include "runtimes/cuda/ranges.h"

#include <dlfcn.h>

#include "base/log.h"

namespace fornax::cuda {

Ranges::Ranges(const std::string& path) {
  const char* name = path.empty() ? "libnvToolsExt.so.1" : path.c_str();
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);  // never closed: a profiler is in there
  if (!library) return;
  const auto push = reinterpret_cast<int (*)(const char*)>(dlsym(library, "nvtxRangePushA"));
  const auto pop = reinterpret_cast<int (*)()>(dlsym(library, "nvtxRangePop"));
  if (!push || !pop) return;
  push_ = push;
  pop_ = pop;
  log(1, "cuda: launches are ranges of {}", name);
}

}  // namespace fornax::cuda
