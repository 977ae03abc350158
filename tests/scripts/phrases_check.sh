#!/usr/bin/env bash
# No file has a phrase that tests/scripts/phrases.txt rules out: prints each with its file and line, exit code 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
list=tests/scripts/phrases.txt
files=$(git ls-files '*.hpp' '*.cpp' '*.cu' '*.cuh' '*.cmake' '*CMakeLists.txt' '*.py' '*.sh' '*.md' '*.json' '.ci/run' |
  grep -v -e '^topologies/presets/' -e '^tests/data/' -e '^tests/scripts/phrases')
found=$(
  xargs grep -nEf <(awk -F '\t' '!/^#/ && $3 == "" { print $1 }' "$list") <<< "$files" || true
  while IFS=$'\t' read -r phrase _ but; do
    grep -vE "$but" <<< "$files" | xargs grep -nE "$phrase" || true
  done < <(awk -F '\t' '!/^#/ && $3 != ""' "$list")
)
if [[ -n $found ]]; then
  echo "$found"
  echo "phrases_check: $(wc -l <<< "$found") lines have a phrase that $list rules out; it says what to write instead" >&2
  exit 1
fi
echo "phrases_check: none of the phrases that $list rules out"
