#!/usr/bin/env bash
# A file that includes fornax.h and defines a two-layer model compiles in at most three times the
# time of one that includes three standard headers, with both compilers.
set -euo pipefail
cd "$(dirname "$0")/../.."
limit=3.0 runs=5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#include <%s>\n' vector string functional >"$work/standard.cpp"
[ -f include/fornax/fornax.h ] || { echo "include/fornax/fornax.h does not exist"; exit 1; }

# Least user + system seconds of some runs; the machine's other work only ever adds.
cost() {
  local TIMEFORMAT='%U %S' compiler=$1 file=$2
  "$compiler" -std=c++20 -O0 -fsyntax-only -Iinclude "$file"
  for _ in $(seq $runs); do
    { time "$compiler" -std=c++20 -O0 -fsyntax-only -Iinclude "$file"; } 2>&1
  done | awk 'NR == 1 || $1 + $2 < least { least = $1 + $2 } END { print least }'
}

status=0
for compiler in g++ clang++-14; do
  standard=$(cost "$compiler" "$work/standard.cpp")
  model=$(cost "$compiler" tests/build/header_cost.cpp)
  awk -v c="$compiler" -v s="$standard" -v m="$model" -v limit=$limit 'BEGIN {
    printf "%s: fornax.h and a model %.2f s, three standard headers %.2f s", c, m, s
    printf ": ratio %.2f (limit %.1f)\n", m / s, limit
    exit m / s > limit }' || status=1
done
exit $status
