// Highway's two run-time questions, answered here so that a shipped program needs no libhwy: Debian
// and Ubuntu have that library only as a shared one.  Safe from any thread.
#include <hwy/targets.h>

namespace hwy {

int64_t SupportedTargets() {
  int64_t targets = HWY_STATIC_TARGET | HWY_EMU128;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  const auto all = [](auto... answers) { return (answers && ...); };
  const bool avx2 = all(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
                        __builtin_cpu_supports("bmi"), __builtin_cpu_supports("bmi2"));
  const bool avx3 = all(avx2, __builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512vl"),
                        __builtin_cpu_supports("avx512dq"), __builtin_cpu_supports("avx512bw"),
                        __builtin_cpu_supports("avx512cd"));
  const bool avx3_dl =
      all(avx3, __builtin_cpu_supports("avx512vnni"), __builtin_cpu_supports("avx512vbmi"),
          __builtin_cpu_supports("avx512vbmi2"), __builtin_cpu_supports("avx512bitalg"),
          __builtin_cpu_supports("avx512vpopcntdq"), __builtin_cpu_supports("vpclmulqdq"),
          __builtin_cpu_supports("gfni"));
  if (__builtin_cpu_supports("ssse3")) targets |= HWY_SSSE3;
  if (__builtin_cpu_supports("sse4.2")) targets |= HWY_SSE4;
  if (avx2) targets |= HWY_AVX2;
  if (avx3) targets |= HWY_AVX3;
  if (avx3_dl) targets |= HWY_AVX3_DL;
#endif
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
