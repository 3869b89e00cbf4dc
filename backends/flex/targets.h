// Which instruction sets flex is compiled for: the compiler's baseline, and on x86 those with
// 256-bit vectors and fused multiply-add.  Each further one costs a third of the build time;
// sanitized builds, where that is long, go without 512-bit vectors.  Wanted sets are listed, since
// every version of Highway knows more of them.
#pragma once
#include "base/sanitizer.h"

#if !defined(__x86_64__)
#define FORNAX_FURTHER_TARGETS 0
#elif defined(FORNAX_ADDRESS_SANITIZER) || defined(FORNAX_THREAD_SANITIZER)
#define FORNAX_FURTHER_TARGETS HWY_AVX2
#else
#define FORNAX_FURTHER_TARGETS (HWY_AVX2 | HWY_AVX3)
#endif

#define HWY_DISABLED_TARGETS (~(HWY_BASELINE_TARGETS | FORNAX_FURTHER_TARGETS))

// Vectors in an array stay in registers only when the loops over them are gone.
#ifdef __clang__
#define FORNAX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FORNAX_UNROLL _Pragma("GCC unroll 16")
#endif
