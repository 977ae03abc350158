#!/usr/bin/env python3
"""Writes docs/results/calibration.md: factors fitted to every second row of published tables, scored on the others.

Usage: docs/results/make/calibration.py path/to/ringsim           writes the page
       docs/results/make/calibration.py path/to/ringsim --check   compares it with the page that is there; exit 1 where they differ
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from page import write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/calibration.md"
NCCL = '["ll", "ll128", "simple"]'
# With the protocols that NCCL may have taken: of the third the table says that it was Simple.
TABLES = {"abci-v100-1n4g-all_reduce": NCCL, "abci-v100-2n4g-all_reduce": NCCL, "v100nv-1n8g-all_reduce-ring": '"simple"',
          "abci-a100-1n8g-all_reduce": NCCL}
IN_MICROSECONDS = {"ps": 1e-6, "ns": 1e-3, "us": 1}


def calibrated(table, protocols, rows):
    """The file that `ringsim calibrate` writes for a published table."""
    measured = root / "validate/measured/tables" / table
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.argv[1], "calibrate", f"{measured}.json", f"{measured}.csv", "--rows", rows, "--set",
                               f"transport.protocol={protocols}", "-o", f"{folder}/factors.json"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"docs/results/make/calibration.py: {table}: exit {done.returncode}\n{done.stderr}")
        return json.loads(pathlib.Path(folder, "factors.json").read_text())


def factor(fit, name):
    """A fitted factor, or - if the rows do not determine it."""
    if name not in fit["factors"]:
        return "-"
    value = fit["factors"][name]
    if name == "launch":
        number, unit = value.split()
        value = float(number) * IN_MICROSECONDS[unit]
    text = f"{value:.2f}"
    return text + (" (bound)" if fit["fitted"][name]["at_bound"] else "")


def row(table, protocols, rows):
    fit = calibrated(table, protocols, rows)
    cells = [table, "plain" if protocols == "none" else "NCCL's", rows]
    cells += [factor(fit, name) for name in ("launch", "latency_scale", "efficiency_inside", "efficiency_between")]
    for which in ("fitted", "others"):
        errors = fit["errors"][which]
        cells += [f"{100 * errors[f'median_{when}']:.0f} / {100 * errors[f'p90_{when}']:.0f}" for when in ("before", "after")]
    return "| " + " | ".join(cells) + " |"


def write_page():
    return f"""# Calibration: fitting a few factors to measurements

`docs/results/make/calibration.py build/tools/ringsim` generates this page, and a test checks that it is up to date.

`ringsim calibrate SCENARIO MEASURED -o FILE` fits four factors that are applied on top of the published figures, and reports which of them the measured rows determine:

| factor | effect |
| --- | --- |
| `launch` | time added once per collective |
| `latency_scale` | scales the latency of every link |
| `efficiency_inside` | scales the bandwidth of links within a node |
| `efficiency_between` | scales the bandwidth of adapter ports and fabric cables |

A scenario accepts either the file (`"calibration": {{"file": "FILE"}}`) or the factors themselves (`"calibration": {{"launch": "5 us", "latency_scale": 1.2}}`).
Results then have a `calibration` column. If there are several points for a size (algorithms or protocols), the fastest one is the prediction, both before
and after the fit, as in [the scorecard](accuracy.md). The loss is quadratic for errors below 10 % and linear above. If no row depends on a factor, or if the
rows cannot distinguish it from others, ringsim reports this and leaves the factor unchanged
([validate/score/calibrate.hpp](../../validate/score/calibrate.hpp)).

A fit cannot add missing physics to the model. It cannot distinguish the launch time from the latencies of a ring, because a ring has the same number of
steps at every size. A `latency_scale` of 7 does not describe a wire either; it represents the steps and flags of NCCL's kernels.

## Fits to every second row

The table shows scenarios of the scorecard with the plain protocol and with NCCL's protocols (`--set transport.protocol=...`; for the third scenario, the
measured table specifies Simple). Rows are ordered by size. The factors are fitted to the odd rows and tested on the even rows, and vice versa. Errors are
the median / 90th percentile of |predicted/measured - 1|, in percent, before and after the fit. "-" means that the rows do not determine the factor, so it
was not changed. "bound" means that the factor is at the end of its range.

| table | protocols | fitted rows | launch us | latency_scale | inside | between | fitted rows: before | after | others: before | after |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(row(table, protocols, rows) for table, nccl in TABLES.items() for protocols in ("none", nccl) for rows in ("odd", "even"))}
"""


write_or_check(page, write_page, __doc__)
