#!/usr/bin/env python3
"""Compares ringsim with SimGrid: the same collective on the same platform, what each predicts and what it takes.

  tools/bench/side_by_side.py                  all cases but the large ones
  tools/bench/side_by_side.py --large          those too (SimGrid takes minutes)
  tools/bench/side_by_side.py ring/256 ...     some
  tools/bench/side_by_side.py --smpi           SimGrid's SMPI as well as its S4U

Both get the textbooks' network: links of 10 GB/s and 1 us, each direction by itself, max-min fair. SimGrid: model CM02
without its factors, without interference between the directions, without TCP's window (its defaults predict something
else). ringsim: protocol none, model fair, every rank simulated (--no-fold). Wall time and memory (GNU
time's) are those of whole processes: start, platform, ringsim's proof, simulation. Messages a second
and the last column, a message's time in SimGrid over that in ringsim, are of processor time, which other work on the
machine disturbs least; of ringsim the best of three.
"""

import argparse
import json
import pathlib
import random
import resource
import shutil
import subprocess
import tempfile
import time
import typing

import once

HERE = pathlib.Path(__file__).resolve().parent
RATE, LATENCY = 10_000_000_000, 1  # bytes per second, microseconds; of every link to a host
HOSTS_A_LEAF, TRUNK = 16, 4 * RATE  # 4:1

MODEL = ["network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/latency-factor:1",
         "network/bandwidth-factor:1", "network/weight-S:0", "surf/precision:1e-12"]
SPEED = ["contexts/guard-size:0", "contexts/stack-size:128"]  # what makes SimGrid fastest: raw contexts are its default
SMPI = ["smpi/simulate-computation:no", "smpi/send-is-detached-thresh:0", "smpi/host-speed:1f", "smpi/wtime:0"]


class Case:
    """`kind` ring or all_to_all, of n ranks on a star; or on leaves of 16 with one trunk each, ranks dealt out at random."""

    def __init__(self, name, kind, n, size, leaves=0, large=False):
        self.name, self.kind, self.n, self.size, self.leaves, self.large = name, kind, n, size, leaves, large
        self.hosts = list(range(n))
        if leaves:
            random.Random(1).shuffle(self.hosts)
        self.transfers = 2 * (n - 1) * n if kind == "ring" else (n - 1) * n


class Taken(typing.NamedTuple):
    wall: float  # seconds, from start to end
    cpu: float  # seconds of the processor
    memory: float  # MiB at most


MIB = 1 << 20
CASES = [Case(f"ring/{n}", "ring", n, n * MIB, large=n > 1024) for n in (16, 256, 1024, 2048)]
CASES += [Case(f"all_to_all/{n}", "all_to_all", n, n * MIB, large=n > 128) for n in (16, 64, 128, 256)]
CASES += [Case(f"trunks/{n}", "ring", n, n * MIB, leaves=n // HOSTS_A_LEAF, large=n > 256) for n in (64, 256, 512)]


def platform(case):
    """SimGrid's, as XML."""
    def cluster(name, hosts):
        return (f'<cluster id="{name}" prefix="gpu" suffix="" radical="{",".join(map(str, hosts))}" speed="1Gf" '
                f'bw="{RATE}Bps" lat="{LATENCY}us" router_id="{name}_router"/>')
    lines = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
             '<platform version="4.1">']
    if not case.leaves:
        return "\n".join([*lines, cluster("star", range(case.n)), "</platform>"])
    leaves = range(case.leaves)
    lines.append('<zone id="world" routing="Full">')
    for leaf in leaves:
        lines.append(cluster(f"leaf{leaf}", range(leaf * HOSTS_A_LEAF, (leaf + 1) * HOSTS_A_LEAF)))
    for leaf in leaves:
        lines.append(f'<link id="trunk{leaf}" bandwidth="{TRUNK}Bps" latency="{LATENCY}us" sharing_policy="SPLITDUPLEX"/>')
    for here in leaves:
        for there in leaves:
            if here != there:
                lines.append(f'<zoneRoute src="leaf{here}" dst="leaf{there}" gw_src="leaf{here}_router" '
                             f'gw_dst="leaf{there}_router" symmetrical="NO"><link_ctn id="trunk{here}" direction="UP"/>'
                             f'<link_ctn id="trunk{there}" direction="DOWN"/></zoneRoute>')
    return "\n".join([*lines, "</zone>", "</platform>"])


def scenario(case):
    """ringsim's, as a graph: its gpus are the ranks, in the order listed."""
    def cable(low, high, rate):
        return {"from": low, "to": high, "bandwidth": f"{rate} B/s", "latency": f"{LATENCY} us"}
    if case.leaves:
        switches = [f"leaf{leaf}" for leaf in range(case.leaves)] + ["spine0"]
        links = [cable(f"gpu{h}", f"leaf{h // HOSTS_A_LEAF}", RATE) for h in range(case.n)]
        links += [cable(f"leaf{leaf}", "spine0", TRUNK) for leaf in range(case.leaves)]
        nodes = [{"name": f"gpu{h}", "kind": "gpu"} for h in case.hosts]
        topology = {"kind": "graph", "nodes": nodes + [{"name": s, "kind": "switch"} for s in switches], "links": links}
    else:
        topology = {"kind": "star", "ranks": case.n, "link": {"bandwidth": f"{RATE} B/s", "latency": f"{LATENCY} us"}}
    op, algorithm = ("all_reduce", "ring") if case.kind == "ring" else ("all_to_all", "direct")
    return json.dumps({"version": 1, "topology": topology,
                       "collective": {"op": op, "algorithm": algorithm, "bytes": f"{case.size} B"}})


def timed(command):
    """What the command printed, and what it took."""
    with tempfile.NamedTemporaryFile("r") as memory:
        before, start = cpu_seconds(), time.perf_counter()
        done = subprocess.run(["/usr/bin/time", "-f", "%M", "-o", memory.name, *command], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            once.stop(f"{' '.join(map(str, command))} failed with status {done.returncode}\n{done.stderr}", 4)
        return done.stdout, Taken(time.perf_counter() - start, cpu_seconds() - before, int(memory.read()) / 1024)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def simgrid(case, tool, build, folder):
    """Predicted seconds, and what it took."""
    (folder / "platform.xml").write_text(platform(case))
    (folder / "hosts").write_text("".join(f"gpu{h}\n" for h in case.hosts))
    settings = [f"--cfg={setting}" for setting in MODEL + SPEED + (SMPI if tool == "smpi" else [])] + ["--log=root.thres:error"]
    where = [folder / "platform.xml", folder / "hosts"]
    if tool == "s4u":
        command = [build / "collectives_s4u", *where, case.kind, str(case.size), *settings]
    else:
        command = ["smpirun", "-np", str(case.n), "-no-privatize", "-platform", where[0], "-hostfile", where[1],
                   *settings, build / "collectives_smpi", case.kind, str(case.size)]
    out, taken = timed(command)
    return float(out.split()[-1]), taken


def ringsim(case, program, folder):
    (folder / "scenario.json").write_text(scenario(case))
    out, taken = timed([program, "run", folder / "scenario.json", "--no-fold", "--format", "json"])
    result = json.loads(out)["results"][0]
    if result["transfers"] != case.transfers:
        once.stop(f"{case.name}: expected {case.transfers} transfers, ringsim made {result['transfers']}", 4)
    return result["time_us"] / 1e6, taken


def compiled(tool, build):
    compiler = ["g++", "-std=c++20"] if tool == "s4u" else ["smpicxx"]
    source, target = HERE / "simgrid" / f"collectives_{tool}.cpp", build / f"collectives_{tool}"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        subprocess.run([*compiler, "-O2", "-o", target, source, *(["-lsimgrid"] if tool == "s4u" else [])], check=True)


def difference(one, other):
    return "0" if one == other else f"{abs(one / other - 1):.0e}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("case", nargs="*", help=f"default: all; {', '.join(case.name for case in CASES)}")
    arguments.add_argument("--large", action="store_true", help="the large ones too")
    arguments.add_argument("--smpi", action="store_true", help="SMPI as well as S4U")
    arguments.add_argument("--build", default=once.BUILD, type=pathlib.Path, help="build folder (default: build)")
    chosen = arguments.parse_args()
    unknown = set(chosen.case) - {case.name for case in CASES}
    if unknown:
        arguments.error(f"no such case: {', '.join(sorted(unknown))}")
    if not pathlib.Path("/usr/include/simgrid/s4u.hpp").exists() or not shutil.which("smpirun"):
        once.stop("SimGrid is missing\n  hint: apt-get install libsimgrid-dev  (Debian 12 has 3.32)", 5)
    if not pathlib.Path("/usr/bin/time").exists():
        once.stop("GNU time is missing\n  hint: apt-get install time", 5)
    program = chosen.build / "tools" / "ringsim"
    if not program.exists():
        once.stop(f"{program} is missing\n  hint: tools/build.sh", 5)
    build = chosen.build / "tools" / "bench" / "simgrid"
    build.mkdir(parents=True, exist_ok=True)
    tools = ["s4u", "smpi"] if chosen.smpi else ["s4u"]
    for tool in tools:
        compiled(tool, build)

    print(f"{'':30}{'predicted us':^42}{'wall s':^18}{'processor s':^18}{'messages/s':^24}{'peak MiB':^16}{'times':>6}")
    print(f"{'case':16}{'p MiB':>6}{'SimGrid':>8}{'ringsim':>16}{'SimGrid':>17}{'differ':>9}"
          + f"{'ringsim':>9}{'SimGrid':>9}" * 2 + f"{'ringsim':>12}{'SimGrid':>12}{'ringsim':>8}{'SimGrid':>8}{'faster':>7}")
    for case in CASES:
        if case.name not in chosen.case if chosen.case else case.large and not chosen.large:
            continue
        with tempfile.TemporaryDirectory() as folder:
            runs = [ringsim(case, program, pathlib.Path(folder)) for _ in range(3)]
            ours, mine = min(runs, key=lambda one: one[1].cpu)
            for tool in tools:
                theirs, taken = simgrid(case, tool, build, pathlib.Path(folder))
                print(f"{case.name:16}{case.size // MIB:>6}{tool:>8}{ours * 1e6:>16.6f}{theirs * 1e6:>17.6f}"
                      f"{difference(ours, theirs):>9}{mine.wall:>9.3f}{taken.wall:>9.2f}{mine.cpu:>9.3f}{taken.cpu:>9.2f}"
                      f"{case.transfers / mine.cpu:>12,.0f}{case.transfers / taken.cpu:>12,.0f}{mine.memory:>8.0f}"
                      f"{taken.memory:>8.0f}{taken.cpu / mine.cpu:>7.1f}", flush=True)


if __name__ == "__main__":
    main()
