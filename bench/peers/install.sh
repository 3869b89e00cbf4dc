#!/usr/bin/env bash
# Installs the peers that the benches are compared with, in build/peers: the Python ones in a virtual environment,
# the Rust ones built from this folder. Needs the network; run again, it does only what is not yet done.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../.." && pwd)/build/peers
peers=(torch jax burn candle)

usage() {
    echo "usage: install.sh [--only torch|jax|burn|candle]"
    echo "Everything takes about 6 GB of disk, 4 GB of it for torch, and half an hour on two cores, mostly for burn."
}

while (($#)); do
    case $1 in
    --only)
        [[ " ${peers[*]} " == *" ${2-} "* ]] || { usage >&2; exit 2; }
        peers=("$2")
        shift 2
        ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
done
wanted() { [[ " ${peers[*]} " == *" $1 "* ]]; }

missing=()
python=${PYTHON:-python3}
if wanted torch || wanted jax; then
    [[ $(uname -sm) == "Linux x86_64" ]] || missing+=("an x86-64 Linux, which the pinned Python packages are for")
    if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        missing+=("Python 3.11, 3.12 or 3.13 (apt-get install python3, or PYTHON=/path/to/python)")
    elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        missing+=("Python's venv module (apt-get install python3-venv)")
    fi
fi
if wanted burn || wanted candle; then
    rust=$(rustc --version 2>/dev/null | cut -d' ' -f2) || true
    if ! command -v cargo >/dev/null || [[ $(printf '%s\n' 1.95 "${rust:-0}" | sort -V | head -n1) != 1.95 ]]; then
        missing+=("cargo and rustc 1.95 or newer (Debian's are older: install them with rustup); found rustc ${rust:-none}")
    fi
    command -v cc >/dev/null || missing+=("a C compiler, with which Rust links (apt-get install gcc)")
fi
if ((${#missing[@]})); then
    printf 'peers: missing: %s\n' "${missing[@]}" >&2
    exit 1
fi

mkdir -p "$out"

install_python() {
    echo "peers: installing the Python packages of $1"
    [[ -x $out/venv/bin/pip ]] || "$python" -m venv "$out/venv"
    "$out/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
        -r "$here/$1"
}

build_rust() {
    echo "peers: building $1"
    (cd "$here/$1" && CARGO_TARGET_DIR=$out/target cargo build --release)
}

# torch warns when numpy is absent, so it too gets the common set.
if wanted torch || wanted jax; then install_python requirements.txt; fi
if wanted torch; then
    echo "peers: torch brings CUDA libraries, a download of some 2 GB"
    install_python requirements-torch.txt
fi
if wanted candle; then build_rust candle; fi
if wanted burn; then build_rust burn; fi

[[ -d /usr/share/datasets/fashion-mnist ]] ||
    echo "peers: --work cnn_epoch also needs the data set (apt-get install dataset-fashion-mnist)"
echo "peers: ready in $out: ${peers[*]}"
