#!/usr/bin/env python3
"""Writes docs/results/leave-one-out.md: how far the model of NCCL is off on a machine whose tables its costs were not fitted to.

Usage: docs/results/make/leave_one_out.py path/to/ringsim   writes the page; takes about 80 scorecards (10 min on two idle cores)

Every constant of `ringsim list costs` is changed in turn, by --set library.costs, to see what it does to every row (times are linear
in times, and in 1/rate). Then, for each machine, the constants that its tables depend on are fitted again to the tables of all other
machines, and its own rows are predicted with these, by simulation.
"""
import collections
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

from page import library_rows, quantile

root = pathlib.Path(__file__).resolve().parents[3]
page = root / "docs/results/leave-one-out.md"
tables = root / "validate/measured/tables"
MIB = 1 << 20
BANDS = [("up to 64 KiB", 0, MIB // 16, "12 / 35"), ("64 KiB to 8 MiB", MIB // 16 + 1, 8 * MIB - 1, "15 / 45"),
         ("8 MiB and more", 8 * MIB, 1 << 62, "7 / 25"), ("256 MiB and more", 256 * MIB, 1 << 62, "5 / 18")]
GENERATIONS = ["volta", "ampere", "hopper", "blackwell"]
# Constants that tables of a family depend on, by how their names begin.
DEPEND = {"one node, NVLink": ("step", "once", "nvlink", "copy", "reduce", "sends", "a_block", "nvls", "width"),
          "one node, PCIe": ("pcie", "once", "sends", "width", "step", "a_block"),
          "several nodes": ("step", "once", "nvlink", "copy", "reduce", "a_block", "nvls", "width", "network")}
# In no fit of NCCL's tables: from other measurements (`ringsim list costs`).
FROM_ELSEWHERE = ["pcie.both_ways", "network.post.verbs", "network.post.cxi"]
# Facts of a machine that were taken from its own tables (docs/results/accuracy.md): left out with them.
INFERRED = {"polaris": ("gpudirect_cost", None), "abci-v100": (None, "distance")}
CHANGE = 0.05         # of a constant, to see what it does
SCALE = 0.1           # errors above count linearly (as in `ringsim calibrate`)
PULL, STAY = 0.3, 0.1  # weights of the pull between neighboring generations, and of staying, next to errors over SCALE
LEAST, MOST = -0.6, 1.5
# us that a constant adds to a row beyond what it adds to the row that gives the launch, if it doubles. Less is rounding: times
# are whole picoseconds, and their differences are divided by CHANGE.
LEAST_EFFECT = 1e-4
RUNS_AT_ONCE = 8


def machine_of(table):
    """"aic-h100" of "aic-h100-1n8g-all_reduce"; those of one GPU and source but other machines apart."""
    name, nodes = re.match(r"(.*)-(\d+)n\d+g", table).groups() if re.search(r"-\d+n\d+g", table) else (table, "1")
    if name == "h20" and "alltoall" in table:
        return "h20 (virtual machine)"
    return f"{name} ({nodes} nodes)" if name == "h100" and nodes != "1" else name


def is_rate(name):
    return any(part in name for part in (".nvlink.", ".copy.", ".reduce.", "sends_nvlink", "a_block", "sends_copy", ".share",
                                         "efa_share", "through_host"))


def by_row(rows):
    return {(row["table"], int(row["bytes"])): row for row in rows}


class Runs:
    """Scorecards with other costs. The launch is 0: a given launch is added afterwards."""

    def __init__(self, ringsim, place):
        self.ringsim, self.place = ringsim, pathlib.Path(place)

    def folder(self, name, ids):
        """Copies tables into a folder of that name, or of a new one."""
        where = pathlib.Path(tempfile.mkdtemp(dir=self.place)) if name is None else self.place / name
        where.mkdir(exist_ok=True)
        for table in ids:
            for ending in ("csv", "json"):
                (where / f"{table}.{ending}").write_text((tables / f"{table}.{ending}").read_text())
        return where

    def times(self, folder, costs, node=None):
        sets = ['devices.gpu.launch="0 us"']
        if costs:  # a file without any is refused
            with tempfile.NamedTemporaryFile("w", dir=self.place, suffix=".json", delete=False) as file:
                file.write(json.dumps(costs))
            sets.append(f'library.costs="{file.name}"')
        rows = by_row(library_rows(self.ringsim, sets + ([f"topology.node_file=\"{node}\"", "topology.node=null"] if node else []), folder))
        return {key: float(row["library_us"]) for key, row in rows.items()}, rows


def solve(matrix, right):
    """Gauss with pivots."""
    n = len(right)
    rows = [line[:] + [value] for line, value in zip(matrix, right)]
    for i in range(n):
        best = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            if factor:
                for c in range(i, n + 1):
                    rows[r][c] -= factor * rows[i][c]
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (rows[i][n] - sum(rows[i][c] * out[c] for c in range(i + 1, n))) / rows[i][i]
    return out


def refit(free, rows, values):
    """x of the free constants: value (1 + x), of rates value / (1 + x). `rows`: predicted, measured, {constant: us for x = 1}."""
    index = {name: i for i, name in enumerate(free)}
    x = [0.0] * len(free)
    for _ in range(8):
        left = [[0.0] * len(free) for _ in free]
        right = [0.0] * len(free)

        def add(residual, slopes, weight):
            for i, a in slopes:
                right[i] -= weight * a * residual
                for j, b in slopes:
                    left[i][j] += weight * a * b

        for predicted, measured, slopes in rows:
            own = [(index[name], us) for name, us in slopes.items() if name in index]
            if not own:
                continue
            now = max(predicted + sum(us * x[i] for i, us in own), 0.2 * measured)
            error = math.log(now / measured) / SCALE
            add(error, [(i, us / now / SCALE) for i, us in own], 1 / math.sqrt(1 + error * error))
        for name, i in index.items():
            add(STAY * x[i], [(i, STAY)], 1)
            generation, _, rest = name.partition(".")
            at = GENERATIONS.index(generation) if generation in GENERATIONS else len(GENERATIONS)
            for other in GENERATIONS[at + 1:at + 2] + GENERATIONS[max(0, at - 1):at if at < len(GENERATIONS) else 0]:
                theirs = f"{other}.{rest}"
                if not values.get(theirs):
                    continue
                sign = -1 if is_rate(name) else 1
                log = lambda each: math.log(values[each]) + (sign * math.log(1 + x[index[each]]) if each in index else 0)
                slopes = [(index[each], side * PULL * sign / (1 + x[index[each]])) for each, side in ((name, 1), (theirs, -1))
                          if each in index]
                add(PULL * (log(name) - log(theirs)), slopes, 1)
        x = [min(MOST, max(LEAST, a + b)) for a, b in zip(x, solve(left, right))]
    return dict(zip(free, x))


def cell(rows, least, most):
    errors = [100 * (predicted / measured - 1) for size, measured, predicted in rows if least <= size <= most]
    if not errors:
        return "-"
    return f"{quantile([abs(e) for e in errors], 0.5):.0f} / {quantile([abs(e) for e in errors], 0.9):.0f} / {quantile(errors, 0.5):+.0f}"


def without_inferred(place, machine):
    """The machine's file without what was inferred from its own tables; nothing if it has none."""
    if machine not in INFERRED:
        return None
    host, nic = INFERRED[machine]
    preset = json.loads((root / f"topologies/presets/{'abci-v' if machine == 'abci-v100' else machine}.json").read_text())
    if host:
        del preset["host"][host]
    for device in preset["devices"]:
        if nic and device["kind"] == "nic":
            del device["attributes"][nic]
    path = pathlib.Path(place) / f"{machine}.json"
    path.write_text(json.dumps(preset))
    return path


class Fits:
    """What each constant does to each row: `by_table` has predicted, measured and {constant: us for x = 1} of its scored rows."""

    def __init__(self, ringsim, runs):
        listed = json.loads(subprocess.run([ringsim, "list", "costs", "--format", "json"], check=True, capture_output=True, text=True).stdout)
        self.values = {name: value for line in listed["costs"] for name, value in line["constants"].items()}
        self.everything = {key: row for key, row in by_row(library_rows(ringsim, [])).items() if row["family"] in DEPEND}  # not RCCL
        self.runs = runs
        self.ids = sorted({table for table, _ in self.everything})
        self.by_machine = collections.defaultdict(list)
        for table in self.ids:
            if any(row["scored"] == "true" for (name, _), row in self.everything.items() if name == table):
                self.by_machine[machine_of(table)].append(table)
        self.generation = generations_of(self.by_machine)
        family = {table: row["family"] for (table, _), row in self.everything.items()}
        self.by_pcie = {machine: family[own[0]] == "one node, PCIe" for machine, own in self.by_machine.items()}
        folders = {each: runs.folder(each.replace(" ", "-"), [table for own in self.by_machine.values() for table in own
                                                              if family[table] == each]) for each in DEPEND}
        self.base, self.rows = {}, {}
        for folder in folders.values():
            times, more = runs.times(folder, {})
            self.base.update(times)
            self.rows.update(more)
        # A machine's launch: of its first table, by ranks and name, with a small row; the row whose launch is the median of three.
        self.first = {}
        for machine, own in self.by_machine.items():
            small = sorted((int(row["ranks"]), table, size) for (table, size), row in self.everything.items()
                           if table in own and size <= MIB // 16 and row["collective"] in ("all_reduce", "all_gather"))
            rows = [key for _, *key in small if key[0] == small[0][1]][:3]
            by_launch = sorted(rows, key=lambda key: float(self.rows[tuple(key)]["measured_us"]) - self.base[tuple(key)])
            if by_launch:
                self.first[machine] = tuple(by_launch[(len(by_launch) - 1) // 2])
        # One constant of every generation at a time, for a table has one generation.
        names = [name for name, value in self.values.items() if value > 0 and "launch" not in name and name not in FROM_ELSEWHERE]
        self.groups = collections.defaultdict(list)
        for name in names:
            head, _, rest = name.partition(".")
            self.groups[rest if head in GENERATIONS else name].append(name)
        slopes = {key: {} for key in self.base}

        def slopes_of(what):
            changed = self.moved({name: CHANGE for name in self.groups[what]})
            return {key: us for each, folder in folders.items() if what.startswith(DEPEND[each])
                    for key, us in runs.times(folder, changed)[0].items()}

        with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
            for what, times in zip(sorted(self.groups), pool.map(slopes_of, sorted(self.groups))):
                print(what, file=sys.stderr, flush=True)
                for key, us in times.items():
                    if abs(us - self.base[key]) > 1e-9:
                        slopes[key][what] = (us - self.base[key]) / CHANGE
        self.by_table = collections.defaultdict(list)
        for (table, size), row in self.rows.items():
            machine = machine_of(table)
            if row["scored"] != "true" or machine not in self.by_machine:
                continue
            named = lambda what: what if what in self.values else f"{self.generation[machine]}.{what}"
            own = {named(what): us for what, us in slopes[table, size].items()}
            predicted, measured = self.base[table, size], float(row["measured_us"])
            if machine in self.first and (table, size) != self.first[machine]:  # the launch is what the first row leaves
                predicted += float(self.rows[self.first[machine]]["measured_us"]) - self.base[self.first[machine]]
                for what, us in slopes[self.first[machine]].items():
                    own[named(what)] = own.get(named(what), 0) - us
            elif machine in self.first:
                continue
            else:
                predicted += self.usual_launch(machine)
            effects = {name: us for name, us in own.items() if abs(us) > LEAST_EFFECT}
            self.by_table[table].append((max(predicted, 0.2 * measured), measured, effects))

    def usual_launch(self, machine):
        return self.values["pcie.launch" if self.by_pcie[machine] else f"{self.generation[machine]}.launch"]

    def moved(self, x):
        """Constants that differ by x: value (1 + x), of rates value / (1 + x)."""
        return {name: self.values[name] / (1 + by) if is_rate(name) else self.values[name] * (1 + by) for name, by in x.items()}

    def without(self, machine, own, is_out):
        """The machine's rows of the tables `own`: size, measured, predicted without tables that are out but for the launch, and
        predicted with all; how long the launch is, which costs were fitted again, and which are known from what is out alone."""
        free = sorted({name for table in own for each in self.by_table[table] for name in each[2] if self.values.get(name, 0) > 0})
        others = [each for table, all_rows in self.by_table.items() if not is_out(table) for each in all_rows]
        seen = {name for each in others for name in each[2]}
        costs = self.moved(refit(free, others, self.values))
        alone = [name for name in free if name not in seen]
        for name in alone:
            near = [f"{each}.{name.partition('.')[2]}" for each in sorted(GENERATIONS, key=lambda g: abs(
                GENERATIONS.index(g) - GENERATIONS.index(self.generation[machine]) + 0.1))] if name.startswith(self.generation[machine]) else []
            theirs = [each for each in near if each in seen and self.values.get(each, 0) > 0]
            costs[name] = self.values[theirs[0]] if theirs else self.values[name] if "width" in name else 1 if "_share" in name else 1e6 if is_rate(name) else 0
        with_first = sorted({*own, *([self.first[machine][0]] if machine in self.first else [])})
        times, full = self.runs.times(self.runs.folder(None, with_first), costs, without_inferred(self.runs.place, machine))
        launch = self.usual_launch(machine)
        if machine in self.first:
            launch = max(0.0, float(full[self.first[machine]]["measured_us"]) - times[self.first[machine]])
        found = [(size, float(row["measured_us"]), times[table, size], float(self.everything[table, size]["library_us"]))
                 for (table, size), row in full.items() if table in own and row["scored"] == "true"]
        return found, launch, free, alone


def write_page(fits):
    given, unknown, known, moved, found = [], [], [], {}, {}
    for machine, own in sorted(fits.by_machine.items()):
        all_rows, launch, free, alone = fits.without(machine, own, lambda table: machine_of(table) == machine)
        theirs = [float(fits.rows[fits.first[each]]["measured_us"]) - fits.base[fits.first[each]] for each in fits.first
                  if each != machine and fits.by_pcie[each] == fits.by_pcie[machine]
                  and (fits.by_pcie[machine] or fits.generation[each] == fits.generation[machine])]
        blind = max(0.0, quantile(theirs, 0.5)) if theirs else fits.values["hopper.launch"]
        found[machine] = [(size, measured, us + launch) for size, measured, us, _ in all_rows]
        given += found[machine]
        unknown += [(size, measured, us + blind) for size, measured, us, _ in all_rows]
        known += [(size, measured, us) for size, measured, _, us in all_rows]
        moved[machine] = (launch, len(free), alone)
        print(machine, cell(found[machine], 0, 1 << 62), alone, file=sys.stderr, flush=True)
    # Eight GPUs of a node from two and four.
    is_eight = lambda table: "-1n8g-" in table
    eight = {}
    for machine, own in sorted(fits.by_machine.items()):
        of_eight = [table for table in own if is_eight(table)]
        if not of_eight or not any(re.search("-1n[24]g-", table) for table in own):
            continue
        all_rows, launch, _, alone = fits.without(machine, of_eight, is_eight)
        eight[machine] = ([(size, measured, us + launch) for size, measured, us, _ in all_rows], alone)
        print(machine, "of eight", cell(eight[machine][0], 0, 1 << 62), alone, file=sys.stderr, flush=True)
    page.write_text(text_of(given, unknown, known, found, moved, eight, fits.groups))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as place:
        write_page(Fits(sys.argv[1], Runs(sys.argv[1], place)))


def generations_of(by_machine):
    out = {}
    for machine, own in by_machine.items():
        node = re.search(r'"node": "([^"]+)"', (tables / f"{own[0]}.json").read_text()).group(1)
        preset = (root / f"topologies/presets/{node}.json").read_text()
        sm = int(re.search(r'"sm": "(\d+)"', preset).group(1))
        out[machine] = GENERATIONS[3 if sm >= 100 else 2 if sm >= 90 else 1 if sm >= 80 else 0]
    return out


def text_of(given, unknown, known, found, moved, eight, groups):
    line = lambda name, rows: f"| {name} | " + " | ".join(cell(rows, least, most) for _, least, most, _ in BANDS) + " |"
    head = "| " + " | ".join(name for name, *_ in BANDS) + " |"
    machines = "\n".join(
        f"| {machine} | {moved[machine][0]:.1f} | {moved[machine][1]} | " + " | ".join(cell(rows, least, most) for _, least, most, _ in BANDS)
        + f" | {', '.join(f'`{each}`' for each in moved[machine][2]) or '-'} |" for machine, rows in found.items())
    eights = "\n".join(
        f"| {machine} | " + " | ".join(cell(rows, least, most) for _, least, most, _ in BANDS)
        + f" | {', '.join(f'`{each}`' for each in alone) or '-'} |" for machine, (rows, alone) in eight.items())
    all_eight = [row for rows, _ in eight.values() for row in rows]
    return f"""# How accurate are predictions for a machine that is not in the fit?

`docs/results/make/leave_one_out.py build/tools/ringsim` generates this page. The script is run manually, because it is too slow for a test. Each of the
{len(found)} machines of the [published tables](accuracy.md) is left out in turn. The NCCL kernel constants that affect the tables of this machine
([nccl-costs](nccl-costs.md)) are refitted to the tables of all other machines. Its own rows are then predicted with the refitted constants. Cells show
the median / 90th percentile of |predicted/measured - 1| and the median signed error, in percent.

| | {head[2:]}
| --- | ---: | ---: | ---: | ---: |
{line("machine left out, launch given", given)}
{line("machine left out, nothing given", unknown)}
{line("all tables included in the fit", known)}
| goal, launch given | {" | ".join(goal for *_, goal in BANDS)} |

- **Launch given** means that the launch time (`devices.gpu.launch`) of the machine is known. It is a single number that depends on the machine and the test
  harness. It is the median difference between measurement and prediction in the three smallest rows of one of the machine's tables, the all_gather or
  all_reduce with the fewest GPUs. If there is no row up to 64 KiB, the launch time of the generation is used. **Nothing given** means that the launch time is
  the median of the other machines of the generation.
- **Fit**: To find the effect of a constant on each row, the script changes it by {100 * CHANGE:.0f} % in one of {len(groups)} scorecards. Two weak penalties determine constants that the remaining tables leave open. One pulls a
  constant toward the same constant of neighboring generations, and the other toward its value in the fit to all tables. The second penalty carries over
  a little information about the machine that is left out. Errors are logarithms of predicted/measured and count linearly above {100 * SCALE:.0f} %. A constant that adds
  the same time to all rows of a machine is not refitted for it, because the data cannot separate it from the launch time, which is given.
- If no other machine's tables depend on a constant, its value is taken from the nearest generation. If no generation has a value, a time is set to zero,
  a rate limit is removed, a share is 1, and a width (the chunk size at which a step takes its full time) is left unchanged. These constants are listed below.
- Two machine properties were inferred from the machines' own tables, so they are left out together with these tables: the rate at which adapters read
  GPU memory on Polaris, and the distance between NICs and GPUs on ABCI V.
- Rules that were chosen with knowledge of all tables are not refitted. Examples are the distribution of sends over channels on Blackwell, the number of
  turns in which LL rings read a chunk, and the sizes of pieces. `pcie.both_ways` is not refitted either, because it comes from plain copies on other
  machines. The decision to use these copies for rings through host memory was made with knowledge of the tables for RTX 2080 Ti and RTX 4090.

| machine | launch, us | refitted constants | {head[2:]} known only from this machine |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
{machines}

## Predicting eight GPUs from two and four

Here, the tables for eight GPUs in one node are left out of the fit for all machines. They are predicted for machines that also have tables with
fewer GPUs. The launch time comes from the table with the fewest GPUs. Constants known only from eight GPUs, such as most costs of NVLS, are
not used.

| machine | {head[2:]} known only from eight GPUs |
| --- | ---: | ---: | ---: | ---: | --- |
{eights}
{line("all", all_eight)[:-2]} | |
"""


if __name__ == "__main__":
    main()
