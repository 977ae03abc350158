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
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

count=0
for scenario in scenarios/*.json scenarios/examples/*/*.json scenarios/questions/*.json; do
  [[ -f $scenario ]] || continue
  "$a" run "$scenario" --format json -j 1 > "$work/a1"
  "$a" run "$scenario" --format json -j 2 > "$work/a2"
  "$b" run "$scenario" --format json -j 2 > "$work/b2"
  [[ -s $work/a1 ]] || { echo "$scenario: no result" >&2; exit 1; }
  for other in a2 b2; do
    if ! cmp -s "$work/a1" "$work/$other"; then
      echo "$scenario: $a -j 1 (<) and the run $other (>) part; a is $a, b is $b, the digit is -j:" >&2
      diff "$work/a1" "$work/$other" | head -20 >&2
      exit 1
    fi
  done
  count=$((count + 1))
done
if [[ $count -eq 0 ]]; then
  echo "compilers_agree: no scenario found" >&2
  exit 1
fi
echo "compilers_agree: $count scenarios, byte for byte"
