#!/usr/bin/env python3
"""Writes docs/results/machines.md: copies between GPUs, predicted and measured, and what GPUDirect RDMA does on every preset.

Usage: docs/results/make/machines.py path/to/ringsim           writes the page
       docs/results/make/machines.py path/to/ringsim --check   compares it with the page that is there; exit 1 where they differ
"""
import csv
import io
import json
import pathlib
import subprocess
import sys

from page import write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/machines.md"

# What the model leaves out, by the letters of validate/measured/tables/copies.csv, column `missing`.
MISSING = {
    "a": "PCIe has NCCL's constants (12, 24, 48 GB/s for x16 in generations 3, 4, 5) in each direction, independent of the other direction. The model"
         " leaves out packet headers and DMA reads, whose requests travel against the data and whose number in flight"
         " is limited by credits and tags. The constants are not upper bounds either: on 8 H200, copies from host memory to a GPU reach 55 GB/s over generation 5"
         " (stas00/ml-engineering 744d01e18b79 network/README.md).",
    "b": "On one switch, the copy up to host memory and the copy down from it use the same uplink in opposite directions and slow each"
         " other down (DGX-1: 9.2 GB/s, and 9.8 on two switches; ABCI A: 16 and 20). In the model, the two directions of a link are independent.",
    "c": "How CUDA stages such a copy is not published, including the size and number of its buffers and when the second copy starts. The model uses"
         " NCCL's 8 buffers of 512 KiB, with which the two copies overlap except for the first and last pieces.",
    "d": "The link between sockets has NCCL's constant (6, 10, 22 GB/s), which is the rate at which GPUs write to each other directly. Data"
         " staged in host memory crosses as ordinary reads and writes, for which this link is not the bottleneck: measured copies"
         " are as fast between sockets as within one. A separate figure for that traffic is missing.",
    "e": "In the model, both directions of NVLink are independent. On the wire, each also carries the"
         " other's acknowledgments, which may be the cause. It is not known why pairs among GPUs 4 to 7 reach 518 GB/s and all others 413.",
    "f": "In the model, all copies have the same share of the line rate. On the same NVLink4, p2pBandwidthLatencyTest reaches 376 GB/s (H100) and nvbandwidth"
         " 396 (H200). The behavior of the tool (the size of copies, and how many are in flight) is not modeled.",
    "g": "The measured rate is about half of PCIe's, as if the two copies took turns instead of overlapping. The machine is rented, and the source"
         " does not say if it is virtualized.",
    "h": "For pairs without peer access, both ways together are as fast as one way (9.19 GB/s), as if the driver let the two directions take"
         " turns. With P2P switched off, the same GPUs reach 17.5. The model does not include this.",
}


def ringsim(*arguments):
    """What the command prints. It speaks on stderr; an error ends this script with it."""
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"docs/results/make/machines.py: ringsim {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def points(scenario, settings=None):
    """The results of a scenario, one dictionary a point."""
    edits = [word for path, value in (settings or {}).items() for word in ("--set", f"{path}={json.dumps(value)}")]
    return list(csv.DictReader(io.StringIO(ringsim("run", root / "scenarios/examples/machines" / scenario, "--format", "csv", *edits))))


def number(GBps):
    return f"{GBps:.1f}" if GBps >= 99.95 else f"{GBps:.2f}"


def measured(row, way):
    """(median, text) of one way or both ways; (None, "-") where nobody measured it."""
    least, median, most = (row[f"{way}_{which}"] for which in ("least", "median", "most"))
    if not median:
        return None, "-"
    return float(median), median if least == most else f"{median} ({least} to {most})"


def error(predicted, median):
    return "-" if median is None else f"{100 * (predicted / median - 1):+.1f} %"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def copies():
    """Every row of copies.csv with its prediction: (row, one way GB/s, both ways together GB/s)."""
    with open(root / "validate/measured/tables/copies.csv") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for row in rows:
        one, both = points("gpu-copies.json", {
            "topology.node": row["preset"], "transport.p2p_level": row["p2p_level"],
            "collective.ranks": ["node0." + row["from"], "node0." + row["to"]]})
        if (one["point.collective.both_ways"], both["point.collective.both_ways"]) != ("false", "true"):
            sys.exit("docs/results/make/machines.py: scenarios/examples/machines/gpu-copies.json: expected one point one way, then one both ways")
        yield row, float(one["algbw_GBps"]), 2 * float(both["algbw_GBps"])


def copies_tables():
    all_rows = list(copies())
    letters = {letter for row, _, _ in all_rows for letter in row["missing"].split()}
    if letters != set(MISSING):
        sys.exit(f"docs/results/make/machines.py: letters of copies.csv {sorted(letters)}, explained {sorted(MISSING)}")
    head = ["machine", "preset, pair", "one way: predicted", "measured", "error", "both ways: predicted", "measured", "error"]

    def cells(row, one, both):
        one_median, one_text = measured(row, "one")
        both_median, both_text = measured(row, "both")
        return [row["machine"], f"{row['preset']}, {row['from'][3:]}-{row['to'][3:]}", number(one), one_text,
                error(one, one_median), number(both), both_text, error(both, both_median)]

    nvlink = [each for each in all_rows if each[0]["kind"] == "nvlink"]
    host = [each for each in all_rows if each[0]["kind"] != "nvlink"]
    beyond = [row["machine"] for row, one, _ in nvlink if abs(one / float(row["one_median"]) - 1) > 0.05]
    return (table(head + ["share of the line rate from", "missing"],
                  [cells(*each) + [each[0]["efficiency_from"], each[0]["missing"] or "-"] for each in nvlink]),
            f"{len(nvlink) - len(beyond)} of {len(nvlink)} are within 5 % one way; not within 5 %: {', '.join(beyond) or 'none'}.",
            table(["kind"] + head + ["missing"],
                  [[each[0]["kind"]] + cells(*each) + [each[0]["missing"]] for each in host]),
            "\n".join(f"- **{letter}**: {text}" for letter, text in MISSING.items()))


def gpudirect(scenario, column):
    """{preset: {"true" or "false": (GB/s, the link that binds)}}"""
    found = {}
    for point in points(scenario):
        link = point["bottleneck.link"].replace("node0.", "").replace("node1.", "")
        found.setdefault(point["point.topology.node"], {})[point["point.transport.gpudirect"]] = float(point[column]), link
    return found


def gpudirect_table():
    pair, everyone = gpudirect("gpudirect-pair.json", "algbw_GBps"), gpudirect("gpudirect-all.json", "inter_node.GBps")
    rows, ratios = [], {}
    for preset, one in pair.items():
        on, off = everyone[preset]["true"], everyone[preset]["false"]
        ratios[preset] = on[0] / off[0]
        cells = [text for GBps, link in (one["true"], one["false"], on, off) for text in (number(GBps), f"`{link}`")]
        rows.append([preset, *cells, f"{ratios[preset]:.2f}"])
    head = ["preset", "one pair: with", "bottleneck", "without", "bottleneck", "all pairs, per node: with", "bottleneck", "without", "bottleneck",
            "with / without"]
    same = [preset for preset in ratios if everyone[preset]["true"] == everyone[preset]["false"]]
    slower = [preset for preset, ratio in ratios.items() if ratio < 0.995]
    notes = [f"- The following are equal with and without GPUDirect, because no GPU has an adapter within its reach (P2C): {', '.join(same)}."]
    if slower:
        notes.append(f"- Slower with GPUDirect: {', '.join(slower)}. Half of the GPUs have no adapter of their own there and send through"
                     " another GPU's (PXN), which needs GPUDirect. Among equally suitable GPUs, the model chooses the first for all of them, so five"
                     " share one adapter, while NCCL uses the adapter of the local GPU that has the receiver's number (ncclTopoGetNetDev)."
                     " This is an error of the model, not of GPUDirect.")
    return table(head, rows), "\n".join(notes)


def explained(gpudirect):
    """What --explain says of all pairs of two DGX-1V."""
    text = ringsim("run", root / "scenarios/examples/machines/gpudirect-all.json", "--set", 'topology.node="dgx-1v"',
                   "--set", f"transport.gpudirect={json.dumps(gpudirect)}", "--explain")
    return text.split("\n\n", 1)[1].rstrip()


def write_page():
    nvlink, summary, host, missing = copies_tables()
    presets, notes = gpudirect_table()
    return f"""# Machines compared with measurements

The script `docs/results/make/machines.py build/tools/ringsim` writes this page, and a test compares them. All rates are in GB/s (10^9 bytes).

## Copies between two GPUs of a machine

The predicted rate is that of a simulated copy of 1 GiB (`scenarios/examples/machines/gpu-copies.json`). The measured rate comes from
`validate/measured/tables/copies.csv`: it is the median over all published pairs of that kind and all runs, with the minimum and maximum in brackets. The
error is relative to the median. "Both ways" is the sum of both directions at the same time.

**Over NVLink.** A link's rate is its line rate times the share available to payload. This share comes from a different machine than the one
compared (`topologies/machines/link_types.json`); no number was fitted to a row below. {summary}

{nvlink}

nvbandwidth's own A100-class machine and the HGX H100 of issue 1264 are not compared over NVLink, because the shares come from them.

**Through host memory.** These GPUs have no peer access, or it was switched off for the measurement. Nothing is fitted, so errors are larger:

{host}

The pattern is right: on one switch, both ways together are no faster than one way, because each byte crosses the uplink up and
down. On two switches, they are faster. The model does not include the following effects:

{missing}

## GPUDirect RDMA on and off

The table shows transfers of 256 MiB between two nodes of every preset with cabled adapters, on a star whose cables are faster than any adapter: for one
pair of GPUs (`scenarios/examples/machines/gpudirect-pair.json`), and for all GPUs in pairs, both ways at once
(`scenarios/examples/machines/gpudirect-all.json`, with the rate out of a node). "bottleneck" is the link that limited the speed longest, or the first of
several equally narrow links. Adapters and PCIe often have the same rate: 12 GB/s for EDR and PCIe gen3 x16, 24 for HDR and gen4, 48 for NDR and gen5.

{presets}

{notes}
- On aws-p5, a message uses one of the four adapters at its GPU's switch, so the uplink has room for both copies.
- Without GPUDirect, a single pair loses almost nothing, because the two copies overlap and share no links (except on dgx-a100, where both use a
  quarter of the socket's memory). The cost appears if all GPUs on a switch send and receive at once: then the bottleneck is the uplink or the
  host's memory.

## The double copy, counted

A PCIe switch in a DGX-1V has two GPUs, an adapter and one uplink of 12 GB/s each way. Every GPU sends p bytes and receives p:

| | uplink, up | uplink, down | adapter, out | adapter, in |
| --- | --- | --- | --- | --- |
| with GPUDirect | 0 | 0 | 2p | 2p |
| without: sending | 2p, GPU to memory | 2p, memory to adapter | 2p | |
| without: receiving | 2p, adapter to memory | 2p, memory to GPU | | 2p |
| without, in all | 4p | 4p | 2p | 2p |

The uplink carries twice the adapter's bytes at the adapter's rate, so the speed is halved. `tests/topologies/gpudirect_test.cpp` checks these counts on every link. With p = 256 MiB,
`ringsim run scenarios/examples/machines/gpudirect-all.json --set topology.node=dgx-1v --explain` says:

```
{explained(True)}

{explained(False)}
```
"""


write_or_check(page, write_page, __doc__)
