#!/usr/bin/env bash
# What the processor lacks, or the process may not use: narrower instructions, more threads than
# there are, one processor of several.  And what fornax doctor warns of.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 failed=0

# check says|refuses WORDS COMMAND...: the command succeeds, or fails by an error, and says so.
check() {
  local how=$1 words=$2 output status=says
  shift 2
  output=$("$@" 2>&1) || status=refuses
  if [ $status = "$how" ] && grep -qF -- "$words" <<<"$output"; then
    echo "ok      $words: $*"
  else
    failed=1
    printf 'FAILED  %s\n%s\n' "$words: $*" "$(tail -n 20 <<<"$output")"
  fi
}
says() { check says "$@"; }
refuses() { check refuses "$@"; }

doctor=("$build/cli/fornax" doctor)
says ", baseline, " env FORNAX_CPU_TARGET=baseline "${doctor[@]}"
says "[  PASSED  ]" env FORNAX_CPU_TARGET=baseline "$build/tests/flex_kernels"
if grep -qw avx2 /proc/cpuinfo; then
  says ", avx2, " env FORNAX_CPU_TARGET=avx2 "${doctor[@]}"
fi
refuses "cpu_target: sse9 is no instruction set of this processor" \
  env FORNAX_CPU_TARGET=sse9 "${doctor[@]}"
says ", 64 threads" env FORNAX_THREADS=64 "${doctor[@]}"
says "[  PASSED  ]" env FORNAX_THREADS=64 "$build/tests/flex_kernels"
first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
says ", 1 thread" taskset -c "$first" "${doctor[@]}"
says "warning: this process may use one thread only" taskset -c "$first" "${doctor[@]}"
says "warning: threads = 1: one thread computes" env FORNAX_THREADS=1 "${doctor[@]}"
says "warning: eager = true: nothing is fused" env FORNAX_EAGER=true "${doctor[@]}"
says "warning: verify = true: every graph is checked" env FORNAX_VERIFY=true "${doctor[@]}"
exit $failed
