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
    (lambda row: row["micro_batch"] == 64, "unknown; this plan takes twice as long as the same plan with micro-batches of 32"),
    (lambda row: row["micro_batch"] <= 4 and row["tensor"] >= 4 and row["gpus"] == 64 and row["error"] < 0,
     "launches by the host; with small micro-batches on many tensor ranks, kernels are shorter than their launches"),
    (lambda row: row["tensor"] <= 2 and row["pipeline"] >= 8 and row["error"] < 0,
     "unknown; all plans with tp 2 and pp 8 or 16 take longer than kernels, bubble and traffic explain"),
    (lambda row: row["tensor"] == 4 and row["error"] < 0, "unknown; steps with tp 4 vary irregularly with mbs (at pp 4, mbs 2, 3 and 4 take 13.9, "
                     "16.2 and 15.6 s)"),
    (lambda row: row["micro_batch"] >= 4 and row["error"] > 0,
     "the share that matrix products reach may grow with the micro-batch; the model uses one share for all, and these errors grow with mbs"),
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
    lines = ["| source | rows | ringsim | 0: FLOPs / (peak x share) | 1: plus bubble |", "| --- | ---: | ---: | ---: | ---: |"]
    names = list(dict.fromkeys(row["source"] for row in rows))
    for name, chosen in [(name, [row for row in rows if row["source"] == name]) for name in names] + [("all", rows)]:
        lines.append(f"| {name.split(';')[0]} | {len(chosen)} | " + " | ".join(band(errors_of(chosen, model)) for model in MODELS) + " |")
    return "\n".join(lines)


def sets(found):
    lines = ["| model and GPUs | rows | ringsim | 0: FLOPs | 1: plus bubble |", "| --- | ---: | ---: | ---: | ---: |"]
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
    lines = ["| model | plan | error % | cause (inferred, not proved) |", "| --- | --- | ---: | --- |"]
    for row in rows:
        if abs(row["error"]) > 0.1:
            why = next((text for holds, text in MISSING if holds(row)), "not investigated")
            lines.append(f"| {row['model']} | {row['plan']} | {100 * row['error']:+.1f} | {why} |")
    return "\n".join(lines)


def left_out(rows):
    lines = ["| row | reason |", "| --- | --- |"]
    return "\n".join(lines + [f"| {row['id']} | {row['because']} |" for row in rows])


def write_page():
    found = score()
    by_status = lambda status: [row for row in found["rows"] if row["status"] == status]
    scored, given, out = by_status("scored"), by_status("input"), by_status("left out")
    return f"""# Plans of large models compared with measured steps

`docs/results/make/plans.py build/tools/ringsim` generates this page. The measured rows and their sources are in
[plan_figures](../../validate/measured/plan_figures/selene.csv), and [training.md](../guide/training.md#measured-steps-next-to-predicted-ones)
explains how a row becomes a scenario.

For each model, the row with the most FLOP/s is an input that determines the share of the peak that matrix products reach, so it is not scored. There are
{len(given)} inputs and {len(scored)} scored rows; {len(out)} rows are left out. In all rows, attention is assumed to reach 45 % of the peak, and memory-bound kernels 80 % of the
memory bandwidth. Nothing else is fitted. Tables do not state two things that are assumed: plans with tensor ranks and stages but without
sequence parallelism send activations in parts (`scatter_gather`), which is the default of Megatron-LM and DeepSpeed, and vTrain's nodes,
with 800 Gb/s each, have four NICs. The error is predicted step / measured step - 1. Models 0 and 1 are formulas that use the share from the same
input but need no simulation. Rows from Narayanan et al. are marked `recalled`, because their FLOP/s have not been compared with the paper yet.

## Errors by source

Cells show the median and the 90th percentile of |error| and the largest error, in percent.

{sources(scored)}

## Ranking of plans

Cells show Spearman's rank correlation between predicted and measured steps, and how much longer the plan that is predicted to be fastest takes than the plan
that was measured to be fastest.

{sets(found)}

## Inputs

{inputs(given)}

## Possible causes of errors above 10 %

{missing(scored)}

## All rows

{table(scored)}

## Rows that are left out

{left_out(out)}
"""


write_or_check(page, write_page, __doc__)
