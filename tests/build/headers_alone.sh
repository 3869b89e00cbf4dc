#!/usr/bin/env bash
# Every public header compiles alone, with no flag but the language and the include folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
found=0 broken=0
for header in include/fornax/*.h; do
  [ -f "$header" ] || continue
  found=$((found + 1))
  echo "#include <fornax/${header##*/}>" |
    g++ -std=c++20 -Iinclude -Wall -Wextra -Wconversion -Werror -fsyntax-only -x c++ - ||
    broken=$((broken + 1))
done
echo "$found public headers, $broken do not compile alone"
[ "$found" -gt 0 ] && [ "$broken" = 0 ]
