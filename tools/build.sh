#!/usr/bin/env bash
# Builds ringsim, Release, into build/: all of it, or the TARGETs given.
# Usage: tools/build.sh [-DOPTION=VALUE]... [TARGET]...
set -euo pipefail
cd "$(dirname "$0")/.."
options=(-DCMAKE_BUILD_TYPE=Release -DRINGSIM_UNITY=ON -DRINGSIM_TESTS=ON -DRINGSIM_REPLAY=ON)
while [[ ${1:-} == -D* ]]; do
  options+=("$1")
  shift
done
tools/install-deps.sh
CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} cmake -S . -B build "${options[@]}"
cmake --build build -j "$(nproc)" --target "${@:-all}"
