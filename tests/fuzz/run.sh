#!/usr/bin/env bash
# Fuzzes every reader of outside input: `tests/fuzz/run.sh HOURS [TABLE]`. Needs clang and its libFuzzer.
# HOURS, such as 8 or 0.5, are divided among all targets; each runs on all cores. TABLE: the file of the table that is
# printed at the end. What is found is in build-fuzz/findings/TARGET, the corpus that grows in build-fuzz/corpus/TARGET.
# Exits 1 if anything was found. FUZZ_JOBS: cores; FUZZ_TARGETS: only those targets; FUZZ_NICE: 10.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ $# -lt 1 || $# -gt 2 || ! $1 =~ ^[0-9]*[.]?[0-9]+$ ]]; then
  echo "usage: tests/fuzz/run.sh HOURS [TABLE]" >&2
  exit 2
fi
hours=$1 table=${2:-build-fuzz/table.md}
jobs=${FUZZ_JOBS:-$(nproc)}
clang=$(command -v clang++ || command -v clang++-14 || true)
if [[ -z $clang ]]; then
  echo "run.sh: error: no clang++ here: install clang and libclang-rt-14-dev (tools/install-deps.sh ci)" >&2
  exit 2
fi
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  "$clang" -x c++ -fsanitize=fuzzer - -o /dev/null 2> /dev/null; then
  echo "run.sh: error: $clang has no libFuzzer: install libclang-rt-14-dev, or that of your version" >&2
  exit 2
fi

launcher=()
if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -G Ninja -S . -B build-fuzz -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -gline-tables-only -DNDEBUG" -DRINGSIM_CUDA=OFF -DRINGSIM_UNITY=ON \
  -DRINGSIM_TESTS=OFF -DRINGSIM_FUZZ=ON "${launcher[@]}" > build-fuzz.log 2>&1 ||
  { cat build-fuzz.log >&2; exit 2; }
rm build-fuzz.log
nice -n "${FUZZ_NICE:-10}" cmake --build build-fuzz -j "$jobs" --target ringsim_fuzz >&2
fuzzer=$PWD/build-fuzz/tests/fuzz/ringsim_fuzz

mkdir -p build-fuzz/logs
"$fuzzer" --words > build-fuzz/words.dict
read -ra targets <<< "${FUZZ_TARGETS:-$("$fuzzer" --targets | tr '\n' ' ')}"
seconds=$(awk -v hours="$hours" -v n="${#targets[@]}" 'BEGIN { s = int(hours * 3600 / n); print s < 1 ? 1 : s }')
# What libFuzzer looks at itself: a text that takes 10 s, and one that asks for much memory.
options=(-timeout=10 -rss_limit_mb=2000 -malloc_limit_mb=1000 -max_len=8192)
export ASAN_OPTIONS=allocator_may_return_null=0:detect_leaks=1:detect_stack_use_after_return=0
export UBSAN_OPTIONS=print_stacktrace=1

: > "$table"
print() { printf '%s\n' "$1" | tee -a "$table"; }
print "| target | executions | edges | corpus | findings |"
print "| --- | ---: | ---: | ---: | ---: |"
total=0
for target in "${targets[@]}"; do
  corpus=build-fuzz/corpus/$target seeds=build-fuzz/seeds/$target found=build-fuzz/findings/$target log=build-fuzz/logs/$target
  rm -rf "$seeds" "$found"
  mkdir -p "$corpus" "$seeds" "$found"
  "$fuzzer" --seeds "$target" "$seeds"
  dictionary=()
  if [[ -e tests/fuzz/dictionaries/$target.dict ]]; then dictionary=(-dict="tests/fuzz/dictionaries/$target.dict"); fi
  if [[ $target == scenario || $target == set ]]; then dictionary=(-dict=build-fuzz/words.dict); fi
  export RINGSIM_FUZZ_TARGET=$target
  # Processes that libFuzzer starts again when they find something.
  nice -n "${FUZZ_NICE:-10}" "$fuzzer" "${options[@]}" "${dictionary[@]}" -fork="$jobs" -ignore_crashes=1 -ignore_timeouts=1 \
    -ignore_ooms=1 -max_total_time="$seconds" -artifact_prefix="$found/" "$corpus" "$seeds" > "$log" 2>&1 ||
    { [[ -n $(ls "$found") ]] || { tail -20 "$log" >&2; exit 2; }; }
  # The smallest text for each complaint stays.
  complaints=()
  while read -r file; do
    complaint=$("$fuzzer" "${options[@]}" "$file" 2>&1 | grep -m1 -oE "what\(\):.*|[^ ]*: runtime error:.*|SUMMARY:.*") || true
    complaint=${complaint:-not found again}
    if [[ " ${complaints[*]} " == *" $complaint "* ]]; then
      rm "$file"
    else
      complaints+=("$complaint")
      echo "$file: $complaint" >&2
    fi
  done < <(find "$found" -type f -printf '%s %p\n' | sort -n | cut -d ' ' -f 2)
  read -r executions edges < <(sed -n 's/^#\([0-9]*\): cov: \([0-9]*\) .*/\1 \2/p' "$log" | tail -1) || true
  total=$((total + ${#complaints[@]}))
  print "| $target | ${executions:-0} | ${edges:-0} | $(find "$corpus" -type f | wc -l) | ${#complaints[@]} |"
done
if ((total > 0)); then
  echo "run.sh: findings: $total, in build-fuzz/findings; tests/README.md says what to do with one" >&2
  exit 1
fi
