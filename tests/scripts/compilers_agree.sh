#!/usr/bin/env bash
# compilers_agree.sh BIN_A BIN_B: results are the same bytes, whichever compiler built the program and on however many
# threads it runs.
set -euo pipefail
if [[ $# -ne 2 ]]; then
  echo "usage: $0 BIN_A BIN_B" >&2
  exit 2
fi
a=$(realpath -e "$1")
b=$(realpath -e "$2")
export a b
cd "$(dirname "$0")/../.."
export work
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One scenario: `a` on one thread, `b` on two. Only where they differ, `a` on two says whether the compiler or the threads did it.
agree() {
  local scenario=$1 results because=compilers
  results=$(mktemp -d -p "$work") || return 1
  "$a" run "$scenario" --format json -j 1 > "$results/a1" || return 1
  "$b" run "$scenario" --format json -j 2 > "$results/b2" || return 1
  [[ -s $results/a1 ]] || { echo "$scenario: no result" >&2; return 1; }
  if ! cmp -s "$results/a1" "$results/b2"; then
    "$a" run "$scenario" --format json -j 2 > "$results/a2" || return 1
    cmp -s "$results/a1" "$results/a2" || because=threads
    echo "$scenario: $a -j 1 (<) and $b -j 2 (>) part, because of the $because:" >&2
    diff "$results/a1" "$results/b2" | head -20 >&2
    return 1
  fi
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
