#!/usr/bin/env bash
# The one entry point; installs what is missing on Debian 12 and Ubuntu 24.04.
#
#   ./do demo [OPTIONS]           train a classifier on Fashion-MNIST (fornax train fashion-mnist)
#   ./do test [PRESET] [OPTIONS]  build and run every test; OPTIONS go to ctest (-R tensor)
#   ./do sanitize NAME [OPTIONS]  the tests under a sanitizer: NAME is asan (with ubsan) or tsan
#   ./do arm64 [OPTIONS]          the tests of the CPU on 64-bit ARM, under qemu; OPTIONS go to ctest
#   ./do build [PRESET]           release (default), debug, asan, tsan; each also as PRESET-clang
#   ./do bench NAME [--json]      run bench/NAME.cpp; without NAME, list them
#   ./do size                     lines per room, and the weight of a shipped program
#   ./do docs                     write docs/ops.md and the like from the lists they document
#   ./do format [--check]         clang-format every C++ file
#   ./do peers                    install the libraries that the benches compare with
#   ./do doctor                   what is installed, and the active stack as the library sees it
#   ./do clean                    remove what was built, but not the peers
set -euo pipefail
cd "$(dirname "$0")"

to_build=(g++ cmake ninja-build ccache mold zlib1g-dev libhwy-dev libtomlplusplus-dev libcli11-dev
  libfmt-dev nlohmann-json3-dev libsqlite3-dev libgtest-dev libmpfr-dev)
to_demo=(dataset-fashion-mnist)
to_test=(dataset-fashion-mnist clang-14 libclang-rt-14-dev clang-format-14 python3
  valgrind)

die() { echo "do: $*" >&2; exit 1; }

# Those of some packages that are not installed.
missing() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^installed //p') || true
  printf '%s\n' "$@" | grep -vxF "$installed" || true
}

# Installs what is missing of some packages.  Where there is no apt, only says what is needed.
need() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "do: no apt here; going on, but this must be installed: $*" >&2
    return
  fi
  local wanted sudo=()
  mapfile -t wanted < <(missing "$@")
  [ ${#wanted[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "as root, run: apt-get install ${wanted[*]}"
    sudo=(sudo)
  fi
  echo "installing ${wanted[*]}"
  "${sudo[@]}" apt-get update -q >/dev/null ||
    echo "do: apt-get update failed; trying with the old lists" >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${wanted[@]}" </dev/null >/dev/null ||
    die "apt-get could not install ${wanted[*]}"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  need "${to_build[@]}"
  [[ $preset != *-clang ]] || need clang-14 libclang-rt-14-dev
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"
  cmake --build "build/$preset" --target "${@:-all}"
}

is_preset() { [[ ${1:-} =~ ^(release|debug|asan|tsan)(-clang)?$ ]]; }

# Adds up what ctest ran: the cases of each GoogleTest program, and 1 for anything else.  A program
# that died before it wrote its cases, or failed after the last one, counts as one failure.
tally() {
  local report=$1 passed=0 failed=0 skipped=0 name status ran bad left
  while read -r name status; do
    ran=0 bad=0 left=0
    if [ -f "${report%/*}/$name.xml" ]; then
      read -r ran bad left < <(awk '
        /<testcase / { fresh = 1 }
        /<testcase .*result="completed"/ { ran++ }
        /<testcase .*result="(skipped|suppressed)"/ { left++ }
        /<failure/ && fresh { bad++; fresh = 0 }
        END { print ran + 0, bad + 0, left + 0 }' "${report%/*}/$name.xml")
    elif [ "$status" = run ]; then
      ran=1
    fi
    [ "$status" = run ] || [ "$bad" -gt 0 ] || { ran=$((ran + 1)) bad=1; }
    passed=$((passed + ran - bad)) failed=$((failed + bad)) skipped=$((skipped + left))
  done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([^"]*\)".*/\1 \2/p' "$report")
  [ "$skipped" = 0 ] || echo "$skipped skipped or disabled"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

run_tests() {
  local preset=release results unscattered=()
  if is_preset "${1:-}"; then preset=$1; shift; fi
  need "${to_test[@]}"
  build "$preset" || { echo "0 passed, 1 failed"; return 1; }
  # A finding ends the program it is in, so that it counts as a failure.  The search for leaks
  # misreads the thread-local memory of a library opened while the program runs, as oneDNN is, and
  # dies of it; intercept_tls_get_addr=0 has it leave that memory alone.
  export ASAN_OPTIONS=detect_stack_use_after_return=1:intercept_tls_get_addr=0:${ASAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}
  # Kernels with vm.mmap_rnd_bits of 32, as on Ubuntu 24.04, scatter memory over what the sanitizers
  # of g++ take for themselves: programs then die as they start.
  if [[ $preset =~ ^[at]san ]] && setarch -R true 2>/dev/null; then unscattered=(setarch -R); fi
  results=$PWD/build/$preset/results
  rm -rf "$results"
  mkdir "$results"
  "${unscattered[@]}" ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)" \
    --output-junit "$results/ctest-report.xml" "$@" || true
  tally "$results/ctest-report.xml"
}

sanitize() {
  [[ ${1:-} =~ ^(asan|tsan)(-clang)?$ ]] || die "sanitize: give asan or tsan, or either-clang"
  run_tests "$@"
}

# What to_build installs, for 64-bit ARM, unpacked into build/arm64/root: this system's own packages
# stay as they are.
fetch_arm64() {
  local folder=$PWD/build/arm64 options packages=(zlib1g libmpfr6 libgmp-dev libgmp10 libsqlite3-0)
  options=(-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists="$folder/lists"
    -oDir::Cache="$folder/cache" -oAPT::Sandbox::User="$(id -un)")
  mapfile -t -O ${#packages[@]} packages < <(printf '%s\n' "${to_build[@]}" | grep -e '-dev$')
  mkdir -p "$folder"/{lists/partial,cache/archives/partial,debs}
  apt-get "${options[@]}" update -q >/dev/null
  (cd "$folder/debs" && apt-get "${options[@]}" download -q "${packages[@]}" >/dev/null)
  for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/root"; done
}

# A death test starts its program again, which the emulator does not.  The suites that say something
# of the CPU's instructions; all ops would take the emulator an hour.
arm64() {
  need g++-aarch64-linux-gnu qemu-user "${to_build[@]}" "${to_test[@]}"
  [ -d build/arm64/root ] || fetch_arm64
  local suites=(flex flex_kernels tensor grad graph nn optim stream reference memory) results
  build arm64 "${suites[@]/#/test_}" || { echo "0 passed, 1 failed"; return 1; }
  results=$PWD/build/arm64/results
  rm -rf "$results"
  mkdir "$results"
  GTEST_FILTER='-*DeathTest*' ctest --test-dir build/arm64 --output-on-failure -j "$(nproc)" \
    --output-junit "$results/ctest-report.xml" \
    -R "^($(IFS='|' && echo "${suites[*]}"))\$" "$@" || true
  tally "$results/ctest-report.xml"
}

command=${1:-help}
shift || true
case $command in
  demo)
    need "${to_demo[@]}"
    build release fornax_cli
    [[ " $* " == *" --save"* ]] || set -- --save build/fashion-mnist.safetensors "$@"
    exec build/release/cli/fornax train fashion-mnist "$@" ;;
  test) run_tests "$@" ;;
  sanitize) sanitize "$@" ;;
  arm64) arm64 "$@" ;;
  build) build "${1:-release}" ;;
  bench)
    [ $# -gt 0 ] || { ls bench/*.cpp | sed 's|.*/|./do bench |; s|\.cpp$||'; exit; }
    build release "bench_$1" >&2
    exec "build/release/bench/$1" "${@:2}" ;;
  size)
    build release example_readme
    tools/size build/release/examples/readme ;;
  docs)
    need python3
    tools/docs
    build release test_tensor
    FORNAX_WRITE_PAGES=1 build/release/tests/tensor --gtest_filter='BurnPage.*' --gtest_brief=1 ;;
  format)
    need clang-format-14
    [ "${1:-}" = --check ] && how=(--dry-run -Werror) || how=(-i)
    git ls-files -co --exclude-standard '*.h' '*.cpp' | xargs clang-format-14 "${how[@]}" ;;
  peers) exec bash bench/peers/install.sh "$@" ;;
  doctor)
    absent=$(missing "${to_build[@]}" "${to_test[@]}" 2>/dev/null | sort -u | xargs)
    echo "packages missing: ${absent:-none}"
    build release fornax_cli >/dev/null
    exec build/release/cli/fornax doctor "$@" ;;
  clean) for preset in build/*; do [ "$preset" = build/peers ] || rm -rf "$preset"; done ;;
  help | -h | --help) sed -n '2,/^set/ { s/^# \{0,1\}//p }' "$0" ;;
  *) die "no command '$command'; ./do help lists them" ;;
esac
