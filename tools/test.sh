#!/usr/bin/env bash
# Installs what is missing, builds, runs all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh
ctest --test-dir build --output-on-failure --no-tests=error -j $(($(nproc) * 3 / 2))  # some wait for processes most of their time
