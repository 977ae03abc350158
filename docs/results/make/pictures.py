#!/usr/bin/env python3
"""Draws the pictures of docs/pictures that ringsim makes itself: a topology, and a schedule.

Usage: docs/results/make/pictures.py path/to/ringsim [--check]      (--check compares, exit code 1 where one differs)
"""
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[3]
scenarios = root / "scenarios"
pictures = {
    "two-dgx-1v.svg": ["topology", "picture", scenarios / "examples/machines/two-node-server.json"],
    "ring-of-four.svg": ["schedule", "picture", scenarios / "star.json", "--set", "topology.ranks=4",
                         "--set", "collective.algorithm=ring"],
}

if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
    sys.exit(__doc__)
differ = []
for name, words in pictures.items():
    text = subprocess.run([sys.argv[1], *words, "-o", "-"], check=True, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL).stdout
    path = root / "docs/pictures" / name
    if sys.argv[2:] == []:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        differ.append(f"docs/pictures/{name}")
if differ:
    sys.exit(f"{', '.join(differ)}: not what {sys.argv[0]} draws now; run it again and look at the pictures")
