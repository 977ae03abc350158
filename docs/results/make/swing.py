#!/usr/bin/env python3
"""Writes docs/results/swing.md: Swing on all ports of a torus, bucket and the ring, next to the claims of its paper.

Usage: docs/results/make/swing.py path/to/ringsim           writes the page
       docs/results/make/swing.py path/to/ringsim --check   compares it with the page that is there; exit 1 where they differ
"""
import json
import pathlib
import subprocess
import sys

from page import write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/swing.md"
SIZES = ["1 KiB", "8 KiB", "64 KiB", "512 KiB", "4 MiB", "32 MiB", "128 MiB", "1 GiB"]
NAMES = {"swing all latency": "latency", "swing all bandwidth": "bandwidth", "swing one bandwidth": "one port", "bucket": "bucket",
         "ring": "ring"}


def results(side):
    """[size][algorithm] one result of the example, on a torus of that side."""
    edits = {"topology.dimensions": [side, side], "collective.bytes": SIZES}
    words = [word for path, value in edits.items() for word in ("--set", f"{path}={json.dumps(value)}")]
    done = subprocess.run([sys.argv[1], "run", root / "scenarios/examples/algorithms/swing-torus.json", "--format", "json", "--bound", *words],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"docs/results/make/swing.py: exit {done.returncode}\n{done.stderr}")
    found = {}
    for row in json.loads(done.stdout)["results"]:
        parameters = row.get("parameters", {})
        name = " ".join([row["algorithm"], *(parameters[key] for key in ("ports", "variant") if key in parameters)])
        found.setdefault(row["bytes"], {})[NAMES[name]] = row
    return found


def table(found):
    lines = ["| size | Swing, latency | Swing, bandwidth | bucket | ring | Swing, one port | best Swing against bucket | Swing's share of the bound |",
             "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for size, (_, rows) in zip(SIZES, found.items()):
        time = {name: row["time_us"] for name, row in rows.items()}
        best = min(("latency", "bandwidth"), key=time.get)
        lines.append(f"| {size} | " + " | ".join(f"{time[name]:.1f}" for name in ("latency", "bandwidth", "bucket", "ring", "one port"))
                     + f" | x {time['bucket'] / time[best]:.2f} | {100 * rows[best]['of_bound']:.1f} % |")
    return "\n".join(lines)


def excess(found):
    """How much longer the bandwidth variant takes than the bound, for the largest size."""
    rows = list(found.values())[-1]
    return rows["bandwidth"]["time_us"] / rows["bandwidth"]["bound_us"]


def write_page():
    small, large = results(8), results(16)
    return f"""# Swing on all ports of a torus

The script `docs/results/make/swing.py build/tools/ringsim` writes this page from
[swing-torus](../../scenarios/examples/algorithms/swing-torus.json), and a test compares them. The collective is an
all-reduce over 400 Gb/s links with 400 ns per hop and protocol `none`; times are in microseconds. `ports: all` divides
the buffer among four Swings, each of which starts along a different dimension and direction. `variant: latency`
exchanges everything in every step. The last column is for the faster variant.

## 8 x 8

{table(small)}

## 16 x 16

{table(large)}

## The paper's claims

De Sensi et al., NSDI 2024 (arXiv 2401.09356), simulate tori of 64 nodes and more in SST.

- Swing is "up to 3x" faster than the known algorithms for 32 B to 128 MiB. Here, the better of the two variants is faster than
  bucket up to 512 KiB on 64 ranks and up to 4 MiB on 256. The factor is largest for the smallest messages and grows
  with the torus. The paper's larger range comes from larger tori (up to 16384 nodes), on which bucket's 2 D (d - 1)
  steps matter more.
- For large messages, links that several messages cross slow Swing down: the congestion deficiency is 1.19 on large
  two-dimensional tori. Here, the bandwidth variant takes {excess(small):.3f} times the bound on 8 x 8 and {excess(large):.3f} times on
  16 x 16, because the sum whose limit is 1.19 has only three and four terms here. Bucket has no such deficiency, so it is
  best for large messages, as in the paper.
- With one port at a time, large messages take four times as long. This is the default (`ports: one`), because ranks on a
  star have only one port.

There is one difference: the paper's routers forward packets; here, the ranks in between relay a message to a rank that is
not a neighbor, which adds only the latency of the links.
"""


write_or_check(page, write_page, __doc__)
