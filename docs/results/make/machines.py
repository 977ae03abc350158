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
    "a": "PCIe has NCCL's constants (12, 24, 48 GB/s for x16 of generation 3, 4, 5) in each direction, whatever the other does. Left out:"
         " the headers of packets, and DMA reads, whose requests travel against the data and whose number on"
         " the way is limited by credits and tags. The constants are no upper bound either: 8 H200 copy 55 GB/s from host memory to a GPU over generation 5"
         " (stas00/ml-engineering 744d01e18b79 network/README.md).",
    "b": "On one switch the copy up to host memory and the copy down from it meet on one uplink, in opposite directions, and slow each"
         " other (a DGX-1's 9.2 against 9.8 GB/s on two switches, ABCI A's 16 against 20). In the model the two directions of a link are independent.",
    "c": "How CUDA stages such a copy is not published: the size and the number of its buffers, when the second copy starts. The model takes"
         " NCCL's 8 rooms of 512 KiB, with which the two copies overlap but for the first and the last piece.",
    "d": "The link between sockets has NCCL's constant (6, 10, 22 GB/s), which is what GPUs reach that write to each other directly. Data at"
         " rest in host memory crosses as ordinary reads and writes, and there it does not bind: measured, copies"
         " are as fast between sockets as within one. A second figure for that traffic is missing.",
    "e": "Both directions of NVLink at once: in the model they are independent; on the wire each also carries the"
         " other's acknowledgments, which may be it. Why pairs within GPU 4 to 7 reach 518 GB/s and all others 413 is not known to us.",
    "f": "One share of the line rate for all copies: on the same NVLink4 p2pBandwidthLatencyTest reaches 376 GB/s (H100) and nvbandwidth"
         " 396 (H200). What the tool does (size of a copy, how many are on the way) is not modeled.",
    "g": "Measured is about half of PCIe's rate, as though the two copies took turns instead of overlapping. Rented; whether"
         " virtualised is not stated.",
    "h": "Pairs without peer access: both ways together are as fast as one way (9.19 GB/s), while with P2P switched off the same"
         " GPUs reach 17.5, as though the driver let the two directions take turns. The model does not.",
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
            f"{len(nvlink) - len(beyond)} of {len(nvlink)} are within 5 % one way; beyond: {', '.join(beyond) or 'none'}.",
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
    head = ["preset", "one pair: with", "binds", "without", "binds", "all pairs, a node: with", "binds", "without", "binds", "with / without"]
    same = [preset for preset in ratios if everyone[preset]["true"] == everyone[preset]["false"]]
    slower = [preset for preset, ratio in ratios.items() if ratio < 0.995]
    notes = [f"- The same with and without, because no GPU has an adapter within GPUDirect's reach (P2C): {', '.join(same)}."]
    if slower:
        notes.append(f"- Slower with GPUDirect: {', '.join(slower)}. Half of the GPUs have no adapter of their own there and send through"
                     " another GPU's (PXN), which needs GPUDirect; of GPUs equally fit the model takes the first for all of them, so that five"
                     " share one adapter, while NCCL takes the adapter of the local GPU that has the receiver's number (ncclTopoGetNetDev)."
                     " A fault of the model, not of GPUDirect.")
    return table(head, rows), "\n".join(notes)


def explained(gpudirect):
    """What --explain says of all pairs of two DGX-1V."""
    text = ringsim("run", root / "scenarios/examples/machines/gpudirect-all.json", "--set", 'topology.node="dgx-1v"',
                   "--set", f"transport.gpudirect={json.dumps(gpudirect)}", "--explain")
    return text.split("\n\n", 1)[1].rstrip()


def write_page():
    nvlink, summary, host, missing = copies_tables()
    presets, notes = gpudirect_table()
    return f"""# Machines against measurements

Made by `docs/results/make/machines.py build/tools/ringsim`; a test fails when this page is not what it writes. All rates in GB/s (10^9 bytes).

## Copies between two GPUs of a machine

Predicted: a simulated copy of 1 GiB, `scenarios/examples/machines/gpu-copies.json`. Measured: `validate/measured/tables/copies.csv`, the median of all
published pairs of that kind and runs, in brackets the least and the most; the error is against the median. Both ways at once: the two
directions together.

**Over NVLink.** A link's rate is its line rate times the share that payload reaches, which comes from another machine than the one
compared (`topologies/machines/link_types.json`); no number was fitted to a row below. {summary}

{nvlink}

Not compared: nvbandwidth's own A100-class machine and the HGX H100 of issue 1264 over NVLink, because the shares come from them.

**Through host memory**, because the GPUs have no peer access or it was switched off for the measurement. Nothing is fitted, and it shows:

{host}

What is right is the shape: on one switch both ways together are no faster than one way, because each byte crosses the uplink up and
down; on two switches they are faster. What is missing:

{missing}

## GPUDirect RDMA on and off

Two nodes of every preset that has cabled adapters, on a star whose cables are faster than any of them, 256 MiB: one pair of GPUs
(`scenarios/examples/machines/gpudirect-pair.json`), and all GPUs in pairs both ways at once (`scenarios/examples/machines/gpudirect-all.json`; what leaves a node).
"binds" is the link that set the speed longest; of several equally narrow ones the first, and often they are equal: 12 GB/s for EDR and
PCIe gen3 x16, 24 for HDR and gen4, 48 for NDR and gen5.

{presets}

{notes}
- aws-p5: a message takes one of the four adapters at its GPU's switch, so that the uplink has room for both copies.
- Without GPUDirect one pair loses next to nothing: the two copies overlap, and each has the links to itself (not on dgx-a100, where a
  quarter of the socket's memory serves both). The cost shows where all GPUs of a switch send and receive at once: then the uplink binds,
  or the host's memory.

## The double copy, counted

A PCIe switch of DGX-1V has two GPUs, an adapter and one uplink of 12 GB/s each way. Every GPU sends p bytes and receives p:

| | uplink, up | uplink, down | adapter, out | adapter, in |
| --- | --- | --- | --- | --- |
| with GPUDirect | 0 | 0 | 2p | 2p |
| without: sending | 2p, GPU to memory | 2p, memory to adapter | 2p | |
| without: receiving | 2p, adapter to memory | 2p, memory to GPU | | 2p |
| without, in all | 4p | 4p | 2p | 2p |

Twice the adapter's bytes at the adapter's rate: half the speed. `tests/topologies/gpudirect_test.cpp` holds every link to these counts. With p = 256 MiB,
`ringsim run scenarios/examples/machines/gpudirect-all.json --set topology.node=dgx-1v --explain` says:

```
{explained(True)}

{explained(False)}
```
"""


write_or_check(page, write_page, __doc__)
