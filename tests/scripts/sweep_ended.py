#!/usr/bin/env python3
"""Sweeps that are ended: killed, interrupted, out of disk; and sweeps under mpirun. What is left must be whole, and after
--resume it must equal the uninterrupted sweep's, byte for byte.

Usage: sweep_ended.py RINGSIM SCENARIO [--mpi] [--kills N] [--seed N]
Kills the sweep of SCENARIO N times at random moments. With --mpi the same under mpirun, one worker killed.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from processes import children

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"]


def fail(what):
    sys.exit(f"sweep_ended: FAILED: {what}")


def run(command, expect=0, **more):
    done = subprocess.run(command, text=True, capture_output=True, **more)
    if done.returncode != expect:
        fail(f"{' '.join(map(str, command))}: exit code {done.returncode}, expected {expect}\n{done.stderr}")
    return done


def check_whole_lines(path):
    """Every line but a last one that is torn is a result."""
    text = path.read_bytes() if path.exists() else b""
    for line in text.split(b"\n")[:-1]:
        json.loads(line)
    return text.count(b"\n")


class Test:
    def __init__(self, arguments, folder):
        self.ringsim, self.scenario, self.folder = arguments.ringsim, arguments.scenario, folder
        self.sweep = [self.ringsim, "sweep", self.scenario, "-j", "2"]
        self.whole = folder / "whole.jsonl"
        self.merged = {}
        started = time.monotonic()
        run([*self.sweep, "-o", self.whole])
        self.seconds = time.monotonic() - started
        self.n_points = check_whole_lines(self.whole)
        for ending in ("jsonl", "csv"):
            self.merged[ending] = self.merge([self.whole], ending)

    def merge(self, files, ending):
        out = self.folder / f"merged.{ending}"
        run([self.ringsim, "merge", *files, "-o", out])
        return out.read_bytes()

    def check_equal(self, files, what):
        for ending, expected in self.merged.items():
            if self.merge(files, ending) != expected:
                fail(f"{what}: the merged {ending} is not the uninterrupted sweep's")

    def killed(self, n_kills, seed):
        """SIGKILL at moments spread over the sweep's length; the rest by one last --resume."""
        chance = random.Random(seed)
        out = self.folder / "killed.jsonl"
        lines, cut_short = [], 0
        for _ in range(n_kills):
            process = subprocess.Popen([*self.sweep, "-o", out, "--resume"], stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.02, max(0.05, 1.8 * self.seconds / n_kills)))
            process.kill()
            cut_short += process.wait() == -signal.SIGKILL
            lines.append(check_whole_lines(out))
        if cut_short == 0:
            fail("no kill came before the sweep's end")
        if lines != sorted(lines):
            fail(f"rows were lost between kills: {lines}")
        whole = out.read_bytes() if out.exists() else b""  # on a busy machine every kill may come before the file
        torn = whole + b'{"ringsim":{"vers'
        out.write_bytes(torn)  # as a machine that lost power leaves it
        run([*self.sweep, "-o", out, "--resume"])
        if out.read_bytes() != self.whole.read_bytes():
            fail("the resumed file is not the uninterrupted sweep's")
        self.check_equal([out], "killed and resumed")
        print(f"killed {n_kills} times ({cut_short} before its end) with {lines} of {self.n_points} rows: equal")

    def interrupted(self):
        """Ctrl-C: exit code 130, whole lines, and --resume goes on."""
        out = self.folder / "interrupted.jsonl"
        process = subprocess.Popen([*self.sweep, "-o", out], stderr=subprocess.PIPE, text=True)
        while check_whole_lines(out) < self.n_points // 10 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        if process.returncode != 130 or "use --resume to finish the rest" not in said:
            fail(f"Ctrl-C: exit code {process.returncode}, expected 130\n{said}")
        if not out.read_bytes().endswith(b"\n"):
            fail("Ctrl-C left a line that is not whole")
        n = check_whole_lines(out)
        if f"{n} of {self.n_points} points done" not in said:
            fail(f"Ctrl-C left {n} rows, and said {said}")
        run([*self.sweep, "-o", out, "--resume"])
        self.check_equal([out], "interrupted and resumed")
        print(f"interrupted with {n} rows, exit code 130: equal")

    def out_of_disk(self):
        """A file that may not grow further stands for a full disk: a clear error, whole lines, and --resume goes on."""
        out = self.folder / "full.jsonl"
        limit = self.whole.stat().st_size // 3 // 1024  # KiB, as bash counts
        limited = ["bash", "-c", f'trap "" XFSZ; ulimit -f {limit}; exec "$@"', "bash", *self.sweep, "-o", out]
        said = run(limited, expect=5).stderr
        if f"{out}: cannot be written: File too large" not in said:
            fail(f"out of disk: {said}")
        if not out.read_bytes().endswith(b"\n"):
            fail("out of disk left a line that is not whole")
        n = check_whole_lines(out)
        run([*self.sweep, "-o", out, "--resume"])
        self.check_equal([out], "out of disk and resumed")
        print(f"out of disk with {n} rows, exit code 5: equal")

    def two_at_once(self):
        out = self.folder / "two.jsonl"
        first = subprocess.Popen([*self.sweep, "-o", out])
        while not out.exists() and first.poll() is None:
            time.sleep(0.005)
        second = subprocess.run([*self.sweep, "-o", out, "--resume"], text=True, capture_output=True)
        running = first.poll() is None
        if first.wait() != 0:
            fail("the first of two sweeps into one file failed")
        if running and (second.returncode != 5 or "another sweep is writing to it" not in second.stderr):
            fail(f"the second of two sweeps: exit code {second.returncode}\n{second.stderr}")
        self.check_equal([out], "two sweeps at once")
        print("two sweeps into one file: the second is refused, the first equal" if running else "two sweeps: one was over")

    def taken_away(self):
        """Another file takes the place of the one into which a sweep writes: an error, and the other file stays."""
        out, other = self.folder / "taken.jsonl", self.folder / "other"
        process = subprocess.Popen([*self.sweep, "-o", out], stderr=subprocess.PIPE, text=True)
        while check_whole_lines(out) < self.n_points // 10 and process.poll() is None:
            time.sleep(0.01)
        other.write_text("another\n")
        other.rename(out)
        _, said = process.communicate()
        if process.returncode != 5 or "removed or replaced the file" not in said:
            fail(f"a file that was taken away: exit code {process.returncode}, expected 5\n{said}")
        if out.read_text() != "another\n":
            fail("a file that took the place of a sweep's was changed")
        print("another file in its place: exit code 5")

    def shards(self, n):
        files = []
        for i in range(1, n + 1):
            files.append(self.folder / f"shard{i}.jsonl")
            run([*self.sweep, "-o", files[-1], "--shard", f"{i}/{n}"])
        if sum(map(check_whole_lines, files)) != self.n_points:
            fail("shards overlap, or lack points")
        self.check_equal(files, "shards")
        print(f"{n} shards: equal")

    def mpi(self):
        sweep = [*MPIRUN, self.ringsim, "sweep", self.scenario]
        out = self.folder / "mpi.jsonl"
        run([*sweep, "-o", out])
        self.check_equal([out], "mpirun")
        print("mpirun -n 3: equal")
        said = run([*sweep[:-1], "/no/such/scenario.json"], expect=3).stderr
        if said.count("ringsim: error: ") != 1:
            fail(f"mpirun, without a scenario: one process should say so:\n{said}")
        out = self.folder / "mpi_killed.jsonl"
        process = subprocess.Popen([*sweep, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while check_whole_lines(out) < self.n_points // 10 and process.poll() is None:
            time.sleep(0.01)
        workers = [pid for pid in children(process.pid) if environment(pid).get("OMPI_COMM_WORLD_RANK") == "2"]
        if not workers:
            fail("mpirun has no second worker")
        os.kill(workers[0], signal.SIGKILL)
        if process.wait() == 0:
            fail("mpirun ended well though a worker was killed")
        n = check_whole_lines(out)
        run([*self.sweep, "-o", out, "--resume"])
        self.check_equal([out], "mpirun with a worker killed, and resumed")
        print(f"mpirun -n 3 with one worker killed at {n} rows, and resumed: equal")


def environment(pid):
    text = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ringsim")
    parser.add_argument("scenario")
    parser.add_argument("--mpi", action="store_true")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ringsim-sweep-"))
    try:
        test = Test(arguments, folder)
        print(f"{test.n_points} points in {test.seconds:.1f} s")
        if arguments.mpi:
            test.mpi()
        else:
            test.killed(arguments.kills, arguments.seed)
            test.interrupted()
            test.out_of_disk()
            test.two_at_once()
            test.taken_away()
            test.shards(4)
    finally:
        shutil.rmtree(folder)


main()
