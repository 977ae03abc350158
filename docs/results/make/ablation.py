#!/usr/bin/env python3
"""Writes docs/results/nccl-ablation.md: the scorecard's column of the library with one ingredient switched off at a time.

Usage: docs/results/make/ablation.py path/to/ringsim           writes the page
       docs/results/make/ablation.py path/to/ringsim --check   compares it with the page that is there; exit 1 where they differ
"""
import pathlib
import sys

from page import library_rows, quantile, write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/nccl-ablation.md"
BANDS = [("up to 64 KiB", 0, 1 << 16), ("64 KiB to 8 MiB", (1 << 16) + 1, (1 << 23) - 1),
         ("8 MiB and more", 1 << 23, 1 << 62), ("256 MiB and more", 1 << 28, 1 << 62)]
FAMILIES = ["one node, NVLink", "one node, PCIe", "several nodes"]
# What is switched off, and the options of --set that do it.
INGREDIENTS = [
    ("nothing", []),
    ("kernel launches", ['devices.gpu.launch="0 us"']),
    ("local copies and reductions of a rank's own data", ['devices.gpu.copy="1000000 TB/s"', 'devices.gpu.reduce="1000000 TB/s"']),
    ("all channels except one", ["library.env.NCCL_MAX_NCHANNELS=1"]),
    ("trees", ["library.env.NCCL_ALGO=^Tree"]),
    ("reduction in switches (NVLS, NVLSTree)", ["library.env.NCCL_ALGO=^NVLS,NVLSTree"]),
    ("LL128", ["library.env.NCCL_PROTO=^LL128"]),
]


def cell(rows, least, most):
    errors = [100 * abs(float(row["library_us"]) / float(row["measured_us"]) - 1)
              for row in rows if least <= int(row["bytes"]) <= most]
    return f"{quantile(errors, 0.5):.0f} / {quantile(errors, 0.9):.0f}" if errors else "-"


def table(results, family):
    lines = ["| disabled | " + " | ".join(name for name, _, _ in BANDS) + " |", "| --- |" + " ---: |" * len(BANDS)]
    for name, rows in results.items():
        own = [row for row in rows if family in (None, row["family"])]
        lines.append(f"| {name} | " + " | ".join(cell(own, least, most) for _, least, most in BANDS) + " |")
    return "\n".join(lines)


def write_page():
    results = {name: [row for row in library_rows(sys.argv[1], sets) if row["scored"] == "true"] for name, sets in INGREDIENTS}
    options = "\n".join(f"| {name} | {', '.join(f'`{each}`' for each in sets) or '-'} |" for name, sets in INGREDIENTS)
    families = "\n\n".join(f"## {family[0].upper()}{family[1:]}\n\n{table(results, family)}" for family in FAMILIES)
    return f"""# How much does each part of the NCCL model matter?

`docs/results/make/ablation.py build/tools/ringsim` generates this page. The tables show the scorecard's column "ringsim, library" for
the [published tables](accuracy.md) when one part of the model is disabled with `--set`. The remaining constants are not refitted.
`--set` overrides NCCL variables specified by a table. Cells show the median / 90th percentile of |predicted/measured - 1|, in percent.

## All tables

{table(results, None)}

{families}

## Options

| disabled | `ringsim scorecard --only-library --set` ... |
| --- | --- |
{options}
"""


write_or_check(page, write_page, __doc__)
