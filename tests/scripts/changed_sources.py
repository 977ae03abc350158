#!/usr/bin/env python3
"""The sources that a change may have broken: those that changed since a commit, and those that include a header that did.

Usage: tests/scripts/changed_sources.py [BASE] [--and-a-fourth]

Prints paths of .cpp files outside tests, one per line. Without BASE, or if the repository's history does not go back to it: all.
--and-a-fourth: of the others every fourth as well, another fourth with another HEAD.
"""
import pathlib
import re
import subprocess
import sys

FOLDERS = ("sim", "topologies", "algorithms", "scenarios", "validate", "tools")


def git(*words):
    return subprocess.run(["git", *words], text=True, capture_output=True)


def included(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    sources = sorted(path for folder in FOLDERS for path in pathlib.Path(folder).rglob("*.[ch]pp"))
    changed = git("diff", "--name-only", words[0]) if words else None
    if changed is None or changed.returncode != 0:
        chosen = {str(path) for path in sources}
    else:
        includes = {str(path): included(path) for path in sources}
        chosen = set(changed.stdout.split())
        grown = True
        while grown:
            more = {path for path, names in includes.items() if path not in chosen and not chosen.isdisjoint(names)}
            # What a source includes does not spread: only headers pass it on.
            grown = any(path.endswith(".hpp") for path in more)
            chosen |= more
    found = [str(path) for path in sources if path.suffix == ".cpp"]
    turn = int(git("rev-parse", "HEAD").stdout[:8], 16) % 4
    for i, path in enumerate(found):
        if path in chosen or ("--and-a-fourth" in sys.argv and i % 4 == turn):
            print(path)


if __name__ == "__main__":
    main()
