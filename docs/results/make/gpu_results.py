#!/usr/bin/env python3
"""Makes a page and a picture of what tools/gpu-all.sh measured: predictions and measurements on GPUs.

Usage: docs/results/make/gpu_results.py FOLDER PAGE.md [--check]

Reads FOLDER/*.csv, writes PAGE.md and PAGE.svg; with --check compares, exit code 1 where they differ.
"""
import csv
import math
import pathlib
import statistics
import sys

EXPERIMENTS = [  # file, title, what it shows, whether its times count
    ("host", "Parameter servers in host memory",
     "K ranks run on one GPU, and the server is in pinned host memory. All ranks share one path to the host and one path back.", True),
    ("memory-graph", "In GPU memory, with a CUDA graph",
     "K ranks share one GPU, and the schedule runs as a CUDA graph. All copies and additions share the memory bandwidth.", True),
    ("memory-streams", "In GPU memory, call by call",
     "K ranks share one GPU. There is no CUDA graph, so the host issues each call separately, which takes time.", True),
    ("kernels", "Copy kernels with few blocks, modeled as links",
     "A kernel with the given number of thread blocks copies each rank's data and is modeled as a link with a known rate. All kernels share the "
     "memory bandwidth.", True),
    ("nccl", "NCCL", "These runs use ncclSend and ncclRecv, or NCCL's own collective, with one rank or with two processes on one GPU. The kernels of "
     "the two processes take turns on the GPU while they wait for each other, so only the results are compared, not the times.", False),
]
MODELS = [  # column, its name, color
    ("time_us", "simulator", "#1f5fa8"),
    ("modelled_in_turn_us", "in turn", "#b3541e"),
    ("modelled_shared_us", "shared", "#3c7d3c"),
]
FROM = 1 << 20  # the goal counts from 1 MiB on: below it a launch is all


def fail(message):
    sys.exit(f"docs/results/make/gpu_results.py: error: {message}")


class Experiment:
    def __init__(self, path, title, shows, timed):
        self.path, self.title, self.shows, self.timed = path, title, shows, timed
        lines = path.read_text().splitlines()
        self.comments = [line[2:] for line in lines if line.startswith("# ")]
        self.rows = [row for row in csv.DictReader(line for line in lines if not line.startswith("#"))]
        for number, row in enumerate(self.rows, 1):
            for key in ("algorithm", "ranks", "bytes", "time_us", "transfers", "measured_us", "measured_min_us",
                        "measured_max_us", "wrong"):
                if not row.get(key):
                    fail(f"{path}: result {number}: expected a column {key} with a value, found {row.get(key)!r}")
        self.models = [model for model in MODELS if self.rows and all(row.get(model[0]) for row in self.rows)]

    def moving(self):
        """The rows in which data moves: with one rank there is nothing to predict."""
        return [row for row in self.rows if int(row["transfers"]) > 0]

    def counted(self):
        return [row for row in self.moving() if int(row["bytes"]) >= FROM and self.timed]

    def median(self, column):
        return statistics.median(abs(ratio(row, column) - 1) for row in self.counted())


def ratio(row, column):
    return float(row["measured_us"]) / float(row[column])


def size(text):
    value = int(text)
    for unit, each in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= each and value % each == 0:
            return f"{value // each} {unit}"
    return f"{value} B"


def name(row):
    more = [f"{key.rpartition('.')[2]} {value}" for key, value in row.items()
            if key.startswith("point.") and key.rpartition(".")[2] not in ("bytes", "algorithm", "ranks")]
    if row.get("copy_blocks"):
        more.append(f"{row['copy_blocks']} block{'' if row['copy_blocks'] == '1' else 's'}")
    if row.get("by"):
        more.append(row["by"])
    return ", ".join([row["algorithm"], f"K = {row['ranks']}", *more])


def summary(experiments):
    lines = ["| | rows of 1 MiB or more | simulator | in turn | shared | wrong elements |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for each in experiments:
        of = {model[0] for model in each.models}
        cells = [f"{100 * each.median(column):.1f} %" if column in of and each.counted() else "" for column, _, _ in MODELS]
        lines.append(f"| {each.title} | {len(each.counted())} | {' | '.join(cells)} | {sum(int(row['wrong']) for row in each.rows)} |")
    return "\n".join(lines)


def table(each):
    head = ["", "size", "measured us", "fastest", "slowest", *(f"measured/{title}" for _, title, _ in each.models), "wrong"]
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    for row in each.rows:
        times = [f"{float(row[key]):.1f}" for key in ("measured_us", "measured_min_us", "measured_max_us")]
        ratios = [f"{ratio(row, column):.3f}" if int(row["transfers"]) > 0 and float(row[column]) > 0 else "" for column, _, _ in each.models]
        lines.append(f"| {' | '.join([name(row), size(row['bytes']), *times, *ratios, row['wrong']])} |")
    return "\n".join(lines)


def section(each):
    where = "\n".join(f"    {line}" for line in each.comments)
    return f"## {each.title}\n\n{each.shows}\n\n{where}\n\n{table(each)}\n" if each.rows else \
        f"## {each.title}\n\n{each.shows}\n\nNo results:\n\n{where}\n"


def picture(experiments):
    """A panel an experiment: sizes to the right, measured over predicted upwards, both by powers of 2; a band of 10 %."""
    width, panel, left, right, top = 900, 170, 60, 130, 26
    shown = [each for each in experiments if each.moving() and each.timed]
    height = top + len(shown) * (panel + 40)
    sizes = [math.log2(int(row["bytes"])) for each in shown for row in each.moving()]
    low, high = min(sizes) - 0.5, max(sizes) + 0.5
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for index, each in enumerate(shown):
        begin = top + index * (panel + 40)

        def x(value):
            return left + (width - left - right) * (math.log2(value) - low) / (high - low)

        def y(value):  # from a quarter to four times; values beyond are drawn at the edge
            return begin + panel * (0.5 - max(-2, min(2, math.log2(value))) / 4)

        out.append(f'<text x="{left}" y="{begin - 8}" font-weight="bold">{each.title}: measured / predicted</text>'
                   f'<rect x="{left}" y="{y(1.1):.1f}" width="{width - left - right}" height="{y(1 / 1.1) - y(1.1):.1f}" fill="#e4f0e4"/>')
        for tick in (0.25, 0.5, 1, 2, 4):
            out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{"#444" if tick == 1 else "#ccc"}"/>'
                       f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for power in range(math.ceil(low), math.floor(high) + 1, 2):
            out.append(f'<text x="{x(2 ** power):.1f}" y="{begin + panel + 14}" text-anchor="middle">{size(2 ** power)}</text>')
        for number, (column, title, color) in enumerate(each.models):
            out.append(f'<circle cx="{width - right + 14}" cy="{begin + 10 + 18 * number}" r="3.5" fill="{color}"/>'
                       f'<text x="{width - right + 24}" y="{begin + 14 + 18 * number}">{title}</text>')
            out += [f'<circle cx="{x(int(row["bytes"])) + 5 * (number - 1):.1f}" cy="{y(ratio(row, column)):.1f}" r="2.5" fill="{color}" fill-opacity="0.6"/>'
                    for row in each.moving() if float(row[column]) > 0]
    return "\n".join(out + ["</svg>"]) + "\n"


if len(sys.argv) not in (3, 4) or not sys.argv[2].endswith(".md") or sys.argv[3:] not in ([], ["--check"]):
    sys.exit(__doc__)
folder, page = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
experiments = [Experiment(folder / f"{file}.csv", *about) for file, *about in EXPERIMENTS if (folder / f"{file}.csv").exists()]
if not any(each.moving() for each in experiments):
    fail(f"{folder}: expected results of tools/gpu-all.sh, found none in which something moves")
files = {page.with_suffix(".svg"): picture(experiments), page: f"""# Predicted and measured times on a GPU

`tools/gpu-all.sh` replayed simulated schedules on a real GPU. [The replay guide](../guide/replay.md) explains how this works and what the results mean.
All predictions were made before the replays, using only the output of `ringsim probe`. One prediction comes from the simulator, whose scenario has the link
and addition rates measured by the probe. The other two come from the GPU model (validate/replay/gpu), which includes launch overhead: "in turn" assumes
that copies run one after another, and "shared" assumes that they share the memory bandwidth.

Additions take a large part of the time. A server in host memory spends most of its time on them, and in GPU memory they take as long as the copies.

The table shows the median of |measured/predicted - 1| over all results of 1 MiB or more that move data:

{summary(experiments)}

![Measured time divided by predicted time]({page.with_suffix('.svg').name})

{chr(10).join(section(each) for each in experiments)}"""}
for file, text in files.items():
    if not sys.argv[3:]:
        file.write_text(text)
    elif file.read_text() != text:
        fail(f"{file} is not what {folder} gives now; run it again without --check and read the difference")
for each in experiments:
    if each.counted():
        print(f"{each.path.name}: |error| in the median of {len(each.counted())} results: " +
              ", ".join(f"{title} {100 * each.median(column):.1f} %" for column, title, _ in each.models))
    else:
        print(f"{each.path.name}: no result of 1 MiB or more in which something moves, or none whose times count")
