#!/usr/bin/env bash
# Writes the results of the example scenarios anew, and a line of scenarios/model_history.txt for each that is new or
# changed. Read the diff before you commit it. Usage: tests/update_goldens.sh RINGSIM
set -euo pipefail
ringsim=${1:?usage: tests/update_goldens.sh path/to/ringsim}
cd "$(dirname "$0")/../scenarios"
model=$("$ringsim" --version | sed -E 's/.*model ([0-9]+).*/\1/')
touch model_history.txt
for scenario in *.json; do
  name=${scenario%.json}
  "$ringsim" run "$scenario" --format csv -o "$name.expected"
  digest=$(xxhsum -H3 "$name.expected" 2>/dev/null | sed -E 's/^(XXH3_)?([0-9a-f]{16}).*/\2/;s/.*= ([0-9a-f]{16})$/\1/')
  if ! grep -q " $name $digest\$" model_history.txt; then
    echo "$model $name $digest" >> model_history.txt
    echo "$name: a line for model version $model was added"
  fi
done
