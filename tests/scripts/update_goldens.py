#!/usr/bin/env python3
"""Writes the expected results of the example scenarios, the lines of scenarios/model_history.txt that are new or changed,
and the tables of docs/results/algorithms.md. Read the diff before you commit it. Needs Debian's xxhash.

Usage: tests/scripts/update_goldens.py RINGSIM
"""
import csv
import json
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
scenarios = root / "scenarios"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **more).stdout


def digest(golden):
    """Of the times and fingerprints: what a model version promises. Other columns may come and go."""
    with open(golden, newline="") as file:
        rows = "".join(f"{row['time_us']} {row['fingerprint']}\n" for row in csv.DictReader(file))
    return run("xxhsum", "-H3", "-", input=rows).split("= ")[1].split("\n")[0].strip()


def main(ringsim):
    ringsim = pathlib.Path(ringsim).resolve()
    version = run(ringsim, "--version").split("model ")[1].split(")")[0]
    history = scenarios / "model_history.txt"
    lines = history.read_text().splitlines()
    for scenario in sorted([*scenarios.glob("*.json"), *scenarios.glob("examples/*/*.json"), *scenarios.glob("questions/*.json")]):
        golden = scenario.with_suffix(".csv")
        run(ringsim, "run", scenario, "--format", "csv", "-o", golden)
        question = json.loads(run(ringsim, "run", scenario, "--format", "json"))["scenario"]["hash"]
        line = f"{scenario.relative_to(scenarios).with_suffix('')} {question} {digest(golden)}"
        if line not in (old.split(" ", 1)[1] for old in lines):
            lines.append(f"{version} {line}")
            print(f"a line for model version {version} was added: {line}")
    history.write_text("".join(f"{line}\n" for line in lines))
    # The tables of docs/results/algorithms.md, below the text that people write.
    page = root / "docs/results/algorithms.md"
    text = page.read_text().split("<!-- below this line")[0]
    mark = next(line for line in page.read_text().splitlines() if line.startswith("<!-- below this line"))
    page.write_text(f"{text}{mark}\n\n{run(ringsim, 'list', 'comparison')}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
