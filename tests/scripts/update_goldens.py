#!/usr/bin/env python3
"""Writes the expected results of the example scenarios, scenarios/model_history.txt, and the tables of docs/results/algorithms.md. Read the diff before you commit it. Needs Debian's xxhash.

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
    version = int(run(ringsim, "--version").split("model ")[1].split(")")[0])
    history = scenarios / "model_history.txt"
    known = {}  # of an example: since which model version, its question, its answer
    for line in history.read_text().splitlines():
        since, name, question, answer = line.split()
        known[name] = int(since), question, answer
    lines, refused = [], []
    for scenario in sorted([*scenarios.glob("*.json"), *scenarios.glob("examples/*/*.json"), *scenarios.glob("questions/*.json")]):
        golden = scenario.with_suffix(".csv")
        run(ringsim, "run", scenario, "--format", "csv", "-o", golden)
        name = str(scenario.relative_to(scenarios).with_suffix(""))
        question = json.loads(run(ringsim, "run", scenario, "--format", "json"))["scenario"]["hash"]
        answer = digest(golden)
        since, *before = known.get(name, (version, question, answer))
        if before != [question, answer]:
            if before[0] == question and since == version:
                refused.append(name)
            since = version
            print(f"since model version {version}: {name}")
        lines.append(f"{since} {name} {question} {answer}\n")
    if refused:
        sys.exit(f"the same question has another answer: raise model_version in sim/base/version.hpp for {', '.join(refused)}")
    history.write_text("".join(lines))
    # The tables of docs/results/algorithms.md, below the text that people write.
    page = root / "docs/results/algorithms.md"
    text = page.read_text().split("<!-- below this line")[0]
    mark = next(line for line in page.read_text().splitlines() if line.startswith("<!-- below this line"))
    page.write_text(f"{text}{mark}\n\n{run(ringsim, 'list', 'comparison')}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
