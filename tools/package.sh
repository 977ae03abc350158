#!/usr/bin/env bash
# Makes a package of the command in dist/: `tools/package.sh deb` a Debian package, `tools/package.sh tarball` a folder that runs on
# any Linux with the glibc of Debian 12 or newer, and `tools/package.sh wheel` the Python package with the command and the libraries of
# the tarball. The same commit and the same Debian packages give the same bytes, in any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build-package  # of all kinds: they differ in a single source
options=(-DCMAKE_BUILD_TYPE=Release -DRINGSIM_UNITY=ON -DRINGSIM_TESTS=OFF -DRINGSIM_REPLAY=ON -DRINGSIM_CUDA=OFF -DRINGSIM_MPI=OFF
  -DRINGSIM_CHAKRA=ON -DCMAKE_CXX_FLAGS=-D_FORTIFY_SOURCE=2 -DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,now)
kind=${1:-}
case $kind in
  deb) options+=(-DRINGSIM_BUNDLE=OFF -DRINGSIM_PNG=ON -DCMAKE_INSTALL_PREFIX=/usr) ;;
  tarball | wheel) options+=(-DRINGSIM_BUNDLE=ON -DRINGSIM_PNG=OFF -DCMAKE_INSTALL_PREFIX=/usr/local) ;;
  *) echo "usage: tools/package.sh deb|tarball|wheel" >&2; exit 2 ;;
esac
shift
tools/install-deps.sh package
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022
CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} cmake -S . -B "$build" "${options[@]}" "$@"
cmake --build "$build" -j "$(nproc)"
mkdir -p dist
if [[ $kind == wheel ]]; then
  rm -rf build-wheel
  cmake --install "$build" --component command --strip --prefix "$PWD/build-wheel/bundle" > /dev/null
  git ls-files -z python | xargs -0 cp --parents -t build-wheel
  chmod -R u=rwX,go=rX build-wheel/python  # wheels store the modes
  RINGSIM_BINARY=$PWD/build-wheel/bundle/bin/ringsim /usr/bin/python3 -m pip wheel --quiet --no-build-isolation --no-deps --no-index \
    --wheel-dir dist build-wheel/python
else
  rm -rf "$build/dist"
  (cd "$build" && cpack -B "$PWD/dist")
  find "$build/dist" -maxdepth 1 -name "ringsim*" -type f -exec cp {} dist/ \;
fi
(cd dist && sha256sum ringsim*)
