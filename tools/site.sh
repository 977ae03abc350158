#!/usr/bin/env bash
# Makes the documentation a site with search, in build-site/site, by Debian's mkdocs. The pages are those of the repository, at the
# same paths, so that links between them hold; a warning or a broken link is an error.
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
# Debian's theme lacks two scripts that its pages load: it has jQuery by another name, and not the line that formats tables.
js=build-site/site/js
[[ -e $js/jquery-3.6.0.min.js ]] || cp $js/jquery-*.min.js $js/jquery-3.6.0.min.js
[[ -e $js/theme_extra.js ]] || echo "\$('div.rst-content table').addClass('docutils');" > $js/theme_extra.js
# Its script takes links to "#" for the current page: it would open all sections, and scroll the search box out of sight.
find build-site/site -name '*.html' -exec sed -i -E 's/(<a class="reference internal( current)?") href="#">/\1 tabindex="0">/' {} +
/usr/bin/python3 tests/scripts/site_check.py build-site/site
echo "site: python3 -m http.server -d build-site/site    (the search needs a web server; the pages do not)"
