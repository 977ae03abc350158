#!/usr/bin/env python3
"""Writes docs/results/regimes.md: how GPUs train together, from `ringsim list regimes` and the examples of training.

Usage: docs/results/make/regimes.py path/to/ringsim           writes the page
       docs/results/make/regimes.py path/to/ringsim --check   compares it with the page that is there; exit 1 where they differ
"""
import json
import pathlib
import subprocess
import sys

from page import write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/regimes.md"
examples = root / "scenarios/examples/training"


def asked(*words):
    done = subprocess.run([sys.argv[1], *map(str, words), "--format", "json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"docs/results/make/regimes.py: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def points():
    """[regime] scenario and result: of each scenario, regime and closed form the first point on several GPUs (single: on one)."""
    found = {}
    for scenario in sorted(examples.glob("*.json")):
        seen = set()
        for row in asked("run", scenario)["results"]:
            if row.get("job", "main") != "main":  # of other jobs
                continue
            form = (row.get("closed_form") or {}).get("formula", "")
            key = (row["training"], form)
            if key in seen or (row["ranks"] == 1) != (row["training"] == "single"):
                continue
            seen.add(key)
            found.setdefault(row["training"], []).append((scenario, row))
    return found


def form_of(row):
    """The form, its time, and whether its assumptions hold."""
    form = row.get("closed_form")
    if not form:
        return "none", "-"
    if not form["holds"]:
        return f"`{form['formula']}`", "its assumptions do not hold here"
    return f"`{form['formula']}`", f"{form['time_us'] / 1e3:.3f}"


def picture_of(regime):
    picture = page.parent / f"../pictures/regime-{regime['name']}.svg"
    if not picture.exists():
        sys.exit(f"docs/results/make/pictures.py: expected a picture for every regime, found none for {regime['name']}")
    return picture.relative_to(page.parent)


def section(regime, rows):
    lines = [f"## {regime['name']}", "", f"{regime['summary'][0].upper()}{regime['summary'][1:]} ({regime['source']}).", "",
             f"- **Computation**: {regime['computes']}.", f"- **Communication**: {regime['travels']}.", "",
             f"![The streams of a step]({picture_of(regime)})", "",
             "| scenario | GPUs | closed form | form ms | simulated ms | efficiency |", "| --- | ---: | --- | ---: | ---: | ---: |"]
    for scenario, row in rows:
        form, time = form_of(row)
        link = f"[{scenario.stem}](../../{scenario.relative_to(root)})"
        lines.append(f"| {link} | {row['ranks']} | {form} | {time} | {row['time_us'] / 1e3:.3f} | {100 * row['efficiency']:.1f} % |")
    return "\n".join(lines) + "\n"


def write_page():
    found = points()
    regimes = asked("list", "regimes")["regimes"]
    missing = [regime["name"] for regime in regimes if regime["name"] not in found]
    if missing:
        sys.exit(f"docs/results/make/regimes.py: scenarios/examples/training: expected an example for every regime, found none for {', '.join(missing)}")
    sections = "\n".join(section(regime, found[regime["name"]]) for regime in regimes)
    return f"""# How GPUs train together

`docs/results/make/regimes.py build/tools/ringsim` generates this page from `ringsim list regimes` and the
[examples](../../scenarios/README.md#the-examples), and a test checks that it is up to date. The tables show the first point for each
combination of scenario, regime and closed form. f, B and u are the times of the forward pass, the backward pass and the update. K is the
number of GPUs, p the size of the gradients in bytes, b the rate of a port, and a the latency of a path. [The guide](../guide/training.md)
explains the closed forms and their assumptions. The pictures show simulated runs and were drawn with `ringsim run SCENARIO --picture`.
There is no picture for mode async, because its workers have no common step.

{sections}"""


write_or_check(page, write_page, __doc__)
