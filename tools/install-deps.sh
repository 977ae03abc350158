#!/usr/bin/env bash
# Installs what ringsim is built with, as Debian 12 packages; nothing is touched where all is there already.
# `tools/install-deps.sh package` adds what tools/package.sh needs, and `tools/install-deps.sh ci` what .ci/run needs.
set -euo pipefail

missing=()
# need PACKAGE WHAT: a command, or a file (a pattern), that tells whether the package is needed.
need() {
  if [[ $2 == /* ]]; then
    compgen -G "$2" > /dev/null || missing+=("$1")
  else
    command -v "$2" > /dev/null || missing+=("$1")
  fi
}

need g++ g++
need cmake cmake
need ninja-build ninja
need libboost-dev "/usr/*/boost/graph/adjacency_list.hpp"
need nlohmann-json3-dev "/usr/*/nlohmann/json.hpp"
need libcli11-dev "/usr/*/CLI/CLI.hpp"
need libfmt-dev "/usr/*/fmt/format.h"
need libxxhash-dev "/usr/*/xxhash.h"
need robin-map-dev "/usr/*/tsl/robin_map.h"
need zlib1g-dev "/usr/*/zlib.h"
need libsqlite3-dev "/usr/*/sqlite3.h"
need libnlopt-dev "/usr/*/nlopt.h"
need libpugixml-dev "/usr/*/pugixml.hpp"
need libssl-dev "/usr/include/openssl/hmac.h"
need doctest-dev "/usr/*/doctest/doctest.h"
if [[ ${1:-} == ci || ${1:-} == package ]]; then
  need librsvg2-dev "/usr/include/librsvg-2.0/librsvg/rsvg.h"
  need pkg-config pkg-config
  need libprotobuf-dev "/usr/include/google/protobuf/message_lite.h"
  need protobuf-compiler protoc
  need python3-pip "/usr/lib/python3/dist-packages/pip/__init__.py"
  need python3-setuptools "/usr/lib/python3/dist-packages/setuptools/__init__.py"
  need python3-wheel "/usr/lib/python3/dist-packages/wheel/__init__.py"
fi
if [[ ${1:-} == package ]]; then
  need dpkg-dev dpkg-shlibdeps
  need file file
  need git git
fi
if [[ ${1:-} == ci ]]; then
  need clang clang++
  need libclang-rt-14-dev "/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.asan-*.a"
  need lld ld.lld
  need clang-format clang-format
  need clang-tidy clang-tidy
  need codespell codespell
  need libopenmpi-dev "/usr/lib/*/openmpi/include/mpi.h"
  need openmpi-bin mpirun
  need iproute2 tc
  need chromium-headless-shell chromium-headless-shell
  need fonts-dejavu-core "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
  need python3-jsonschema "/usr/lib/python3/dist-packages/jsonschema/__init__.py"
  need python3-venv "/usr/lib/python3.*/ensurepip/__init__.py"
fi

if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi
echo "missing: ${missing[*]}" >&2
if ! command -v apt-get > /dev/null; then
  echo "install-deps: error: no apt-get here: install the above by the names that your system gives them" >&2
  exit 1
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo > /dev/null; then
    echo "install-deps: error: neither root nor sudo: ask for  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
echo "installing: ${missing[*]}" >&2
"${apt[@]}" update >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
