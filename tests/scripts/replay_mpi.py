#!/usr/bin/env python3
"""Replays under mpirun: every algorithm of the catalog that needs no switch to add, over 2 to 8 ranks, right to the
bit; and how they end that cannot end well.

Usage: tests/scripts/replay_mpi.py RINGSIM [--ranks K...]
"""
import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from processes import children, wait_until_at_work

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
# What an algorithm cannot do without.
SETTINGS = {"hierarchical": {"group": 2}}
LONG = ["--set", 'collective.bytes="64 MiB"', "--set", 'collective.algorithm="ring"', "--repeats", "1000"]


def fail(what):
    sys.exit(f"replay_mpi: FAILED: {what}")


def run(command, expect=0):
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True)
    if done.returncode != expect:
        fail(f"{' '.join(map(str, command))}: exit code {done.returncode}, expected {expect}\n{done.stderr}")
    return done


class Test:
    def __init__(self, ringsim, folder):
        self.ringsim, self.scenario = ringsim, folder / "star.json"
        self.scenario.write_text(json.dumps({
            "version": 1, "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
            "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}}))

    def replay(self, processes, *arguments):
        return [*MPIRUN, processes, self.ringsim, "replay", self.scenario, "--backend", "mpi", *arguments]

    def catalog(self):
        """(algorithm, collective) of all that `ringsim list algorithms` has."""
        listed = json.loads(run([self.ringsim, "list", "algorithms", "--format", "json"]).stdout)
        for algorithm in listed["algorithms"]:
            if algorithm["name"] not in ("in_switch", "file"):
                yield from ((algorithm["name"], op) for op in algorithm["collectives"])

    def served(self, op, settings, all_ranks):
        """[setting as JSON] the ranks that it serves: of a sweep over all of them the points without an error."""
        rows = self.scenario.with_name(f"{op}.jsonl")
        subprocess.run([self.ringsim, "sweep", self.scenario, *self.choose(op, settings, all_ranks), "-o", rows],
                       capture_output=True)
        served = {json.dumps(setting): [] for setting in settings}
        for row in map(json.loads, rows.read_text().splitlines()):
            if "error" not in row:
                point = row["point"]
                served[json.dumps(point.get("collective.algorithm", settings[0]))].append(
                    point.get("topology.ranks", all_ranks[0]))
        return served

    def every_algorithm(self, all_ranks):
        """Those that serve the same ranks in one mpirun; more processes than some of them have actors."""
        by_op, together = {}, {}
        for name, op in self.catalog():
            by_op.setdefault(op, []).append({"name": name, **SETTINGS[name]} if name in SETTINGS else name)
        for op, settings in by_op.items():
            for setting, ranks in self.served(op, settings, all_ranks).items():
                if not ranks:
                    fail(f"{setting} serves {op} of none of {all_ranks} ranks")
                together.setdefault((op, tuple(sorted(ranks))), []).append(json.loads(setting))
        names = {name for name, _ in self.catalog()}
        rows = 0
        for (op, ranks), settings in together.items():
            text = run(self.replay(max(ranks) + 1, "--repeats", "2", "--warmups", "1", "--format", "jsonl",
                                   *self.choose(op, settings, ranks))).stdout
            for row in map(json.loads, filter(None, text.splitlines())):
                rows += 1
                if row["wrong"] != 0 or row["measured_us"] <= 0:
                    fail(f"{op} {settings}: {row}")
        print(f"{len(names)} algorithms, {rows} replays: all right to the bit")

    @staticmethod
    def choose(op, settings, ranks):
        # 841 elements: 29 * 29, so that no number of ranks divides them.
        size = "0 B" if op == "barrier" else "3364 B"
        return ["--set", f'collective.op="{op}"', "--set", f"collective.algorithm={json.dumps(settings)}", "--set",
                f"topology.ranks={json.dumps(list(ranks))}", "--set", f'collective.bytes="{size}"']

    def training(self):
        scenarios = pathlib.Path(__file__).resolve().parents[2] / "scenarios/examples/replay"
        for name in ("replay-ddp.json", "replay-server.json"):  # 4 processes each
            text = run([*MPIRUN, 5, self.ringsim, "replay", scenarios / name, "--backend", "mpi", "--repeats", "2",
                        "--warmups", "1", "--format", "jsonl"]).stdout
            row = json.loads(text)
            # 2^18 elements and 3 runs; how many times each is compared, tests/replay/program_replay_test.cpp says.
            if row["wrong"] != 0 or row["checked"] != 3 * 2**18 * 20 or row["measured_us"] < row["split_us"]["compute"]:
                fail(f"{name}: {row}")
        print("training steps: all right to the bit")

    def says(self, command, code, words):
        """Once, whatever the number of processes."""
        said = run(command, code).stderr
        if said.count("ringsim: error: ") != 1 or words not in said:
            fail(f"{command}: expected one error, of {words!r}, found\n{said}")

    def ends(self):
        self.says(self.replay(3), 3, "expected 4 processes or more, found 3")
        self.says(self.replay(4, "--set", "collective.bytes=1"), 3, "collective.bytes")
        self.says(self.replay(4, "--set", "topology.rank=4"), 3, "rank")
        self.says(self.replay(4, "-o", "/dev/full"), 5, "No space left")
        self.says(self.replay(4, "-o", self.scenario), 3, "star.json")
        self.says(self.replay(4, "--hosts", "x", "--rank", "0"), 2, "--hosts")
        self.says(self.replay(1)[5:], 3, "expected to be started by MPI")
        print("mistakes: each told once")
        said = run(self.replay(4, *LONG, "--timeout", "1ms"), 5).stderr
        if "within 0.001 s" not in said:
            fail(f"a time-out should be told:\n{said}")
        for number, what in ((signal.SIGKILL, "a process killed"), (signal.SIGINT, "Ctrl-C")):
            self.ended(number)
            print(f"{what}: mpirun ends, and nobody is left")

    def ended(self, number):
        process = subprocess.Popen(list(map(str, self.replay(4, *LONG))), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while len(workers := children(process.pid)) < 4 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        if process.poll() is not None or len(workers) < 4:
            fail("a long replay was over at once")
        wait_until_at_work(workers)
        if number == signal.SIGKILL:
            pathlib.Path(f"/proc/{workers[1]}").exists() or fail("no second process")
            subprocess.run(["kill", "-9", str(workers[1])], check=True)
        else:
            process.send_signal(number)
        try:
            if process.wait(timeout=30) == 0:
                fail("a replay that was ended ended well")
        except subprocess.TimeoutExpired:
            process.kill()
            fail("mpirun did not end")
        until = time.monotonic() + 5
        while left := [pid for pid in workers if is_running(pid)]:
            if time.monotonic() > until:
                fail(f"processes are left: {left}")
            time.sleep(0.05)


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ringsim")
    parser.add_argument("--ranks", type=int, nargs="+", default=list(range(2, 9)))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(arguments.ringsim, pathlib.Path(folder))
        test.every_algorithm(arguments.ranks)
        test.training()
        test.ends()


main()
