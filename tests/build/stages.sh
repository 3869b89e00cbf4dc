#!/usr/bin/env bash
# Stages hand eight vectors on in registers: each ends by a jump to the next, and on AVX2 and
# AVX-512 it calls nothing and leaves the stack alone, but for those listed below.  Read off the
# disassembly of what was built, and of stages_f32.cpp as the other compiler builds it.
#   stages.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 folder=CMakeFiles/fornax_backend_flex.dir/backends/flex
if [ "$(uname -m)" != x86_64 ] || ! grep -qx CMAKE_BUILD_TYPE:STRING=Release "$build/CMakeCache.txt"
then
  echo "skipped: this is about optimised code for x86-64"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
other=release-clang
if grep -q '^CMAKE_CXX_COMPILER:.*clang' "$build/CMakeCache.txt"; then other=release; fi
cmake --preset $other -B "$work" -DFORNAX_TESTS=OFF -DFORNAX_PROGRAMS=OFF -DFORNAX_GPU=OFF \
  >/dev/null
cmake --build "$work" --target "$folder/stages_f32.cpp.o"

python3 - "$work/$folder/stages_f32.cpp.o" "$build/$folder"/{stages_*,fold}.cpp.o <<'PYTHON'
import re, subprocess, sys

# Formulas of many instructions (Slow in number.inl): a loop over the eight, which lie in an array.
slow = set("""exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh
  acosh atanh erf sigmoid pow atan2 floor_divide trunc_divide remainder fmod shift_left
  shift_right""".split())
# Those of them that take far arguments lane by lane.
calling = set("sin cos tan floor_divide trunc_divide remainder fmod".split())
# Conversions without a vector form, in a loop that calls.
by_element = r"stage_convert<|stage_(load|store)<fornax::(Float8\w+, \w+|B?Float16, double)>"
# What needs more than the registers that AVX2 has beside the eight: for constants, for halves, and
# for flipped signs, which g++ makes of all eight before it asks whether the operand is a constant.
crowded = (r"N_AVX2::(stage_store<(fornax::BFloat16, float|(un)?signed char, (unsigned )?long)>|"
           r"stage_change<\S+RoundBrain>|stage2<.*Formula_(max|min)imum>?, unsigned \w+>)")


def stages_of(path):
    """The instructions of each stage in an object file, by its name without parameters."""
    listing = subprocess.run(["objdump", "-dw", "--no-show-raw-insn", path], check=True,
                             capture_output=True, text=True).stdout
    stages, code = {}, None
    for line in listing.splitlines():
        if head := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            stage = re.match(r"(_ZN6fornax4flex\d+N_.*?stage.*?)PKNS0_11InstructionE", head[1])
            code = stages.setdefault(stage[1] + "v", []) if stage else None
        elif code is not None and "\t" in line:
            code.append(line.split("\t", 1)[1])
    names = subprocess.run(["c++filt"], input="\n".join(stages), check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return dict(zip(names, stages.values()))


def has(code, pattern):
    return any(re.match(pattern, instruction) for instruction in code)


def faults_of(stage, code):
    formula = (re.findall(r"Formula_(\w+)", stage) or [None])[0]
    if not has(code, r"(notrack )?jmp +\*"):
        yield "does not jump to the next stage"
    if has(code, "ret") and "stage_loop<" not in stage:
        yield "returns"
    if not re.search("::N_AVX[23]::", stage) or re.search(by_element, stage):
        return
    if has(code, "call") and formula not in calling:
        yield "calls"
    if has(code, r"push|pop|leave|.*%[er]?[sb]p\b") and formula not in slow and not re.search(
            crowded, stage):
        yield "uses the stack"


# The formulas of floats: each must be there for both instruction sets.
with open("include/fornax/ops.def") as rows:
    formulas = re.findall(r"^OP[123]\((\w+), (?!bitwise)", rows.read(), re.M)

wrong = []
for path in sys.argv[1:]:
    stages = stages_of(path)
    print(f"{len(stages)} stages in {path}")
    for stage, code in stages.items():
        wrong += [f"{stage} {fault}" for fault in faults_of(stage, code)]
    if path.endswith("stages_f32.cpp.o"):
        for part in [f"{isa}::Formula_{row}," for isa in ("N_AVX2", "N_AVX3") for row in formulas]:
            if not any(part in stage for stage in stages):
                wrong.append(f"no stage has {part}")
print("\n".join(wrong))
sys.exit(len(wrong) > 0)
PYTHON
