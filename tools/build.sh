#!/usr/bin/env bash
# Builds ringsim, Release, into build/; `tools/build.sh TARGET...` only those targets.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-deps.sh
CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
cmake --build build -j "$(nproc)" --target "${@:-all}"
