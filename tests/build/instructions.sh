#!/usr/bin/env bash
# Small ops, recording and a training step take at most a tenth more instructions than
# instructions.txt says, which holds for g++ 12 and AVX2.
#
#   instructions.sh BUILD [--write]   --write: keep what is counted now
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 limit=1.10
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$(g++ -dumpversion)" != 12 ] || ! grep -qw avx2 /proc/cpuinfo; then
  echo "skipped: the counts are those of g++ 12 on a processor with AVX2"
  exit 0
fi
g++ -std=c++20 -O2 -Iinclude tests/build/instructions.cpp -o "$work/instructions" \
  -Wl,--whole-archive "$build/libfornax.a" -Wl,--no-whole-archive -lz -ldl -lpthread

# Instructions of some rounds.  The count is on while a function named count_... runs.
rounds() {
  FORNAX_THREADS=1 FORNAX_CPU_TARGET=avx2 FORNAX_ONEDNN=0 FORNAX_DEVICE=cpu \
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="count_$1" \
    "$work/instructions" "$1" "$2" 2>&1 | sed -n 's/.*Collected : *//p'
}
# Of one round, after others have planned and filled the caches.
count() { echo "$1 $(($(rounds "$1" 5) - $(rounds "$1" 4)))"; }

for what in small_add record training_step; do count $what; done >"$work/counts"
if [ "${2:-}" = --write ]; then
  cp "$work/counts" tests/build/instructions.txt
fi
join <(sort tests/build/instructions.txt) <(sort "$work/counts") | awk -v limit=$limit '
  { printf "%s: %d instructions, %d recorded: ratio %.3f (limit %.2f)\n", $1, $3, $2, $3 / $2, limit
    lines++
    if ($3 <= 0 || $3 / $2 > limit) failed = 1 }
  END { exit failed || lines != 3 }'
