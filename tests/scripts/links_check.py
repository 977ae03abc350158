#!/usr/bin/env python3
"""Every relative link and picture of the repository's Markdown pages leads to a file that exists, and every anchor to a heading.

Usage: tests/scripts/links_check.py [ROOT]     exit code 1, and one line per broken link, if one does not
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
root = root if root.is_dir() else root.parents[2]


def prose(page):
    """The text of a page without its code blocks."""
    return re.sub(r"^( {4}[^\n]*|```.*?^```)$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page):
    """The ids that GitHub gives to the headings of a page, and those that the page sets itself."""
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", prose(page)))
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", prose(page), flags=re.M):
        text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while (name if number == 0 else f"{name}-{number}") in found:
            number += 1
        found.add(name if number == 0 else f"{name}-{number}")
    return found


broken, links, anchors_of = [], 0, {}
for page in sorted(root.rglob("*.md")):
    if any(part.startswith((".", "build")) for part in page.relative_to(root).parts):
        continue
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        links += 1
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            broken.append(f"{page.relative_to(root)}: {link}: no such file")
        elif target.suffix == ".md" and anchor:
            if target not in anchors_of:
                anchors_of[target] = anchors(target)
            if anchor not in anchors_of[target]:
                broken.append(f"{page.relative_to(root)}: {link}: no heading with this anchor")
print("\n".join(broken) or f"links_check: {links} links, none broken")
sys.exit(1 if broken else 0)
