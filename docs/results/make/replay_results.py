#!/usr/bin/env python3
"""Replays all lab cases, and writes docs/results/replay-results.md and docs/pictures/replay-results.svg: predicted against measured.

Usage: sudo docs/results/make/replay_results.py path/to/ringsim      five minutes; needs what `ringsim lab` needs
"""
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[3]
REPEATS = 7


class Case:
    """One call of `ringsim lab run`, or of a command like it."""

    called = "ringsim lab run"

    def __init__(self, title, scenario, *arguments):
        self.title, self.scenario, self.arguments = title, scenario, arguments
        command = [*self.program(), str(root / f"scenarios/examples/replay/{scenario}.json"), *arguments, "--repeats", str(REPEATS),
                   "--format", "json"]
        print(" ".join(command), flush=True)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"docs/results/make/replay_results.py: exit {done.returncode}\n{done.stderr}")
        self.load = os.getloadavg()[0]
        self.rows = [(self.name(row), row) for row in json.loads(done.stdout)["results"]]

    def program(self):
        return [sys.argv[1], "lab", "run"]

    def name(self, row):
        if "job" in row:
            ends = [words["ranks"] for words in self.flows() if words["name"] == row["job"]]
            flow = f"{ends[0][0]} to {ends[0][1]}, {row['bytes'] >> 20} MiB"
            trunk = row.get("point", {}).get("topology.links.8.bandwidth")
            return flow + (f", trunk {trunk}" if trunk else "")
        fault = row.get("point", {}).get("faults")
        what = f"{row['algorithm']}, K = {row['ranks']}, {row['bytes'] >> 20} MiB"
        if fault:
            what += f", halved between {fault[0]['at']} and {fault[0]['until']}" if "until" in fault[0] else f", halved after {fault[0]['at']}"
        return what

    def flows(self):
        text = (root / f"scenarios/examples/replay/{self.scenario}.json").read_text()
        document = json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))
        return [{"name": "main", "ranks": document["collective"]["ranks"]}] + [
            {"name": job["name"], "ranks": job["collective"]["ranks"]} for job in document["jobs"]]


class MpiCase(Case):
    called = "tools/mpi-in-lab.sh build/tools/ringsim"

    def program(self):
        return [str(root / "tools/mpi-in-lab.sh"), sys.argv[1]]


def ratio(row, key="measured_us"):
    return row[key] / row["time_us"]


def table(case):
    lines = ["| | predicted ms | measured ms | fastest | slowest | measured/predicted | wrong elements |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name, row in case.rows:
        ms = [f"{row[key] / 1e3:.1f}" for key in ("time_us", "measured_us", "measured_min_us", "measured_max_us")]
        lines.append(f"| {name} | {' | '.join(ms)} | {ratio(row):.3f} | {row['wrong']} |")
    return "\n".join(lines)


def section(case):
    command = " ".join(f"'{word}'" if " " in word or "[" in word else word for word in case.arguments)
    return f"## {case.title}\n\nThese are the results of `{case.called} scenarios/examples/replay/{case.scenario}.json {command}`. " \
           f"The load average at the end was {case.load:.1f}.\n\n{table(case)}\n".replace(".json `", ".json`")


def picture(cases):
    """A row a result: a dot at measured/predicted, a line from the fastest run to the slowest, a band of 5 %."""
    width, left, line, top = 900, 330, 17, 40
    rows, height = [], top
    for case in cases:
        height += 12
        rows.append((height, case.title, None))
        for name, row in case.rows:
            height += line
            rows.append((height, name, row))
        height += line
    low = 0.85
    high = max(1.15, *(ratio(row, "measured_max_us") for case in cases for _, row in case.rows)) * 1.02

    def x(value):
        return left + (width - left - 20) * (value - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 10}" font-family="sans-serif" '
           'font-size="11">', f'<rect width="{width}" height="{height + 10}" fill="white"/>',
           f'<rect x="{x(0.95):.1f}" y="{top}" width="{x(1.05) - x(0.95):.1f}" height="{height - top}" fill="#e4f0e4"/>']
    for tick in [0.9 + 0.1 * i for i in range(round((high - 0.9) / 0.1) + 1)]:
        if tick > high:
            break
        color = "#444" if abs(tick - 1) < 1e-9 else "#ccc"
        out.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{height}" stroke="{color}"/>'
                   f'<text x="{x(tick):.1f}" y="{top - 6}" text-anchor="middle">{tick:.1f}</text>')
    out.append(f'<text x="{x(1):.1f}" y="16" text-anchor="middle" font-weight="bold">measured / predicted: median, '
               f'fastest to slowest of {REPEATS} runs; the band is 5 %</text>')
    for y, name, row in rows:
        if row is None:
            out.append(f'<text x="8" y="{y + 4}" font-weight="bold">{name}</text>')
            continue
        out.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{name}</text>'
                   f'<line x1="{x(ratio(row, "measured_min_us")):.1f}" x2="{x(ratio(row, "measured_max_us")):.1f}" '
                   f'y1="{y}" y2="{y}" stroke="#1f5fa8" stroke-width="2"/>'
                   f'<circle cx="{x(ratio(row)):.1f}" cy="{y}" r="3.5" fill="#1f5fa8"/>')
    return "\n".join(out + ["</svg>"]) + "\n"


def worst(cases):
    return max((abs(1 - ratio(row)), f"{name} ({case.title.lower()})") for case in cases for name, row in case.rows)


sizes = 'collective.bytes=["8 MiB", "16 MiB"]'
collectives = [Case("All-reduce, 4 ranks", "replay-star", "--set", sizes),
               Case("All-reduce, 8 ranks", "replay-star", "--set", "topology.ranks=8", "--set", sizes)]
flows = [Case("Seven flows into one port", "lab-seven-flows"),
         Case("Four flows over a trunk with 4:1 oversubscription", "lab-trunk"),
         Case("A local flow and a trunk with 4:1 and 2:1 oversubscription", "lab-trunk-local")]
degraded = [Case("A ring with one link at half speed", "lab-link-degraded")]
fifo = [Case("Seven flows into a port with a single queue and unlimited windows", "lab-seven-flows", "--fifo", "--window", "free")]
mpi = [MpiCase("All-reduce with Open MPI, 4 ranks", "replay-star", "--set", sizes)]
shown = collectives + flows + degraded
off, which = worst(shown)
departs = max(fifo[0].rows, key=lambda named: ratio(named[1]))
wrong = sum(row["wrong"] for case in shown + mpi + fifo for _, row in case.rows)
within = sum(abs(1 - ratio(row)) <= 0.05 for case in shown for _, row in case.rows)
n = sum(len(case.rows) for case in shown)
loads = [case.load for case in shown + mpi + fifo]

(root / "docs/pictures/replay-results.svg").write_text(picture(shown + mpi + fifo))
(root / "docs/results/replay-results.md").write_text(f"""# Predicted and measured times in the lab

The replays send real data over real TCP connections, in network namespaces on a single machine. [The replay guide](../guide/replay.md) explains how this
works and what the results mean. All predictions were made before the replays, using only the scenarios. The script
`docs/results/make/replay_results.py build/tools/ringsim` generated this page on {datetime.date.today():%Y-%m-%d}, on Linux {platform.release().split("-")[0]} with {os.cpu_count()} processors that were shared with other
work (load average {min(loads):.1f} to {max(loads):.1f}). Times are medians of {REPEATS} runs after 2 warm-up runs. Ports have a payload rate of 200 Mb/s.

**Over ringsim's own sockets, {within} of {n} medians are within 5 % of the predictions of model `fair`. The largest error is {100 * off:.1f} %, for {which}. The results contain {wrong} wrong elements.**
If a port has a single queue and TCP windows are not limited, TCP is not max-min fair. The largest deviation is in the flow {departs[0]}, which takes {ratio(departs[1]):.2f} times as long
as predicted.

For results on a GPU, see [gpu-results](gpu-results.md).

![Measured time divided by predicted time](../pictures/replay-results.svg)

{chr(10).join(section(case) for case in shown)}
{section(mpi[0])}
These times include the overhead of Open MPI's own protocols and progress engine. ringsim does not configure Open MPI's sockets, so the 5 % limit does not apply.

{section(fifo[0])}
A sender with more data in flight fills a larger part of the queue and gets a larger share of the port's bandwidth, so long flows delay short ones. The total
time of all seven flows is as predicted, because the port is never idle.
""")
print(f"{within} of {n} within 5 %; the farthest {100 * off:.1f} %: {which}; load {min(loads):.1f} to {max(loads):.1f}")
