#!/usr/bin/env python3
"""Every link, picture and script of the site leads to a file in it, and every anchor to an element with this id.

Usage: tests/scripts/site_check.py FOLDER     exit code 1, and one line per broken link, if one does not
Scripts and styles from other hosts are errors as well: the site must work without a network.
"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append((tag, value))


site = pathlib.Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
broken, n_links = [], 0
for path, page in pages.items():
    for tag, link in page.links:
        url = urllib.parse.urlsplit(link)
        if url.scheme or url.netloc:
            if tag in ("script", "link", "img"):
                broken.append(f"{path.relative_to(site)}: {link}: expected a file of the site")
            continue
        n_links += 1
        folder = site if url.path.startswith("/") else path.parent
        target = (folder / urllib.parse.unquote(url.path).lstrip("/")).resolve() if url.path else path
        anchor = urllib.parse.unquote(url.fragment)
        if not target.is_file():
            broken.append(f"{path.relative_to(site)}: {link}: no such file")
        elif anchor and target in pages and anchor not in pages[target].ids:
            broken.append(f"{path.relative_to(site)}: {link}: no element with this id")
print("\n".join(sorted(set(broken))) or f"site_check: {len(pages)} pages, {n_links} links, none broken")
sys.exit(1 if broken else 0)
