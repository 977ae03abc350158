#!/usr/bin/env python3
"""Writes docs/results/crossover.md: which all-reduce is best at which size, on four HGX H100 and four DGX-1V, and why.

Usage: docs/results/make/crossover.py path/to/ringsim           writes the page
       docs/results/make/crossover.py path/to/ringsim --check   compares it with the page that is there; exit 1 where they differ
"""
import json
import pathlib
import subprocess
import sys

from page import write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/crossover.md"
RING_AND_TREE = ["ring", {"name": "double_binary_tree", "segments": [1, 16, 128]}]


def ringsim(*arguments):
    """What the command prints. It speaks on stderr; an error ends this script with it."""
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"docs/results/make/crossover.py: ringsim {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout.rstrip()


def crossover(machine, *more):
    return ringsim("crossover", root / f"scenarios/examples/algorithms/crossover-{machine}.json", "--refine", *more)


def ring_and_tree(machine):
    return crossover(machine, "--set", f"collective.algorithm={json.dumps(RING_AND_TREE)}")


def explained(machine, algorithm, size):
    """What --explain says of the busiest links: each kind's first."""
    text = ringsim("run", root / f"scenarios/examples/algorithms/crossover-{machine}.json", "--explain", "--set",
                   f"collective.algorithm={json.dumps(algorithm)}", "--set", f"collective.bytes={size}").split("\n\n", 1)[1]
    lines, kinds = text.splitlines(), set()
    head = next(i for i, line in enumerate(lines) if line.startswith("links "))
    column = lines[head].index("kind")
    kept = [row for row in lines[head + 1:] if not (row[column:].split()[0] in kinds or kinds.add(row[column:].split()[0]))]
    return "\n".join([*lines[:head + 1], *kept])


def write_page():
    direct, in_switch = "direct", {"name": "in_switch", "segments": 1}
    levels = {"name": "hierarchical", "inner": "direct", "outer": "halving_doubling"}
    tree = {"name": "double_binary_tree", "segments": 128}
    return f"""# Crossover: which all-reduce is best at which size

The script `docs/results/make/crossover.py build/tools/ringsim` writes this page, and a test compares them. All times are simulated, with the
textbooks' protocol `none`; p is the size, K the 32 ranks. Below each table, the page says why each winner wins, with the busiest link of each kind as
`ringsim run --explain` prints them. The scenarios list the compared algorithms; no others are considered.

## Four HGX H100

`ringsim crossover scenarios/examples/algorithms/crossover-hgx-h100.json --refine`: each node has eight GPUs on an NVSwitch (376 GB/s and 600 ns from GPU to
GPU), with an adapter of 48 GB/s each, and 4.6 us from node to node.

```
{crossover("hgx-h100")}
```

**in_switch, small sizes**: all switches reduce (SHARP in the fabric), so data goes up once and down once. This takes 4.6 us, no
longer than one message. Every GPU sends p once through its own adapter and receives it once. With one segment, receiving waits for
sending, so the time is 4.6 us + 2p/(48 GB/s). If your fabric does not reduce, direct is best; its lead over recursive_doubling is in the CSV.

```
{explained("hgx-h100", in_switch, "64 KiB")}
```

**direct, second at small sizes**: in each of two steps all ranks send to all others. A step takes 4.6 us, and 0.6 us more if a message first goes over
NVLink to the GPU of the receiver's rail (PXN), so direct takes 10.4 us. Of the 31 receivers, 24 are on other nodes, so in each of the two steps, 24/32 p leaves
through an adapter. In total, that is 1.5 p, compared with 2 p, one after the other, for in_switch. At 557 kB, the difference of p/2 at 48 GB/s would
compensate for the additional 5.8 us, but hierarchical is faster than both at that size.

```
{explained("hgx-h100", direct, "450000 B")}
```

**hierarchical (direct within, halving-doubling between), large sizes**: the latency is 2 x 0.6 us over NVLink plus 4 x 4.6 us between nodes,
19.6 us in all, twice that of direct. But only 2 x 3/4 of an eighth (3/16 p) passes through an adapter, an eighth of direct's 1.5 p. The rest, 7/4 p, goes over NVLinks that
are 7.8 times as fast. The two alternate: at 4 GiB, the adapters take 16.8 ms at full rate and NVLink takes 20.0 ms, which sum to the 36.8 ms. No algorithm
here keeps both busy at once. bucket tries to, but is slower, because half of its buffer begins between the nodes with whole shares, 3.4 GiB per adapter.

```
{explained("hgx-h100", levels, "4 GiB")}
```

**Ring and tree alone**, the two algorithms that NCCL also has here (`--set` of `collective.algorithm`):

```
{ring_and_tree("hgx-h100")}
```

The tree needs few steps: it takes 31 us at 4 B, compared with 62 x 5.2 = 322 us for the ring (every step of the ring waits for the messages between nodes, which
first go over NVLink to the GPU of the next node's rail). At 4 GiB the ring sends 2 x 31/32 p = 7.75 GiB through the one adapter of each node
that it uses. The busiest adapters of the tree carry 8 GiB, and it needs segments to overlap them, so the ring is 4 % faster.

```
{explained("hgx-h100", "ring", "4 GiB")}

{explained("hgx-h100", tree, "4 GiB")}
```

**What NCCL picks there** according to its own formula (release 2.30.7, `topologies/nccl/nccl_tuner`; not measured): Tree LL from 4 B, Tree LL128 from 262144 B, NVLSTree Simple from 16777216 B.
NCCL also chooses the tree for small sizes. It never chooses the ring here, and has no hierarchical, direct or fabric-wide algorithm to choose from. NVLSTree,
with reduction in the switches of a node and a tree between nodes, is not simulated. NCCL runs a channel for each adapter; `ring` and each tree here have one channel.

## Four DGX-1V

`ringsim crossover scenarios/examples/algorithms/crossover-dgx-1v.json --refine`: each node has eight GPUs in a cube mesh of NVLinks (24 or 48 GB/s per pair),
an adapter of 12 GB/s for two GPUs, and 4.4 us from node to node.

```
{crossover("dgx-1v")}
```

**direct, small sizes**: there are two steps of 4.4 us each, and 0.6 us more if a message first goes over NVLink to the GPU of the receiver's rail. Two
GPUs share an adapter, which therefore carries 2 x 1.5 p = 3 p at 12 GB/s. The time is 8.8 us + p/(4 GB/s) if the adapter is always busy. At 63 kB, the second term
is 15.8 us, as much as the next algorithm needs for its additional latency of 11.2 us, 2.0 us of adapters, and NVLinks.

```
{explained("dgx-1v", direct, "63088 B")}
```

**hierarchical, at 62 KiB and above**: 3/8 p passes through an adapter instead of 3 p, at the cost of 20.0 us of latency instead of 8.8. At 4 GiB that is 1.5 GiB, which takes
half of the time. For the other half, an NVLink is the bottleneck: if no NVLink connects two GPUs, their data passes through a neighbor, whose links carry several pairs.
Rings within the node (the other hierarchical algorithm of the CSV, which takes 1.66 times as long) use 40 of these links instead of 128; the busiest carries 7 GiB.

```
{explained("dgx-1v", levels, "4 GiB")}
```

**Ring and tree alone**:

```
{ring_and_tree("dgx-1v")}
```

The reasons are the same two as above. Latencies are equal, but an adapter has a quarter of the rate and serves two GPUs, so more pieces already pay off at a
fifth to a sixth of the sizes.

```
{explained("dgx-1v", "ring", "4 GiB")}

{explained("dgx-1v", tree, "4 GiB")}
```

**What NCCL picks there**: Tree LL from 4 B, Tree LL128 from 131072 B, Ring LL128 from 2097152 B, Ring Simple from 134217728 B. The ring wins at large sizes because there is one for
each adapter: 48 GB/s x 32/62 = 24.8 GB/s, while NCCL estimates that its trees reach min(0.92 x 48, 4 x 10)/2 = 20 (`perChMaxTreeBws`). The scenario's ring has one adapter per node.
"""


write_or_check(page, write_page, __doc__)
