#!/usr/bin/env bash
# From a fresh Debian 12 to a first result: installs what is missing, builds what predicts, runs an example.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh -DRINGSIM_REPLAY=OFF -DRINGSIM_TESTS=OFF ringsim
set -x
build/tools/ringsim compare scenarios/examples/library/nccl-two-dgx-a100.json \
  validate/measured/tables/sophia-dgxa100-2n8g-all_reduce-gdrpxb.csv
