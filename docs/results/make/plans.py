#!/usr/bin/env python3
"""Writes docs/results/plans.md: measured steps of large models next to predictions.

Usage: docs/results/make/plans.py path/to/ringsim           writes the page
       docs/results/make/plans.py path/to/ringsim --check   compares it with the page that is there; exit 1 if they differ
"""
import json
import pathlib
import re
import subprocess
import sys

from page import quantile, write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/plans.md"
MODELS = ["ringsim", "FLOPs", "FLOPs and bubble"]
# What is missing in rows that are off by more than 10 %: the first entry whose test holds. Causes are inferred, not proved.
MISSING = [
    (lambda row: row["micro_batch"] == 64, "unknown: measured twice as slow as the same plan with micro-batches of 32"),
    (lambda row: row["micro_batch"] <= 4 and row["tensor"] >= 4 and row["gpus"] == 64 and row["error"] < 0,
     "launches by the host: kernels of a small micro-batch on many tensor ranks are shorter than their launch"),
    (lambda row: row["tensor"] <= 2 and row["pipeline"] >= 8 and row["error"] < 0,
     "unknown: all plans with tp 2 and pp 8 or 16 are slower than kernels, bubble and traffic explain"),
    (lambda row: row["tensor"] == 4 and row["error"] < 0, "unknown: plans with tp 4 are uneven, mbs 2, 3 and 4 at pp 4 took 13.9, 16.2 and 15.6 s"),
    (lambda row: row["micro_batch"] >= 4 and row["error"] > 0,
     "the share of matrix products may grow with the micro-batch: one share is used for all, and these errors grow with mbs"),
]


def score():
    command = [sys.argv[1], "scorecard", "--training", root / "validate/measured/plan_figures", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{sys.argv[0]}: exit {done.returncode}\n{done.stderr}")
    found = json.loads(done.stdout)
    for row in found["rows"]:
        number = lambda word: int(re.search(rf"\b{word} (\d+)", row["plan"]).group(1))
        row["tensor"], row["pipeline"], row["micro_batch"] = number("tp"), number("pp"), number("mbs")
    return found


def band(errors):
    absolute = [abs(error) for error in errors]
    return f"{100 * quantile(absolute, 0.5):.1f} / {100 * quantile(absolute, 0.9):.1f} / {100 * max(errors, key=abs):+.1f}"


def errors_of(rows, model):
    column = {"ringsim": "predicted_s", "FLOPs": "flops_s", "FLOPs and bubble": "flops_and_bubble_s"}[model]
    return [row[column] / row["measured_s"] - 1 for row in rows]


def sources(rows):
    lines = ["| source | rows | ringsim | 0: FLOPs / (peak x share) | 1: and bubble |", "| --- | ---: | ---: | ---: | ---: |"]
    names = list(dict.fromkeys(row["source"] for row in rows))
    for name, chosen in [(name, [row for row in rows if row["source"] == name]) for name in names] + [("all", rows)]:
        lines.append(f"| {name.split(';')[0]} | {len(chosen)} | " + " | ".join(band(errors_of(chosen, model)) for model in MODELS) + " |")
    return "\n".join(lines)


def sets(found):
    lines = ["| plans of | rows | ringsim | 0: FLOPs | 1: and bubble |", "| --- | ---: | ---: | ---: | ---: |"]
    for each in found["sets"]:
        lines.append(f"| {each['name']} | {each['plans']} | " + " | ".join(
            f"{each[model]['rank_correlation']:.3f}, {100 * each[model]['regret']:.1f} %" for model in MODELS) + " |")
    return "\n".join(lines)


def table(rows):
    lines = ["| model | GPUs | plan | measured s | predicted s | error % | 0 % | 1 % |", "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        errors = [100 * errors_of([row], model)[0] for model in MODELS]
        lines.append(f"| {row['model']} | {row['gpus']} | {row['plan']} | {row['measured_s']:.2f} | {row['predicted_s']:.2f} | "
                     + " | ".join(f"{error:+.1f}" for error in errors) + " |")
    return "\n".join(lines)


def inputs(rows):
    lines = ["| model | GPUs | plan | measured s | gemm % |", "| --- | ---: | --- | ---: | ---: |"]
    for row in rows:
        lines.append(f"| {row['model']} | {row['gpus']} | {row['plan']} | {row['measured_s']:.2f} | {100 * row['gemm']:.1f} |")
    return "\n".join(lines)


def missing(rows):
    lines = ["| model | plan | error % | missing (inferred, not proved) |", "| --- | --- | ---: | --- |"]
    for row in rows:
        if abs(row["error"]) > 0.1:
            why = next((text for holds, text in MISSING if holds(row)), "not looked at yet")
            lines.append(f"| {row['model']} | {row['plan']} | {100 * row['error']:+.1f} | {why} |")
    return "\n".join(lines)


def left_out(rows):
    lines = ["| row | because |", "| --- | --- |"]
    return "\n".join(lines + [f"| {row['id']} | {row['because']} |" for row in rows])


def write_page():
    found = score()
    by_status = lambda status: [row for row in found["rows"] if row["status"] == status]
    scored, given, out = by_status("scored"), by_status("input"), by_status("left out")
    return f"""# Plans of large models compared with measured steps

The script `docs/results/make/plans.py build/tools/ringsim` writes this page. The rows are in
[plan_figures](../../validate/measured/plan_figures/selene.csv) with their sources; [training.md](../guide/training.md#measured-steps-next-to-predicted-ones)
explains how a row becomes a scenario.

For each model, the row with the most FLOP/s determines which share of the peak matrix products reach, and is not scored. There are {len(given)} inputs and
{len(scored)} scored rows; {len(out)} rows are left out. In all rows, attention reaches 45 % of the peak, and memory 80 % of its bandwidth. Both values are given;
nothing else is fitted. The error is predicted step / measured step - 1. Models 0 and 1 need no simulation, and use the share from the same input.
Rows of Narayanan et al. are marked `recalled`: their FLOP/s have not been compared with the paper yet.

## Errors by source: median / 90th percentile of |error| / worst, %

{sources(scored)}

## Which plan is best: Spearman's rank correlation, and how much longer the best predicted plan takes than the best measured one

{sets(found)}

## Inputs

{inputs(given)}

## Possible causes in rows with errors above 10 %

{missing(scored)}

## All rows

{table(scored)}

## Left out

{left_out(out)}
"""


write_or_check(page, write_page, __doc__)
