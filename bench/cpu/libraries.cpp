// Products by libraries that programs use without a framework around, opened where installed.
#include <dlfcn.h>

#include <cstdint>

#include "bench/cpu/cpu.h"

namespace bench {
namespace {

template <class Function>
Function* find(std::initializer_list<const char*> files, const char* name) {
  for (const char* file : files) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (void* function = library ? dlsym(library, name) : nullptr) {
      return reinterpret_cast<Function*>(function);
    }
  }
  return nullptr;
}

using DnnlSgemm = int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t,
                      const float*, int64_t, float, float*, int64_t);
using CblasSgemm = void(int, int, int, int, int, int, float, const float*, int, const float*, int,
                        float, float*, int);

}  // namespace

Product open_product(const std::string& library) {
  if (library == "onednn") {
    const auto sgemm = find<DnnlSgemm>({"libdnnl.so.3", "libdnnl.so.2"}, "dnnl_sgemm");
    if (!sgemm) return nullptr;
    return [=](int64_t m, int64_t k, int64_t n, const float* a, const float* b, float* c) {
      sgemm('N', 'N', m, n, k, 1, a, k, b, n, 0, c, n);
    };
  }
  const auto sgemm = find<CblasSgemm>({"libopenblas.so.0"}, "cblas_sgemm");
  if (!sgemm) return nullptr;
  return [=](int64_t m, int64_t k, int64_t n, const float* a, const float* b, float* c) {
    constexpr int kRowMajor = 101, kNoTranspose = 111;
    sgemm(kRowMajor, kNoTranspose, kNoTranspose, int(m), int(n), int(k), 1, a, int(k), b, int(n), 0,
          c, int(n));
  };
}

}  // namespace bench
