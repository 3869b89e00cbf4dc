#!/usr/bin/env bash
# What must not compile does not, and the compiler says why.  Each of no_compile/*.cpp starts with
#   // expect: <words that stand in the compiler's output>
set -uo pipefail
cd "$(dirname "$0")/../.."
found=0 broken=0
for file in tests/build/no_compile/*.cpp; do
  [ -f "$file" ] || continue
  words=$(sed -n '1s|^// expect: *||p' "$file")
  [ -n "$words" ] || { echo "$file: the first line must be // expect: <words>"; broken=$((broken + 1)); }
  for compiler in g++ clang++-14; do
    found=$((found + 1))
    if output=$("$compiler" -std=c++20 -Iinclude -fsyntax-only "$file" 2>&1); then
      echo "$file: $compiler accepts it"
      broken=$((broken + 1))
    elif ! grep -qF -- "$words" <<<"$output"; then
      printf '%s: %s does not say "%s" but\n%s\n' "$file" "$compiler" "$words" "$output"
      broken=$((broken + 1))
    fi
  done
done
echo "$found compilations, $broken not refused as expected"
[ "$found" -gt 0 ] && [ "$broken" = 0 ]
