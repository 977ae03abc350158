#!/usr/bin/env bash
# From a fresh Debian 12 to a first result: installs what is missing, builds, runs an example.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh ringsim
set -x
build/tools/ringsim run scenarios/examples/machines/two-node-server.json
