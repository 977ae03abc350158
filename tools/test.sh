#!/usr/bin/env bash
# Installs what is missing, builds, runs all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh
ctest --test-dir build --output-on-failure --no-tests=error -j "$(nproc)"
