#!/usr/bin/env bash
# From a fresh Debian 12 to a first result: installs what is missing, builds what predicts, runs an example.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh -DRINGSIM_REPLAY=OFF -DRINGSIM_TESTS=OFF ringsim
set -x
build/tools/ringsim run scenarios/two-dgx-a100.json
