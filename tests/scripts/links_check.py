#!/usr/bin/env python3
"""Every relative link and picture of the repository's Markdown pages leads to a file that exists.

Usage: tests/scripts/links_check.py [ROOT]     exit code 1, and one line per broken link, if one does not
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
root = root if root.is_dir() else root.parents[2]
broken, links = [], 0
for page in sorted(root.rglob("*.md")):
    if any(part.startswith((".", "build")) for part in page.relative_to(root).parts):
        continue
    text = re.sub(r"^( {4}.*|```.*?^```)$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        target = target.split("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            continue
        links += 1
        if not (page.parent / target).exists():
            broken.append(f"{page.relative_to(root)}: {target}")
print("\n".join(broken) or f"links_check: {links} links, none broken")
sys.exit(1 if broken else 0)
