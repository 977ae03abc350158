#!/usr/bin/env bash
# Makes a package of the command in dist/: `tools/package.sh deb` a Debian package, `tools/package.sh tarball` a folder that runs on
# any Linux with the glibc of Debian 12 or newer. The same commit and the same Debian packages give the same bytes, in any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(-DCMAKE_BUILD_TYPE=Release -DRINGSIM_UNITY=ON -DRINGSIM_TESTS=OFF -DRINGSIM_REPLAY=ON -DRINGSIM_CUDA=OFF -DRINGSIM_MPI=OFF)
case ${1:-} in
  deb) options+=(-DRINGSIM_BUNDLE=OFF -DRINGSIM_PNG=ON -DCMAKE_INSTALL_PREFIX=/usr) ;;
  tarball) options+=(-DRINGSIM_BUNDLE=ON -DRINGSIM_PNG=OFF -DCMAKE_INSTALL_PREFIX=/usr/local) ;;
  *) echo "usage: tools/package.sh deb|tarball" >&2; exit 2 ;;
esac
kind=$1
shift
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022
CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} cmake -S . -B "build-$kind" "${options[@]}" "$@"
cmake --build "build-$kind" -j "$(nproc)"
(cd "build-$kind" && cpack -B "$PWD/../build-$kind/dist")
mkdir -p dist
find "build-$kind/dist" -maxdepth 1 -name "ringsim*" -type f -exec cp {} dist/ \;
(cd dist && sha256sum ringsim*)
