#!/usr/bin/env bash
# Instructions a transfer, counted by callgrind: a figure that neither the machine's load nor its clock changes.
#
#   tools/bench/instructions.sh [CASE...]
#
# Each case runs in one process once and in another twice; the difference of the two counts, over the transfers, is one
# whole run without what comes before it (start of the process, topology, proof). It still depends on compiler and libc.
set -euo pipefail
cd "$(dirname "$0")/../.."
once=${RINGSIM_ONCE:-build/tools/bench/ringsim_once}

if ! command -v valgrind > /dev/null; then
  echo "instructions.sh: error: valgrind is missing: apt-get install valgrind" >&2
  exit 5
fi
if [[ ! -x $once ]]; then
  echo "instructions.sh: error: $once is missing: cmake -S . -B build -DRINGSIM_BENCH=ON && cmake --build build --target ringsim_once" >&2
  exit 5
fi
[[ $# -gt 0 ]] || set -- ring/512 all_to_all/128/direct halving_doubling/1024 leaf_spine/512/halving_doubling

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# counted CASE TIMES: the instructions of the process; what it printed stays in $result.
counted() {
  if ! result=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$once" "$1" "$2" 2> "$log"); then
    cat "$log" >&2
    exit 4
  fi
  count=$(sed -n 's/.*Collected : //p' "$log")
}

printf '%-36s%14s%16s%24s\n' case transfers instructions 'instructions/transfer'
for name in "$@"; do
  counted "$name" 1
  first=$count
  counted "$name" 2
  transfers=$(sed -n 's/.*"transfers": \([0-9]*\).*/\1/p' <<< "$result")
  printf '%-36s%14d%16d%24.1f\n' "$name" "$transfers" "$((count - first))" \
    "$(awk "BEGIN { print ($count - $first) / $transfers }")"
done
