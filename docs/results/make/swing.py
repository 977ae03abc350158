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
    lines = ["| size | Swing, latency | Swing, bandwidth | bucket | ring | Swing, one port | speedup of Swing over bucket | Swing, share of the bound |",
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

`docs/results/make/swing.py build/tools/ringsim` generates this page from
[swing-torus](../../scenarios/examples/algorithms/swing-torus.json), and a test checks that it is up to date. The
collective is an all-reduce over 400 Gb/s links with 400 ns per hop and protocol `none`. Times are in microseconds.
With `ports: all`, the buffer is divided among four Swings, each of which starts along a different dimension and
direction. With `variant: latency`, every step exchanges the whole buffer. The last two columns are for the faster of the
two variants.

## 8 x 8

{table(small)}

## 16 x 16

{table(large)}

## The paper's claims

De Sensi et al., NSDI 2024 (arXiv 2401.09356), simulate tori of 64 nodes and more in SST.

- The paper reports that Swing is "up to 3x" faster than the known algorithms for 32 B to 128 MiB. Here, the faster of the two
  variants beats bucket up to 512 KiB on 64 ranks and up to 4 MiB on 256 ranks. The speedup is largest for the smallest
  messages and grows with the torus. The paper's larger range is due to larger tori (up to 16384 nodes), where the
  2 D (d - 1) steps of bucket matter more.
- For large messages, Swing is slowed down by links that carry several messages at once. On large two-dimensional tori, this
  congestion deficiency is 1.19. Here, the bandwidth variant takes {excess(small):.3f} times the bound on 8 x 8 and {excess(large):.3f} times the
  bound on 16 x 16. These values are lower because the sum that converges to 1.19 has only three terms for 8 x 8 and
  four terms for 16 x 16. Bucket has no such deficiency, so it is the fastest algorithm for large messages, as in the paper.
- With one port at a time, large messages take four times as long. This is the default (`ports: one`), because ranks on a
  star have only one port.

The simulations differ in one respect. In the paper, routers forward packets. Here, the ranks in between relay messages
between ranks that are not neighbors, which adds only the latency of the links.
"""


write_or_check(page, write_page, __doc__)
