#!/usr/bin/env bash
# fornax train, on a small data set of its own: repeats itself, goes on where it was stopped, stops
# by Ctrl-C, refuses at once what cannot end well, and draws a bar on terminals alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# check WHAT COMMAND...: the command succeeds.
check() {
  local what=$1
  shift
  if "$@"; then
    echo "ok      $what"
  else
    failed=1
    echo "FAILED  $what"
    tail -n 5 "$work"/*.out
  fi
}
says() { grep -qF -- "$2" "$work/$1.out"; }
silent() { ! says "$@"; }
same() { cmp "$work/$1" "$work/$2"; }

# idx FILE SIZE...: the head of an IDX file of bytes.
idx() {
  local file=$1 size
  shift
  printf "\\x00\\x00\\x08\\x$(printf %02x $#)" >"$file"
  for size in "$@"; do
    printf "\\x00\\x00\\x$(printf %02x $((size >> 8)))\\x$(printf %02x $((size & 255)))" >>"$file"
  done
}
# pictures NAME COUNT: that many of digits in a row, labelled 0 to 9 in turn.
pictures() {
  local name=$1 count=$2 i
  idx "$work/data/$name-images-idx3-ubyte" "$count" 28 28
  head -c $((count * 28 * 28)) < <(seq 1000000) >>"$work/data/$name-images-idx3-ubyte"
  idx "$work/data/$name-labels-idx1-ubyte" "$count"
  for ((i = 0; i < count; i += 10)); do printf '\0\1\2\3\4\5\6\7\10\11'; done \
    >>"$work/data/$name-labels-idx1-ubyte"
}
mkdir "$work/data"
pictures train 600
pictures t10k 100

# run NAME OPTION...: sets `line` to a run of 12 steps an epoch that saves to NAME.
run() {
  local name=$1 option
  shift
  line=("$build/cli/fornax" train fashion-mnist --device cpu --data "$work/data" "$@")
  for option in "--save $work/$name" "--epochs 2" "--batch 50" "--seed 3"; do
    [[ " $* " == *" ${option% *} "* ]] || line+=(${option% *} "${option#* }")
  done
}
# train NAME OPTION...: its output goes to NAME.out.
train() {
  run "$@"
  "${line[@]}" >>"$work/$1.out" 2>&1
}
refused() { ! train "$@"; }

check "trains" train first
check "trains again" train second
check "one seed, one model" same first second
check "one seed, one checkpoint" same first.checkpoint second.checkpoint
check "says that the file holds what was trained" says first "of the test pictures: identical"
check "prints plain lines" says first "epoch 2 100%  loss "
check "prints no escapes" silent first $'\x1b'
check "redraws nothing" silent first $'\r'

check "--steps ends well" train third --steps 15
check "says how to go on" says third "stopped after step 15; go on with --resume ($work/third.check"
check "--resume ends well" train third --resume
check "says where it goes on" says third "resuming after step 15"
check "stopped and resumed, the same model" same first third
check "stopped and resumed, the same checkpoint" same first.checkpoint third.checkpoint

# Ctrl-C after the first epoch.
run fourth --epochs 100000
"${line[@]}" >"$work/fourth.out" 2>&1 &
job=$!
for ((i = 0; i < 200; i++)); do
  [ -e "$work/fourth.checkpoint" ] && break
  sleep 0.1
done
kill -INT $job || true
check "Ctrl-C ends well" wait $job
check "Ctrl-C keeps a checkpoint" test -s "$work/fourth.checkpoint"
check "Ctrl-C says how to go on" says fourth "go on with --resume ($work/fourth.checkpoint)"

check "--resume with another batch is refused" refused third --resume --batch 25
check "says both" says third "was made with --batch 50, and this run has --batch 25"
check "--resume with another seed is refused" refused third --resume --seed 4
check "says both seeds" says third "was made with --seed 3, and this run has --seed 4"
check "--resume with other epochs is refused" refused third --resume --epochs 3
check "says both numbers" says third "was made with --epochs 2, and this run has --epochs 3"
check "--resume with another rate is refused" refused third --resume --lr 0.5
check "--resume without a checkpoint starts anew" train fifth --resume --steps 1
check "says so" says fifth "no checkpoint at $work/fifth.checkpoint; starting anew"

check "what cannot be saved is refused" refused sixth --save /nowhere/model
check "says why" says sixth "cannot create a file beside /nowhere/model: No such file"
check "before any work" silent sixth "epoch 1"
check "no epochs are refused" refused seventh --epochs 0
check "says which there may be" says seventh "0 is not a whole number from 1 to 1000000000"
check "a rate of 0 is refused" refused seventh --lr 0
check "says what it must be" says seventh "0 is not a number above 0"

if type -P script >/dev/null; then
  run eighth --epochs 1 --batch 1
  script -qec "$(printf '%q ' "${line[@]}")" /dev/null </dev/null >"$work/eighth.out"
  check "draws a bar on a terminal" says eighth " [="
  check "redraws it in place" says eighth $'\x1b[K'
fi
exit $failed
