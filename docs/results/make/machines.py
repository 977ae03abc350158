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
    "a": "The model uses NCCL's constants for PCIe (12, 24, 48 GB/s for x16 in generations 3, 4, 5) in each direction, independent of the other "
    "direction. It omits packet headers and the limits of DMA reads, whose requests travel in the opposite direction and are limited in number by "
    "credits and tags. The constants are not upper bounds either. On 8 H200, copies from host memory to a GPU reach 55 GB/s over generation 5 "
    "(stas00/ml-engineering 744d01e18b79 network/README.md).",
    "b": "On one switch, the copy up to host memory and the copy down from it use the same uplink in opposite directions and slow each"
         " other down (DGX-1: 9.2 GB/s, and 9.8 on two switches; ABCI A: 16 and 20). In the model, the two directions of a link are independent.",
    "c": "There is no published description of how CUDA stages a copy through host memory, including the size and number of its buffers and the time "
    "when the second copy starts. The model uses 8 buffers of 512 KiB, as NCCL does, so the two copies overlap except for the first and last pieces.",
    "d": "The model uses NCCL's constant for the link between sockets (6, 10, 22 GB/s), which is the rate at which GPUs write to each other directly. "
    "Data staged in host memory crosses the link in ordinary reads and writes and is not limited by it: measured copies are as fast between sockets "
    "as within one. The model has no separate rate for this traffic.",
    "e": "In the model, the two directions of NVLink are independent. On the wire, each also carries the acknowledgments of the other, which may "
    "explain the error. It is not known why pairs among GPUs 4 to 7 reach 518 GB/s and all other pairs only 413 GB/s.",
    "f": "In the model, all copies reach the same share of the line rate. On the same NVLink4, p2pBandwidthLatencyTest reaches 376 GB/s (H100) and "
    "nvbandwidth reaches 396 GB/s (H200). The behavior of the benchmark (the size and the number of copies in flight) is not modeled.",
    "g": "The measured rate is about half of the PCIe rate, as if the two copies took turns instead of overlapping. The machine is rented, and the "
    "source does not say whether it is virtualized.",
    "h": "For pairs without peer access, copies both ways reach the same total rate as one way (9.19 GB/s), as if the two directions took turns. With "
    "P2P disabled, the same GPUs reach 17.5 GB/s.",
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
            f"One way, {len(nvlink) - len(beyond)} of {len(nvlink)} predictions are within 5 %. The exceptions are: {', '.join(beyond) or 'none'}.",
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
    notes = [f"- The following presets reach the same rates with and without GPUDirect, because none of their GPUs has an adapter within P2C distance: {', '.join(same)}."]
    if slower:
        notes.append(f"- The following presets are slower with GPUDirect: {', '.join(slower)}. Half of their GPUs have no adapter of their own and send"
                     " through another GPU's adapter (PXN), which requires GPUDirect. Among equally suitable GPUs, the model chooses the first for all of"
                     " them, so five GPUs share one adapter. NCCL instead uses the adapter of the local GPU that has the receiver's number"
                     " (ncclTopoGetNetDev). This is an error of the model, not of GPUDirect.")
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

`docs/results/make/machines.py build/tools/ringsim` generates this page, and a test checks that it is up to date. All rates are in GB/s (10^9 bytes).

## Copies between two GPUs in a machine

The predicted rate is that of a simulated copy of 1 GiB (`scenarios/examples/machines/gpu-copies.json`). The measured rate comes from
`validate/measured/tables/copies.csv`. It is the median over all runs of all published pairs of that kind, followed by the minimum and maximum in
parentheses. The error is relative to the median. "Both ways" is the sum of two simultaneous copies in opposite directions.

**Over NVLink.** The rate of a link is its line rate times the share that is available for payload. The share never comes from the machine that is compared
(`topologies/machines/link_types.json`), and no number was fitted to the rows below. {summary}

{nvlink}

The A100-class machine in nvbandwidth's README and the HGX H100 of issue 1264 are not included, because the shares come from them.

**Through host memory.** These GPUs have no peer access, or it was disabled for the measurement. Nothing is fitted here either, and the errors are larger:

{host}

The qualitative behavior is correct. On one switch, two simultaneous copies are no faster than one, because each byte crosses the uplink up and
down. On two switches, they are faster. The model does not include the following effects:

{missing}

## GPUDirect RDMA on and off

The table shows transfers of 256 MiB between two nodes of each preset that has network adapters, on a star whose cables are faster than any adapter. It
shows the rate of a single pair of GPUs (`scenarios/examples/machines/gpudirect-pair.json`) and the rate at which data leaves a node if all GPUs exchange
data in pairs (`scenarios/examples/machines/gpudirect-all.json`). "bottleneck" is the link that was the limit for the longest time, or the first of several
equally slow links. Adapters and PCIe often have the same rate: 12 GB/s for EDR and PCIe gen3 x16, 24 GB/s for HDR and gen4, 48 GB/s for NDR and gen5.

{presets}

{notes}
- On aws-p5, a message uses only one of the four adapters on its GPU's switch, so the uplink has enough bandwidth for both copies.
- Without GPUDirect, a single pair is predicted to lose almost nothing, because the two copies overlap and share no links. The exception is dgx-a100,
  where both use a quarter of the socket's memory. Measured pairs lose more: two H100 with RoCE reached 15 GB/s, a third of the prediction
  ([moc-h100-2n1g-all_reduce-nogdr](accuracy.md)). The loss appears when all GPUs on a switch send and receive at the same time. The bottleneck is then the uplink or
  the host memory.

## Counting the double copy

A PCIe switch in a DGX-1V connects two GPUs, an adapter and an uplink of 12 GB/s in each direction. Each GPU sends p bytes and receives p bytes:

| | uplink, up | uplink, down | adapter, out | adapter, in |
| --- | --- | --- | --- | --- |
| with GPUDirect | 0 | 0 | 2p | 2p |
| without: sending | 2p, GPU to memory | 2p, memory to adapter | 2p | |
| without: receiving | 2p, adapter to memory | 2p, memory to GPU | | 2p |
| without: total | 4p | 4p | 2p | 2p |

Without GPUDirect, the uplink has the same rate as the adapter but carries twice as many bytes, so the adapter runs at half its speed.
`tests/topologies/gpudirect_test.cpp` checks these counts on every link. With p = 256 MiB,
`ringsim run scenarios/examples/machines/gpudirect-all.json --set topology.node=dgx-1v --explain` prints:

```
{explained(True)}

{explained(False)}
```
"""


write_or_check(page, write_page, __doc__)
