// Highway's two run-time questions, answered here so that a shipped program needs no libhwy: Debian
// and Ubuntu have that library only as a shared one.  Safe from any thread.
#include <hwy/targets.h>

#include "base/error.h"
#include "base/settings.h"

namespace hwy {
namespace {

// What the processor has.
int64_t found_targets() {
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

}  // namespace

// Without what the setting cpu_target forbids.  Error(value): it names no instruction set, or one
// that the processor does not have.
int64_t SupportedTargets() {
  const int64_t found = found_targets();
  const std::string& wanted = fornax::settings().cpu_target;
  if (wanted.empty()) return found;
  if (wanted == "baseline") return HWY_STATIC_TARGET | HWY_EMU128;
#if HWY_ARCH_X86
  constexpr int64_t kUpToAvx2 = ~(HWY_AVX2 - 1);  // the wider of two targets has the lower bit
  if (wanted == "avx512" && found & HWY_AVX3) return found;
  if (wanted == "avx2" && found & HWY_AVX2) return found & kUpToAvx2;
#endif
  fornax::fail(fornax::ErrorKind::value,
               "cpu_target: {} is no instruction set of this processor; use avx512, avx2 or "
               "baseline where it has them, or leave it empty",
               wanted);
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
