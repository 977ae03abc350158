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
    return f"""# Crossover: the fastest all-reduce algorithm for each size

`docs/results/make/crossover.py build/tools/ringsim` generates this page, and a test checks that it is up to date. All times are simulated with the
textbook protocol `none`; p is the message size. The text below each table explains why each algorithm wins, and shows the busiest link of each kind as
printed by `ringsim run --explain`. Only the algorithms listed in the scenarios are compared.

## Four HGX H100

This is the output of `ringsim crossover scenarios/examples/algorithms/crossover-hgx-h100.json --refine`. Each node has eight GPUs on an NVSwitch (376 GB/s
and 600 ns between two GPUs) and a 48 GB/s adapter per GPU. The latency between nodes is 4.6 us.

```
{crossover("hgx-h100")}
```

**in_switch, small sizes**: all switches perform the reduction (SHARP in the fabric), so data goes up once and down once. The latency is 4.6 us, the
same as for a single message. Every GPU sends and receives p once through its own adapter. With one segment, a GPU cannot receive before it has sent
everything, so the time is 4.6 us + 2p/(48 GB/s). If your fabric does not support reduction, direct is fastest (the scenario's CSV file shows its lead over
recursive_doubling).

```
{explained("hgx-h100", in_switch, "64 KiB")}
```

**direct, second best at small sizes**: in each of two steps, all ranks send to all others. A step takes 4.6 us, plus 0.6 us if a message first goes over
NVLink to the GPU on the receiver's rail (PXN), so the latency of direct is 10.4 us. Of the 31 receivers, 24 are on other nodes, so 24/32 p leaves through
each adapter per step. The total is 1.5 p, compared with 2 p for in_switch, which sends and receives one after the other. At 557 kB, the difference of p/2
at 48 GB/s would compensate for the additional 5.8 us, but hierarchical is faster than both at that size.

```
{explained("hgx-h100", direct, "450000 B")}
```

**hierarchical (direct within, halving-doubling between), large sizes**: the latency is 2 x 0.6 us over NVLink plus 4 x 4.6 us between nodes.
The total is 19.6 us, about twice that of direct. However, only 2 x 3/4 of an eighth (3/16 p) passes through an adapter, an eighth of direct's 1.5 p. The
rest, 7/4 p, goes over NVLink, which is 7.8 times as fast. Adapters and NVLink are busy in turn. At 4 GiB, the adapters take 16.8 ms at full rate and NVLink
takes 20.0 ms, a total of 36.8 ms. None of these algorithms keeps both busy at the same time. bucket tries to, but it is slower, because half of its buffer
starts with the exchange between nodes before it has been reduced within a node, so each adapter carries 3.4 GiB.

```
{explained("hgx-h100", levels, "4 GiB")}
```

**Only ring and tree**: the following table is limited to these two algorithms, which NCCL also has (`--set` changes `collective.algorithm`).

```
{ring_and_tree("hgx-h100")}
```

The tree needs fewer steps. At 4 B, it takes 31 us, compared with 62 x 5.2 = 322 us for the ring. Every step of the ring waits for the messages between
nodes, which first go over NVLink to the GPU on the next node's rail. At 4 GiB, the ring sends 2 x 31/32 p = 7.75 GiB through the only adapter that it uses
in each node. The busiest adapters of the tree carry 8 GiB, and the tree needs segments to overlap its transfers, so the ring is 4 % faster.

```
{explained("hgx-h100", "ring", "4 GiB")}

{explained("hgx-h100", tree, "4 GiB")}
```

**NCCL's choice** according to its own formula (release 2.30.7, `topologies/nccl/nccl_tuner`; not measured) is as follows:
Tree LL from 4 B, Tree LL128 from 262144 B, NVLSTree Simple from 8388608 B, Ring Simple from 1073741824 B. NCCL also chooses the tree for small sizes. It chooses the ring only for the largest sizes, and it has no hierarchical, direct or
fabric-wide algorithm. NVLSTree, which reduces in the switches within a node and uses a tree between nodes, is not simulated. NCCL runs one channel per
adapter, whereas `ring` and each tree on this page have a single channel.

## Four DGX-1V

This is the output of `ringsim crossover scenarios/examples/algorithms/crossover-dgx-1v.json --refine`. Each node has eight GPUs in a cube mesh of NVLinks
(24 or 48 GB/s per pair), and every two GPUs share a 12 GB/s adapter. The latency between nodes is 4.4 us.

```
{crossover("dgx-1v")}
```

**direct, small sizes**: there are two steps of 4.4 us each, plus 0.6 us if a message first goes over NVLink to the GPU on the receiver's rail. Two GPUs
share an adapter, which therefore carries 2 x 1.5 p = 3 p. It reads the memory of V100 at 10.2 GB/s, so the time is 8.8 us + p/(3.4 GB/s) if the adapter is
always busy. At 52 kB, the second term is 15.2 us. The next algorithm needs the same time for its additional latency of 11.2 us, 1.9 us on the adapters, and
its NVLink transfers.

```
{explained("dgx-1v", direct, "63088 B")}
```

**hierarchical, at 52 kB and above**: 3/8 p passes through an adapter instead of 3 p, at the cost of a latency of 20.0 us instead of 8.8 us. At 4 GiB, this is
1.5 GiB, which takes about half of the time. For the other half, an NVLink is the bottleneck. If two GPUs are not connected by NVLink, their data passes
through a neighbor, whose links carry the data of several pairs. The CSV file has another hierarchical algorithm, with rings within the node. It takes 1.66
times as long, because it uses 40 of these links instead of 128, and the busiest of them carries 7 GiB.

```
{explained("dgx-1v", levels, "4 GiB")}
```

**Only ring and tree**: this is the same comparison for the DGX-1V.

```
{ring_and_tree("dgx-1v")}
```

The reasons are the same as above. Latencies are nearly equal, but an adapter has a quarter of the rate and serves two GPUs, so segments and the ring become
faster at about a sixth to a seventh of the sizes.

```
{explained("dgx-1v", "ring", "4 GiB")}

{explained("dgx-1v", tree, "4 GiB")}
```

**NCCL's choice** is as follows: Tree LL from 4 B, Tree LL128 from 131072 B, Ring LL128 from 2097152 B, Ring Simple from 134217728 B. The ring wins at large sizes
because NCCL runs one ring per adapter, and these rings reach 48 GB/s x 32/62 = 24.8 GB/s. NCCL estimates that its trees reach only
min(0.92 x 48, 4 x 10)/2 = 20 GB/s (`perChMaxTreeBws`). The ring in the scenario uses one adapter per node.
"""


write_or_check(page, write_page, __doc__)
