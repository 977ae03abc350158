#!/usr/bin/env bash
# Writes the results of the example scenarios anew, and a line of scenarios/model_history.txt for each that is new or
# changed (needs Debian's xxhash); and the tables of docs/results/algorithms.md. Read the diff before you commit it.
# Usage: tests/scripts/update_goldens.sh RINGSIM
set -euo pipefail
ringsim=$(realpath "${1:?usage: tests/scripts/update_goldens.sh path/to/ringsim}")
cd "$(dirname "$0")/../../scenarios"
model=$("$ringsim" --version | sed -E 's/.*model ([0-9]+).*/\1/')
touch model_history.txt
digest() { xxhsum -H3 "$1" | sed -E 's/.*= ([0-9a-f]{16})$/\1/'; }
for scenario in *.json examples/*/*.json questions/*.json; do
  name=${scenario%.json}
  "$ringsim" run "$scenario" --format csv -o "$name.expected"
  line="$name $(digest "$scenario") $(digest "$name.expected")"
  if ! grep -q " $line\$" model_history.txt; then
    echo "$model $line" >> model_history.txt
    echo "$name: a line for model version $model was added"
  fi
done
# The tables of docs/results/algorithms.md, below the text that people write.
page=../docs/results/algorithms.md
text=$(sed '/^<!-- below this line/q' "$page")
{ printf '%s\n\n' "$text"; "$ringsim" list comparison; } > "$page.new"
mv "$page.new" "$page"
