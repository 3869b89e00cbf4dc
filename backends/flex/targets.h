// Which instruction sets flex is compiled for: the compiler's baseline, and on x86 those with
// 256-bit vectors and fused multiply-add.  Each further one costs a third of the build time.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
