#!/usr/bin/env python3
"""Draws docs/pictures/dgx-1v-nvlink.svg: all-reduce over the NVLinks of one DGX-1V, predicted and measured.

Usage: docs/results/make/plot_dgx_1v.py path/to/ringsim      (needs Debian's python3-matplotlib)
"""
import csv
import io
import pathlib
import subprocess
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "ringsim"  # equal figures, equal bytes
import matplotlib.pyplot as plt

root = pathlib.Path(__file__).resolve().parents[3]


def predict(scenario):
    run = [sys.argv[1], "run", str(root / "scenarios/examples/machines" / scenario), "--format", "csv"]
    return list(csv.DictReader(io.StringIO(subprocess.run(run, check=True, capture_output=True, text=True).stdout)))


with open(root / "validate/measured/tables/v100nv-1n8g-all_reduce-ring.csv") as file:
    measured = list(csv.DictReader(line for line in file if not line.startswith("#")))
measured = [row for row in measured if int(row["bytes"]) <= 2 << 30]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
for axes, column, label in ((left, "time_us", "time, µs"), (right, "busbw_GBps", "bus bandwidth, GB/s")):
    axes.plot([int(r["bytes"]) for r in measured], [float(r[column]) for r in measured], "k.-",
              label="measured: NCCL, ring, Simple")
    for algorithm, scenario, colour in (("ring", "dgx-1v-ring.json", "tab:blue"),
                                        ("halving_doubling", "dgx-1v-halving-doubling.json", "tab:orange")):
        rows = predict(scenario)
        axes.plot([int(r["bytes"]) for r in rows], [float(r[column]) for r in rows], color=colour,
                  label=f"ringsim: {algorithm}, one channel")
    axes.set_xscale("log", base=2)
    axes.set_xticks([2 ** k for k in (6, 10, 20, 30)], ["64 B", "1 KiB", "1 MiB", "1 GiB"])
    axes.set_xlabel("message size")
    axes.set_ylabel(label)
    axes.grid(True, alpha=0.3)
left.set_yscale("log")
left.legend(fontsize=8)
figure.suptitle("All-reduce on 8 V100 over NVLink: predicted from link figures alone, nothing fitted", fontsize=10)
figure.tight_layout()
figure.savefig(root / "docs/pictures/dgx-1v-nvlink.svg", metadata={"Date": None})
