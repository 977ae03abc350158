#!/usr/bin/env python3
"""Makes docs/results/gpu-compute.md of what tools/torch-compute.py measured: shares of a GPU's peaks, and what copies cost next to compute.

Usage: docs/results/make/gpu_compute.py validate/measured/compute/h200.csv [--check]

With --check compares the page with what would be written, exit code 1 where it differs.
"""
import csv
import pathlib
import re
import statistics
import sys

from page import quantile, write_or_check

ROOT = pathlib.Path(__file__).resolve().parents[3]
# NVIDIA H200 Tensor Core GPU datasheet: 1,979 TFLOP/s of BFLOAT16 with sparsity, half of it without; 4.8 TB/s.
PEAK_TFLOPS, PEAK_GBPS = 989.5, 4800
SIZES = [(0, 1e11), (1e11, 1e12), (1e12, 1e13), (1e13, 1e16)]


def lines_of(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1), *(f"| {' | '.join(row)} |" for row in rows)])


def spread(values, show):
    """Median, and the tenth and ninetieth of a hundred."""
    return [show(statistics.median(values)), show(quantile(values, 0.1)), show(quantile(values, 0.9))]


def percent(value):
    return f"{100 * value:.0f} %"


def factor(value):
    return f"{value:.2f}"


def gemm_table(rows):
    out = []
    for low, high in SIZES:
        its = [row for row in rows if row["kind"] == "gemm" and low <= float(row["flop"]) < high]
        name = f"below {high:.0e}" if low == 0 else f"{low:.0e} to {high:.0e}" if high < 1e15 else f"{low:.0e} and more"
        out.append([name.replace("e+", "e"), str(len(its)), *spread([float(row["tflops"]) / PEAK_TFLOPS for row in its], percent)])
    return lines_of(["FLOP per product", "measurements", "median share of the peak", "10th percentile", "90th percentile"], out)


def attention_table(rows):
    out = []
    for what in ("flash forward", "flash backward", "cudnn forward", "cudnn backward"):
        its = [row for row in rows if row["kind"] == "attention" and row["what"] == what]
        cells = []
        for sequence in (1024, 2048, 4096, 8192, 16384, 32768):
            shares = [float(row["tflops"]) / PEAK_TFLOPS for row in its if f"sequence={sequence} " in row["shape"]]
            cells.append(f"{percent(min(shares))} to {percent(max(shares))}")
        out.append([what, *cells])
    return lines_of(["", "1,024 tokens", "2,048", "4,096", "8,192", "16,384", "32,768"], out)


def memory_table(rows):
    its = [row for row in rows if row["kind"] == "memory"]
    out = []
    for what in dict.fromkeys(row["what"] for row in its):
        small = [float(row["gbps"]) / PEAK_GBPS for row in its if row["what"] == what and int(row["bytes"]) < 1 << 26]
        large = [float(row["gbps"]) / PEAK_GBPS for row in its if row["what"] == what and int(row["bytes"]) >= 1 << 26]
        out.append([what, *(f"{percent(min(part))} to {percent(max(part))}" if part else "" for part in (small, large))])
    return lines_of(["", "below 64 MiB", "64 MiB and more"], out)


def blocks_of(name):
    found = re.search(r"of (\d+) blocks", name)
    return int(found.group(1)) if found else 0


def copies_table(rows):
    alone = {row["what"]: float(row["gbps"]) for row in rows if row["kind"] == "copy"}
    counts = sorted({blocks_of(name) for name in alone} - {0})
    return lines_of(["", *(f"{count} blocks" if count > 1 else "1 block" for count in counts)],
                    [[kind, *(f"{alone[f'{kind} kernel of {count} blocks']:.0f}" for count in counts)] for kind in ("copy", "reduce")])


def together_table(rows, computes, copies):
    """Of each compute kernel: how much longer it takes next to each group of copies; or the copies next to it."""
    groups = {"1 to 4 blocks": lambda name: 1 <= blocks_of(name) <= 4, "8 to 32 blocks": lambda name: blocks_of(name) >= 8,
              "copy engine, between host and device": lambda name: "host" in name,
              "copy engine, device to device": lambda name: name.endswith("device to device")}
    out = []
    for compute in computes:
        cells = []
        for holds in groups.values():
            values = [float(row["slowdown"]) for row in rows if row["kind"] == "together" and row["slowdown"]
                      and ((row["what"] == compute and holds(row["next_to"])) if not copies else (row["next_to"] == compute and holds(row["what"])))]
            cells.append(f"{min(values):.2f} to {max(values):.2f}" if values else "")
        out.append([compute, *cells])
    return lines_of(["", *groups], out)


def write_page():
    measured = pathlib.Path(sys.argv[1]).resolve()
    text = measured.read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    where = "\n".join(f"    {line[2:]}" for line in text.splitlines() if line.startswith("#"))
    computes = [row["what"] for row in rows if row["kind"] == "together" and row["shape"] == "alone"]
    slowed = [float(row["slowdown"]) for row in rows if row["kind"] == "together" and row["what"] in computes and blocks_of(row["next_to"]) > 0]
    products = [float(row["slowdown"]) for row in rows if row["kind"] == "together" and row["what"].startswith("gemm") and blocks_of(row["next_to"]) > 0]
    one_block = next(float(row["gbps"]) for row in rows if row["kind"] == "copy" and row["what"] == "copy kernel of 1 blocks")
    return f"""# How fast a GPU computes, and the cost of simultaneous copies

This page shows the throughput of transformer kernels on one H200, running alone and next to copies, as a fraction of the datasheet peaks
({PEAK_TFLOPS:g} TFLOP/s for BFLOAT16 without sparsity, {PEAK_GBPS / 1000:g} TB/s). [tools/torch-compute.py](../../tools/torch-compute.py) took the measurements and documents how it
counts FLOP and bytes; the raw data is in [{measured.name}](../../{measured.relative_to(ROOT)}). The numbers apply to this GPU and this software. You can use them for
`workload.compute` and `training.slowdown` in a scenario; ringsim does not use them as defaults.

{where}

## Matrix products

The table covers the BFLOAT16 matrix products in the layers of GPT-3 175B, Llama 2 7B, Llama 3 70B and Llama 3 405B, one in the forward pass and two in the
backward pass. Layers are split across 1 to 8 GPUs by tensor parallelism and process 1,024 to 16,384 tokens.

{gemm_table(rows)}

Beyond 1e11 FLOP, larger products do not get closer to the peak. Power or clock limits may be the reason; this was not investigated.

## Attention

The kernels are FlashAttention-2 as included in PyTorch, and cuDNN's. Attention is causal, with a head size of 128, batches of 8,192 tokens or a single longer
sequence, and 4 to 32 heads per GPU. No single share of the peak fits all of them. It varies by a factor of 2 between kernels, and by another factor of 2 with the
sequence length.

{attention_table(rows)}

## Memory-bound kernels

The table shows the achieved fraction of the memory bandwidth, counting each operand once. The kernels are not fused, as when PyTorch runs without a compiler.

{memory_table(rows)}

## Copy kernels alone

The table shows the rate, in GB/s, at which a kernel with few blocks reads and writes GPU memory. One block reaches {one_block:.0f} GB/s, and the rate is nearly
proportional to the number of blocks up to 16.

{copies_table(rows)}

## Compute next to copies

The table shows how much longer each compute kernel takes when it runs next to copies. Each cell gives the range of this slowdown (1 means none) over the copy and
reduce kernels with the given number of blocks. Over all pairs with such a kernel, the median slowdown is {statistics.median(slowed):.2f} for all compute kernels and {statistics.median(products):.2f} for matrix products
({quantile(products, 0.1):.2f} at the 10th percentile, {quantile(products, 0.9):.2f} at the 90th). One block slows down a product about as much as 16 blocks do.

{together_table(rows, computes, copies=False)}

## Copies next to compute

This table shows the slowdown of the copies in the same pairs. If a copy kernel starts while a product occupies all SMs, it has to wait, once per launch (64 MiB).
The table does not separate this wait from the effect of a lower rate. Kernels with many blocks run for a short time, so the wait slows them down the most.
Copy engines do not use SMs, so copies between host and GPU are hardly slowed down.

{together_table(rows, computes, copies=True)}
"""


write_or_check(ROOT / "docs/results/gpu-compute.md", write_page, __doc__)
