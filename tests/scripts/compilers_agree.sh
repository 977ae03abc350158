#!/usr/bin/env bash
# compilers_agree.sh BIN: results are the same bytes, whichever compiler built the program: BIN, by another compiler than the
# tests' program, gives each scenario the result that is kept next to it. That the tests' program does, on one thread to
# three, scenarios.golden shows.
set -euo pipefail
if [[ $# -ne 1 ]]; then
  echo "usage: $0 BIN" >&2
  exit 2
fi
ringsim=$(realpath -e "$1")
export ringsim
cd "$(dirname "$0")/../.."
export work
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Of the sanitizers only what costs little: that nothing is used after it was freed, the tests watch.
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=1:malloc_context_size=1

agree() {
  local scenario=$1 golden=${1%.json}.csv result
  result=$(mktemp -p "$work") || return 1
  [[ -s $golden ]] || { echo "$scenario: no $golden" >&2; return 1; }
  "$ringsim" run "$scenario" --format csv -j 2 > "$result" || return 1
  if ! cmp -s "$golden" "$result"; then
    echo "$scenario: $golden (<) and the result of $ringsim (>) part:" >&2
    diff "$golden" "$result" | head -20 >&2
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
