#!/usr/bin/env bash
# compilers_agree.sh RINGSIM: a program that another compiler built gives the results that are kept next to the examples, byte
# for byte, on two threads. golden_test compares those with the program that is released.
set -euo pipefail
if [[ $# -ne 1 ]]; then
  echo "usage: $0 RINGSIM" >&2
  exit 2
fi
ringsim=$(realpath -e "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ringsim work

# One scenario. Only if the results differ, one thread says whether the compiler or the threads did it.
agree() {
  local scenario=$1 kept=${1%.json}.csv because=compilers
  local found=$work/${1//\//_}
  [[ -s $kept ]] || { echo "$kept: no results are kept" >&2; return 1; }
  "$ringsim" run "$scenario" --format csv -j 2 > "$found" || return 1
  cmp -s "$kept" "$found" && return
  "$ringsim" run "$scenario" --format csv -j 1 > "$found.1" || return 1
  if cmp -s "$kept" "$found.1"; then because=threads; fi
  echo "$scenario: what is kept (<) and what $ringsim finds (>) differ, because of the $because:" >&2
  diff "$kept" "$found" | head -20 >&2
  return 1
}
export -f agree

shopt -s nullglob
scenarios=(scenarios/*.json scenarios/examples/*/*.json scenarios/questions/*.json)
if [[ ${#scenarios[@]} -eq 0 ]]; then
  echo "compilers_agree: no scenario found" >&2
  exit 1
fi
# 255: xargs starts no further one.
printf '%s\0' "${scenarios[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'agree "$1" || exit 255' agree {} || exit 1
echo "compilers_agree: ${#scenarios[@]} scenarios, byte for byte"
