#!/usr/bin/env python3
"""The errors that README.md states are those of docs/results/accuracy.md and docs/results/leave-one-out.md.

Usage: tests/scripts/readme_numbers.py [ROOT]     exit code 1, and one line per number, if one is not
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
root = root if root.is_dir() else root.parents[2]
readme = (root / "README.md").read_text(encoding="utf-8")
accuracy = (root / "docs/results/accuracy.md").read_text(encoding="utf-8")
left_out = (root / "docs/results/leave-one-out.md").read_text(encoding="utf-8")
sizes = ["up to 64 KiB", "64 KiB to 8 MiB", "8 MiB and more", "256 MiB and more"]
wrong = []


def table(text):
    """The first table as {row: {column: cell}}."""
    lines = re.search(r"(?:^\|.*\n)+", text, re.M).group(0).splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(head[1:], row[1:])) for row in rows}


def errors(cell):
    """"25 / 42 (524)" without its number of rows, "5 / 21 / +1" without its bias."""
    return " / ".join(re.match(r"(\d+) / (\d+)", cell).groups())


def hold(where, found, expected):
    if found != expected:
        wrong.append(f"{where}: expected {expected}, found {found}")


all_rows = table(accuracy.split("\n## By size\n")[1])
several = table(accuracy.split("\n## By size: several nodes\n")[1])
stated = table(readme.split("\n## How accurate it is\n")[1])
columns = {"machine in the fit": "ringsim, library", "textbook ring": "textbook ring",
           "NCCL's own formula": "NCCL's tuner", "alpha + S/beta, fitted to each table": "alpha + S/beta"}
apart = table(left_out)
hold("README.md: rows of its table", list(stated), sizes)
for row, cells in stated.items():
    hold(f"README.md: {row}, machine never seen", cells["machine never seen"], errors(apart["machine left out, launch given"][row]))
    for name, of_page in columns.items():
        hold(f"README.md: {row}, {name}", cells[name], errors(all_rows[row][of_page]))
hold("README.md: several nodes", re.search(r"measured\s+on\s+several\s+nodes,.*?(\d+ / \d+)", readme, re.S).group(1),
     errors(several["all sizes"]["ringsim, library"]))
counted = re.search(r"^There are (\d+) tables .*scored\.(?: (\d+) tables were measured with RCCL)?", accuracy, re.M)
tables = str(int(counted.group(1)) - int(counted.group(2) or 0))
hold("README.md: published tables", re.search(r"(\d+)\s+published\s+NCCL\s+tables", readme).group(1), tables)

for size in sizes:
    hold(f"docs/results/leave-one-out.md: all tables included in the fit, {size}", errors(apart["all tables included in the fit"][size]),
         errors(all_rows[size]["ringsim, library"]))
print("\n".join(wrong) or "readme_numbers: all are those of the pages")
sys.exit(1 if wrong else 0)
