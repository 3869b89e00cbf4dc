#!/usr/bin/env bash
# A user's project builds and runs against an installed Fornax and against its source folder; its GPU
# program has the CUDA runtime, and the other one has nothing of it.
#   consumer.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
source=$PWD work=$build/consumer
rm -rf "$work"
cmake --install "$build" --prefix "$work/installed" >/dev/null

# grep reads to the end: one that stops early fails nm, and with it the pipe.
has_runtime() { nm -C "$1" | grep "fornax::cuda::CudaRuntime::launch" >/dev/null; }

# The flags of the release preset, so that ccache knows the objects of the second build.
try() {
  local name=$1
  shift
  echo "== $name"
  cmake -S tests/build/consumer -B "$work/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE=-O2 -DCMAKE_CXX_COMPILER=g++ "$@" >/dev/null
  cmake --build "$work/$name" >/dev/null
  "$work/$name/consumer"
  "$work/$name/consumer_gpu"
  has_runtime "$work/$name/consumer_gpu" || { echo "consumer_gpu lacks the CUDA runtime"; exit 1; }
  ! has_runtime "$work/$name/consumer" || { echo "consumer has the CUDA runtime"; exit 1; }
  ! ldd "$work/$name/consumer" | grep sqlite || { echo "consumer needs SQLite"; exit 1; }
}
try find_package -DCMAKE_PREFIX_PATH="$work/installed"
try add_subdirectory -DFORNAX_SOURCE="$source" -DFORNAX_WERROR=ON \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)"
