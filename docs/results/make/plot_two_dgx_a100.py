#!/usr/bin/env python3
"""Draws docs/pictures/two-dgx-a100.svg: all-reduce over two DGX A100, three algorithms and a measured run of NCCL.

Usage: docs/results/make/plot_two_dgx_a100.py path/to/ringsim      (needs Debian's python3-matplotlib)
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

tables = pathlib.Path(__file__).resolve().parents[3] / "validate/measured/tables"
name = "sophia-dgxa100-2n8g-all_reduce-gdrpxb"


def compare(algorithm):
    command = [sys.argv[1], "compare", str(tables / f"{name}.json"), str(tables / f"{name}.csv"), "--format", "csv",
               "--set", f"collective.algorithm={algorithm}", "--set", "transport.protocol=none"]
    return list(csv.DictReader(io.StringIO(subprocess.run(command, check=True, capture_output=True, text=True).stdout)))


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
curves = {label: compare(algorithm) for label, algorithm in (
    ("ringsim: hierarchical", '"hierarchical"'),
    ("ringsim: double binary tree, 16 segments", '{"name": "double_binary_tree", "segments": 16}'),
    ("ringsim: ring", '"ring"'))}
for axes, quantity in ((left, "time"), (right, "busbw")):
    measured = next(iter(curves.values()))
    sizes = [int(row["bytes"]) for row in measured]
    times = [float(row["measured_us"]) for row in measured]
    busbw = [size / time / 1000 * 2 * 15 / 16 for size, time in zip(sizes, times)]  # GB/s, as nccl-tests: 2(K-1)/K
    axes.plot(sizes, times if quantity == "time" else busbw, "k.-", label="measured: NCCL 2.22.3")
    for (label, rows), colour in zip(curves.items(), ("tab:green", "tab:orange", "tab:blue")):
        column = "time_us" if quantity == "time" else "busbw_GBps"
        axes.plot(sizes, [float(row[column]) for row in rows], color=colour, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks([2 ** k for k in (2, 10, 20, 30)], ["4 B", "1 KiB", "1 MiB", "1 GiB"])
    axes.set_xlabel("message size")
    axes.set_ylabel("time, µs" if quantity == "time" else "bus bandwidth, GB/s")
    axes.grid(True, alpha=0.3)
left.set_yscale("log")
left.legend(fontsize=8)
figure.suptitle("All-reduce on two DGX A100 (16 GPUs): predicted from link figures alone, nothing fitted", fontsize=10)
figure.tight_layout()
figure.savefig(tables.parents[2] / "docs/pictures/two-dgx-a100.svg", metadata={"Date": None})
