#!/usr/bin/env bash
# The dumps in docs/how.md are what the program prints: each block after <!-- dump: NAME --> stands,
# line for line, in its output at FORNAX_LOG=5.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
output=$(FORNAX_LOG=5 FORNAX_DEVICE=cpu "$build/examples/silu" 2>&1 | sed 's/^fornax: //')
python3 - docs/how.md "$output" <<'PYTHON'
import re, sys
page, output = open(sys.argv[1]).read(), sys.argv[2]
blocks = re.findall(r"<!-- dump: (\w+) -->\n```\n(.*?)```", page, re.S)
wrong = [name for name, text in blocks if text.strip() not in output]
for name in wrong:
    print(f"docs/how.md: the dump \"{name}\" is not what the program prints:\n{output}")
sys.exit(bool(wrong) or not blocks)
PYTHON
