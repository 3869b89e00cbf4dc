// Which instruction sets flex is compiled for: the compiler's baseline, and on x86 those with
// 256-bit vectors and fused multiply-add.  Each further one costs a third of the build time;
// sanitized builds, where that is long, go without 512-bit vectors.
#pragma once
#include "base/sanitizer.h"

#if defined(FORNAX_ADDRESS_SANITIZER) || defined(FORNAX_THREAD_SANITIZER)
#define FORNAX_WIDEST_TARGET HWY_AVX3
#else
#define FORNAX_WIDEST_TARGET 0
#endif

#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   FORNAX_WIDEST_TARGET)
