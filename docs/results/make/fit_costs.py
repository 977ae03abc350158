#!/usr/bin/env python3
"""Fits costs of NCCL's kernels to the published tables of one family, by simulation.

Usage: docs/results/make/fit_costs.py path/to/ringsim FAMILY FILE NAME...

FAMILY is one of the scorecard: "several nodes", "one node, NVLink" or "one node, PCIe". NAME: constants of `ringsim list costs --format
json`. FILE gets their new values, for --set library.costs; copy rounded ones to topologies/nccl/cost_constants.cpp. A round of 18
constants on several nodes takes some 2 min on two idle cores; there are six.

Each constant in turn is multiplied and divided by a factor, and a better value is kept (coordinate descent). That is slower than the
linear fit of leave_one_out.py, but follows maxima, limits and fills, of which slopes know nothing. An error is the logarithm of
predicted/measured; it counts quadratically up to 8 % and linearly above, and a weak pull (0.3 per logarithm squared) keeps constants
that no table decides. Rows above 1 GiB are left out: they tell rates, and take longest. The tables in DOUBTED count 0.3 times.
"""
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

from page import library_rows

root = pathlib.Path(__file__).resolve().parents[3]
tables = root / "validate/measured/tables"
DOUBTED = ["alps-gh200-2n1g-all_reduce"]  # NCCL's code says LL128 from 1 to 4 MiB; the times do not look like it
SCALE, PULL, LARGEST = 0.08, 0.3, 1 << 30
FACTOR, GROWS, SHRINKS, LEAST = 0.25, 1.3, 0.5, 0.02  # of a constant at first; after a better value; after none; where it ends
ROUNDS = 6


def copy_of(family, ringsim, place):
    """A folder with the tables of that family, without rows above LARGEST."""
    for table in sorted({row["table"] for row in library_rows(ringsim, []) if row["family"] == family}):
        is_kept = lambda line: not re.match(r"\d+,", line) or int(line.split(",")[0]) <= LARGEST
        lines = [line for line in (tables / f"{table}.csv").read_text().splitlines(keepends=True) if is_kept(line)]
        if any(re.match(r"\d+,", line) for line in lines):
            (place / f"{table}.csv").write_text("".join(lines))
            (place / f"{table}.json").write_text((tables / f"{table}.json").read_text())
    return place


class Fit:
    def __init__(self, ringsim, folder, names):
        self.ringsim, self.folder = ringsim, folder
        listed = json.loads(subprocess.run([ringsim, "list", "costs", "--format", "json"], check=True, capture_output=True, text=True).stdout)
        known = {name: value for line in listed["costs"] for name, value in line["constants"].items()}
        if unknown := [name for name in names if not known.get(name)]:
            sys.exit(f"expected constants above 0 of `ringsim list costs --format json`, found {', '.join(unknown)}")
        self.first = {name: known[name] for name in names}

    def cost(self, values):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(json.dumps(values))
            file.flush()
            rows = library_rows(self.ringsim, [f'library.costs="{file.name}"'], self.folder)
        total = PULL * sum(math.log(values[name] / self.first[name]) ** 2 for name in values)
        for row in rows:
            if row["scored"] == "true":
                error = math.log(float(row["library_us"]) / float(row["measured_us"])) / SCALE
                total += (0.3 if row["table"] in DOUBTED else 1) * (math.sqrt(1 + error * error) - 1)
        return total

    def run(self, file):
        values = dict(self.first)
        best = self.cost(values)
        print(f"{best:.1f} before", file=sys.stderr, flush=True)
        step = {name: FACTOR for name in values}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for turn in range(ROUNDS):
                for name in [name for name in values if step[name] >= LEAST]:
                    tried = [{**values, name: values[name] * factor} for factor in (1 + step[name], 1 / (1 + step[name]))]
                    cost, found = min(zip(pool.map(self.cost, tried), tried), key=lambda each: each[0])
                    step[name] *= GROWS if cost < best else SHRINKS
                    if cost < best:
                        best, values = cost, found
                print(f"{best:.1f} after round {turn + 1}", file=sys.stderr, flush=True)
                file.write_text(json.dumps(values, indent=2) + "\n")


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    ringsim, family, file, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        folder = copy_of(family, ringsim, pathlib.Path(place))
        if not any(folder.iterdir()):
            sys.exit(f"expected a family of the scorecard such as \"several nodes\", found \"{family}\"")
        Fit(ringsim, folder, names).run(pathlib.Path(file))


if __name__ == "__main__":
    main()
