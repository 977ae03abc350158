#!/usr/bin/env bash
# Makes the documentation a site with search, in build-site/site, by Debian's mkdocs. The pages are those of the repository, at the
# same paths, so that links between them hold; a warning is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v mkdocs > /dev/null; then
  echo "site: error: no mkdocs here; Debian: apt-get install mkdocs" >&2
  exit 5
fi
rm -rf build-site
mkdir -p build-site/pages
git ls-files -z | xargs -0 cp --parents -t build-site/pages
mkdocs build --strict --quiet "$@"
echo "site: build-site/site/index.html"
