#!/usr/bin/env python3
"""Writes docs/results/bounds.md: what each preset allows at best, and what share of it measured collectives reach.

Usage: docs/results/make/bounds.py path/to/ringsim           writes the page
       docs/results/make/bounds.py path/to/ringsim --check   compares it with the page that is there; exit 1 where they differ
"""
import csv
import io
import json
import pathlib
import subprocess
import sys
from fractions import Fraction

from page import write_or_check

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/bounds.md"
tables = root / "validate/measured/tables"
NODES = (1, 2, 4, 8)
# Collectives as nccl-tests' busbw counts them: the factor of algbw for n ranks.
BUS = {"all_reduce": lambda n: Fraction(2 * (n - 1), n), "all_gather": lambda n: Fraction(n - 1, n),
       "reduce_scatter": lambda n: Fraction(n - 1, n), "all_to_all": lambda n: Fraction(n - 1, n),
       "broadcast": lambda n: Fraction(1), "send_recv": lambda n: Fraction(1)}
NAMES = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
# Tables with rows above their bound, and why. The script fails if one has no reason, or a reason has no row.
ABOVE = {
    "gh200-2n1g-all_reduce-gdron": "This is within rounding. The model assumes that an HDR port carries a payload of 24 of 25 GB/s (0.96), and these "
    "four ports carry 24.02 GB/s each.",
    "h100-10n1g-all_reduce": "The preset uses 48 GB/s in two places, which is 2 % too low here. For PCIe gen5 x16, 48 GB/s is NCCL's constant (the "
    "line rate is 63 GB/s, and copies at 55 GB/s were measured elsewhere). For NDR, it is the upper end of the 46 to 48 GB/s reported in nccl-tests "
    "issue 290. This fabric carries 48.9 of 50 GB/s. The constants are unchanged, because other machines reach 46 to 48 GB/s, and NCCL's own "
    "decisions are based on 48 GB/s.",
}


def ringsim(*arguments, scenario=None):
    """What the command prints. `scenario`: passed to it as `-`."""
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True,
                          input=None if scenario is None else json.dumps(scenario))
    if done.returncode:
        sys.exit(f"docs/results/make/bounds.py: ringsim {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def read(path):
    """JSON with // comments on lines of their own."""
    return json.loads("\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//")))


def bounds_of(scenario, *settings):
    """(ranks, {collective: its bound}); those with sums in switches as "COLLECTIVE, switches"."""
    if isinstance(scenario, dict):
        text = ringsim("bound", "-", "--format", "json", scenario=scenario)
    else:
        text = ringsim("bound", scenario, "--format", "json", *(word for each in settings for word in ("--set", each)))
    document = json.loads(text)
    return document["ranks"], {each["collective"] + (", switches" if each["sums_in_switches"] else ""): each
                               for each in document["bounds"]}


def markdown(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def rate(bound, key="bound_busbw_GBps"):
    return f"{'' if bound['optimum'] else '<= '}{bound[key]:.1f}"


def preset_cells(name, nodes):
    """The row of a preset, without its name."""
    topology = {"kind": "cluster", "node": name, "nodes": nodes}
    if nodes > 1:
        topology["fabric"] = {"kind": "star", "link": {"bandwidth": "1600 Gb/s", "latency": "150 ns"}}
    ranks, of = bounds_of({"version": 1, "topology": topology, "transport": {"nics": "per_channel"},
                           "collective": {"op": "all_gather", "algorithm": "ring", "bytes": "1 GB"}})
    if ranks == 1:
        return None
    gather, scatter, reduced = of["all_gather"], of["reduce_scatter"], of["all_reduce"]
    # A message of 1 GB: a reduce-scatter and an all-gather take so many seconds per block of 1/n GB each.
    both = 2 * (ranks - 1) / (Fraction(gather["inverse_rate"]) + Fraction(scatter["inverse_rate"]))
    most = Fraction(2 * (ranks - 1), ranks) / Fraction(reduced["inverse_rate"])
    reached = gather["optimum"] and scatter["optimum"]
    if reached and both > most:
        sys.exit(f"docs/results/make/bounds.py: {nodes} {name}: an all-reduce reaches {float(both)} GB/s, above its bound {float(most)}")
    same = gather["inverse_rate"] == scatter["inverse_rate"]
    return [str(nodes), str(ranks), rate(gather, "bound_algbw_GBps"), rate(gather), gather["inverse_rate"],
            "the same" if same else rate(scatter), f"{'' if reached else '<= '}{float(min(both, most)):.1f}", f"<= {reduced['bound_busbw_GBps']:.1f}",
            rate(of["broadcast"]), rate(of["all_to_all"]), gather["bottleneck"].replace("node0.", "").replace("node*.", "")]


def preset_table():
    """Presets with the same rows share them."""
    groups = {}
    for path in sorted((root / "topologies/presets").glob("*.json")):
        cabled = any("port" in device for device in read(path)["devices"])
        rows = [preset_cells(path.stem, nodes) for nodes in (NODES if cabled else NODES[:1])]
        groups.setdefault(json.dumps([row for row in rows if row]), []).append(path.stem)
    head = ["preset", "nodes", "GPUs", "all-gather: algbw", "busbw", "1/x*, s per GB", "reduce-scatter: busbw", "all-reduce in two: busbw",
            "all-reduce: busbw", "broadcast: busbw", "all-to-all: busbw", "bottleneck of the all-gather"]
    rows = []
    for key, names in groups.items():
        for i, row in enumerate(json.loads(key)):
            rows.append([", ".join(names) if i == 0 else "", *row])
    return markdown(head, rows)


def nvlink_share(preset):
    """What of NVLink's line rate the preset counts as payload, if its GPUs are joined by an NVSwitch."""
    types = {link["type"] for link in preset["links"] if link.get("type", "").startswith("nvlink")}
    if len(types) != 1 or not (name := types.pop()).endswith("-switched"):
        return None
    return read(root / "topologies/machines/link_types.json")[name]["efficiency"]["value"]


def rows_of(path):
    """(about, [(bytes, time in us)]). Rows with no time have a bus bandwidth only, which is left out if it is 0."""
    about, data = {}, []
    for line in path.read_text().splitlines():
        if line.startswith("# ") and ": " in line:
            key, value = line[2:].split(": ", 1)
            about[key] = value
        elif not line.startswith("#"):
            data.append(line)
    rows = list(csv.DictReader(io.StringIO("\n".join(data))))
    n, factor = int(about["ranks"]), BUS[NAMES.get(about["collective"], about["collective"])]
    times = []
    for row in rows:
        if row["time_us"]:
            times.append((int(row["bytes"]), Fraction(row["time_us"])))
        elif float(row["busbw_GBps"] or 0) > 0:
            times.append((int(row["bytes"]), int(row["bytes"]) * factor(n) / Fraction(row["busbw_GBps"]) / 1000))
    return about, times


def adds_in_switches(about, path, scenario, size):
    """Whether NVLS or NVLSTree runs: as the table says; as NCCL is predicted to choose, if the scenario leaves it to NCCL."""
    if "NVLS" in about["algorithm"].upper():
        return True
    if "library" not in scenario:
        said = scenario["collective"]["algorithm"]
        return isinstance(said, dict) and said["name"] == "in_switch"
    rows = csv.DictReader(io.StringIO(ringsim("run", path, "--format", "csv", "--set", f'collective.bytes="{size} B"')))
    return "NVLS" in next(rows)["library_algorithm"]


class Measured:
    """A measured table next to the bound of its machine."""

    def __init__(self, csv_path):
        path = csv_path.with_suffix(".json")
        self.name = csv_path.stem
        about, times = rows_of(csv_path)
        scenario = read(path)
        op = scenario["collective"]["op"]
        self.op = NAMES.get(op, op)
        spread = "library" not in scenario and "nics" not in scenario.get("transport", {})
        self.ranks, of = bounds_of(path, *(['transport.nics="per_channel"'] if spread else []))
        self.bound, self.in_switches = of[self.op], of.get(self.op + ", switches")
        factor = BUS[self.op](self.ranks)
        self.size, time = max(times, key=lambda row: row[0] / row[1])
        self.busbw = float(self.size * factor / time / 1000)
        self.share = self.share_of(self.bound, self.size, time)
        self.above = [(size, self.share_of(self.bound, size, time)) for size, time in times
                      if self.share_of(self.bound, size, time) > 1 and (self.op != "broadcast" or size >= 1 << 20)]
        self.switched = self.op == "all_reduce" and adds_in_switches(about, path, scenario, self.size)
        self.switch_share = self.share_of(self.in_switches, self.size, time) if self.switched else None
        preset = scenario["topology"].get("node")
        one_node = scenario["topology"].get("nodes", 1) == 1 and isinstance(preset, str)
        self.payload = nvlink_share(read(root / f"topologies/presets/{preset}.json")) if one_node else None

    def share_of(self, bound, size, time):
        amount = size // self.ranks if bound["inverse_rate_of"] == "block" else size
        return float(amount * Fraction(bound["inverse_rate"]) / 1000 / time)

    def cells(self, bound, share):
        line_rate = "-" if self.payload is None or self.switched else f"{100 * share * self.payload:.0f} %"
        return [self.name, str(self.ranks), f"{self.size:,}", f"{self.busbw:.1f}", rate(bound), f"{100 * share:.1f} %", line_rate]


def measured_tables():
    found = [each for path in sorted(tables.glob("*.csv")) if path.with_suffix(".json").exists()
             if (each := Measured(path)).size >= 1 << 20]
    above = {each.name: each for each in found if each.above and not each.switched}
    if set(above) != set(ABOVE):
        sys.exit(f"docs/results/make/bounds.py: rows above their bound in {sorted(above)}, explained {sorted(ABOVE)}")
    head = ["table", "ranks", "best row, bytes", "busbw measured", "busbw of the bound", "share", "share of the NVLink line rate"]
    plain = markdown(head, [each.cells(each.bound, each.share) for each in found if not each.switched])
    switched = markdown(head[:-1] + ["share of the bound without reduction in switches"],
                        [each.cells(each.in_switches, each.switch_share)[:-1] + [f"{100 * each.share:.1f} %"]
                         for each in found if each.switched])
    notes = "\n".join(f"- {each.name}: {len(each.above)} row{'s reach' if len(each.above) > 1 else ' reaches'} up to"
                      f" {100 * max(share for _, share in each.above):.1f} % of the bound (at {each.above[0][0]:,} bytes and more). {ABOVE[name]}"
                      for name, each in above.items())
    large = [each for each in found if each.payload and not each.switched and each.ranks == 8 and each.size >= 1 << 28]
    shares = sorted(100 * each.share * each.payload for each in large)
    return plain, switched, notes, len(found), f"{shares[0]:.0f} to {shares[-1]:.0f} %", len(large)


def write_page():
    plain, switched, notes, n, band, n_band = measured_tables()
    return f"""# Bounds: limits of machines compared with measurements

`docs/results/make/bounds.py build/tools/ringsim` generates this page, and a test checks that it is up to date. All rates are in GB/s (10^9 bytes).

## The limits of each preset

No algorithm can move data faster than the rates in this table. The last column shows the cut that limits the all-gather. `ringsim bound` computes these
rates for any machine. They are based on the payload rates of links, so they are lower than they would be with line rates. Latency is not included.

The nodes are connected by a star whose cables are faster than any NIC, so the limit is always inside a machine. All NICs are included. Other links are
included if messages between GPUs use them: NVLink within a node, NICs between nodes. The busbw on several nodes can exceed that on one node, because data
leaves a GPU over NVLink and a NIC at the same time. `<=` marks an upper bound; the optimum may be lower. Rates without it are optimal, and trees reach
them (`ringsim synthesize` generates the trees). `1/x*` is exact: it is the time in seconds in which each rank's block of 1 GB reaches all ranks.
"All-reduce in two" is a reduce-scatter followed by an all-gather. "All-reduce" is the bound for all algorithms in which only GPUs reduce. All-to-all rates
are always upper bounds that follow from cuts. `*` matches any number. Presets on the same line have the same bounds.

{preset_table()}

## Measured collectives compared with the bounds

The table compares the best row (the one with the largest busbw) of each measured table with the bound of its machine. It includes the {n} tables in
`validate/measured/tables` that have a scenario and messages of 1 MiB or more. Most tables were measured with NCCL. Those with `mpi` in the name were
measured with MPI, and those with mi300x or mi325x with RCCL. The bound uses the rate of copies between two GPUs. For single nodes with NVSwitches, the last
column shows the share of the NVLink line rate. For the {n_band} tables with eight GPUs on an NVSwitch whose best row is 256 MiB or more, this share is {band}.
The rest is lost to kernels, their synchronization, and protocols.

{plain}

### Reduction in switches

If NVSwitches perform the reduction (NVLS), the usual all-reduce bound does not apply, because the message has to leave and enter each GPU only once.
If a table does not name the algorithm that ran, this page uses the algorithm that ringsim predicts for NCCL.

{switched}

### Rows above their bound

If a measured rate exceeds its bound, the preset is slower than the real machine. This list excludes broadcasts below 1 MiB and tables with reduction in switches.

{notes}
"""


if __name__ == "__main__":
    write_or_check(page, write_page, __doc__)
