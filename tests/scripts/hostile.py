#!/usr/bin/env python3
"""Commands in surroundings that fail them: full disks, closed outputs, signals, files that they may not touch. Each ends with
its exit code and one message, and leaves what was there, or something whole. Sweeps that are killed and resumed are in
sweep_ended.py, replays in replay_ended.py and replay_hostile.py.

Usage: hostile.py RINGSIM [--only WORD]
What this machine does not allow (mounting a file system, becoming another user) is left out, with a word.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from processes import children, processor_seconds, wait_until, wait_until_at_work

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAR = ROOT / "scenarios/examples/replay/replay-star.json"
SWEEP = ROOT / "tests/data/sweep-of-tests.json"
ONE = [STAR, "--set", "collective.algorithm=ring"]
NOBODY = 65534
LIMIT = 30  # seconds for a command, which takes a few at most
skipped = []


class Wrong(Exception):
    pass


class Place:
    """A folder for one case, and the commands that it runs there."""

    def __init__(self, ringsim, folder):
        self.ringsim, self.folder = ringsim, folder
        self.long = folder / "long.json"  # takes minutes
        self.long.write_text(json.dumps({
            "version": 1, "name": "long", "topology": {"kind": "star", "ranks": 48, "link": {
                "bandwidth": "1 GB/s", "latency": "1 us"}}, "network": {"model": "packet"}, "collective": {
                    "op": "all_reduce", "algorithm": ["ring", "direct"], "bytes": "1 GiB"}}))
        self.wide = folder / "wide.json"  # a bound, and rings, of 2400 GPUs: one computation of many seconds
        self.wide.write_text(json.dumps({
            "version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 300, "fabric": {
                "kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}}, "collective": {
                    "op": "all_reduce", "algorithm": "ring", "bytes": "1 GiB"}}))
        self.long_one = [self.long, "--set", "collective.algorithm=ring"]
        self.measured = folder / "measured.csv"
        self.measured.write_text("# collective: all_reduce\nbytes,time_us\n" + "".join(f"{i << 28},{i * 500000}\n" for i in range(1, 7)))
        self.short = folder / "short.json"  # milliseconds, endlessly often
        self.short.write_text(json.dumps({
            "version": 1, "name": "short", "topology": {"kind": "star", "ranks": 3, "link": {
                "bandwidth": "1 GB/s", "latency": "0 us"}}, "collective": {
                    "op": "all_reduce", "algorithm": "ring", "bytes": "4 MiB"}}))

    def run(self, *arguments, code, says=(), wrap=(), **more):
        """Checks its exit code, and that it says all of that on stderr."""
        command = [*wrap, self.ringsim, *arguments]
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        more.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run([str(word) for word in command], timeout=LIMIT, cwd=self.folder, **more)
        self.check(command, done.returncode, (done.stderr or b"").decode(errors="replace"), code, says)
        return done.stdout

    def check(self, command, found, err, code, says):
        shown = " ".join(map(str, command))
        if found != code:
            raise Wrong(f"{shown}: exit code {found}, expected {code}: {err}")
        for text in says:
            if text not in err:
                raise Wrong(f"{shown}: does not say \"{text}\": {err}")
        if err.count("ringsim: error:") > 1 or "please report" in err:
            raise Wrong(f"{shown}: says {err}")

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())


# Commands that print a lot or a little, and those that write a file by -o.
PRINTS = {
    "run": ["run", STAR], "run csv": ["run", STAR, "--format", "csv"], "run json": ["run", STAR, "--format", "json"],
    "run jsonl": ["run", STAR, "--format", "jsonl"], "sweep": ["sweep", SWEEP, "-j", "2"], "check": ["check", STAR, "-v"],
    "bound": ["bound", *ONE], "explain": ["explain", *ONE], "diff": ["diff", STAR, STAR, "--set",
                                                                       "collective.algorithm=ring"],
    "crossover": ["crossover", STAR], "list": ["list"], "list columns": ["list", "columns"], "schema": ["schema"],
    "topology show": ["topology", "show", *ONE], "topology export": ["topology", "export", *ONE, "--to", "dot"],
    "schedule show": ["schedule", "show", *ONE], "schedule check": ["schedule", "check", STAR],
    "schedule export": ["schedule", "export", *ONE, "--to", "json"], "help": ["help", "run"], "version": ["version"],
    "completion": ["completion", "bash"], "man": ["man", "run"],
    "replay": ["replay", STAR, "--backend", "tcp", "--repeats", "1"],
}
LONG_TEXT = ("schema", "list columns", "man", "completion")  # more than a pipe's head takes
WRITES = {
    "run": ["run", STAR, "-o"], "run json": ["run", STAR, "--format", "json", "-o"],
    "sweep": ["sweep", SWEEP, "-j", "2", "-o"], "crossover": ["crossover", STAR, "-o"],
    "topology export": ["topology", "export", *ONE, "--to", "dot", "-o"],
    "schedule export": ["schedule", "export", *ONE, "--to", "json", "-o"],
    "replay": ["replay", STAR, "--backend", "tcp", "--repeats", "1", "-o"],
}
RUNS = {  # what takes long, and ends when it is asked to; {long} and the like are of Place
    "run": ["run", "{long}"], "run -o": ["run", "{long}", "-o", "results.csv"], "sweep": ["sweep", "{long}", "-j", "2"],
    "check": ["check", "{long}"], "explain": ["explain", "{long_one}"], "crossover": ["crossover", "{long}"],
    "compare": ["compare", "{long_one}", "{measured}"], "diff": ["diff", "{long}", "{long}", "--set", "collective.algorithm=ring"],
    "calibrate": ["calibrate", "{long_one}", "{measured}", "-o", "fitted.json"],
    "bound": ["bound", "{wide}"], "topology rings": ["topology", "rings", "{wide}"],
    "replay": ["replay", "{short}", "--backend", "tcp", "--repeats", "1000000"],
}


def full_stdout(place, command):
    with open("/dev/full", "wb") as full:
        place.run(*command, code=5, says=["ringsim: error: standard output: cannot be written: No space left on device"],
                  stdout=full)


def full_file(place, command):
    place.run(*command, "/dev/full", code=5, says=["/dev/full: cannot be written: No space left on device"])


def full_stderr(place):
    """A message that cannot be written changes no exit code."""
    with open("/dev/full", "wb") as full:
        place.run("run", STAR, code=0, stderr=full)
        place.run("run", "no such file", code=3, stderr=full)
        place.run("run", "--no-such-option", code=2, stderr=full)


def closed_stdout(place, command):
    place.run(*command, code=5, says=["standard output: cannot be written: Bad file descriptor"],
              wrap=["sh", "-c", 'exec "$@" >&-', "sh"])


def no_descriptors(place):
    """Files that a command opens must not become its stdout, so that messages end up in them."""
    out = place.folder / "results.csv"
    place.run("run", STAR, "-o", out, code=0, wrap=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
    whole = out.read_bytes()
    place.run("run", STAR, "-o", place.folder / "again.csv", code=0)
    if whole != (place.folder / "again.csv").read_bytes():
        raise Wrong("a result that was written without stdin, stdout and stderr differs")


def head(place, command):
    """`| head -1`: ended by SIGPIPE without a word, or where that is ignored, as on a full disk."""
    for ignored in (False, True):
        reads, writes = os.pipe()
        os.close(reads)  # before it starts: what is short is written before anyone else gets a turn
        process = subprocess.Popen([str(word) for word in [place.ringsim, *command]], stdout=writes,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, restore_signals=not ignored)
        os.close(writes)
        _, err = process.communicate(timeout=LIMIT)
        err = err.decode()
        if ignored:
            place.check(command, process.returncode, err, 5, ["standard output: cannot be written: Broken pipe"])
        elif process.returncode != -signal.SIGPIPE or err:
            raise Wrong(f"exit code {process.returncode}, expected an end by SIGPIPE: {err}")


def signaled(place, command, number):
    words = []
    for word in command:
        value = getattr(place, word[1:-1]) if word.startswith("{") else word
        words += value if isinstance(value, list) else [value]
    before = place.files()
    process = subprocess.Popen([str(word) for word in [place.ringsim, *words]], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=place.folder)
    wait_until(lambda: process.poll() is not None or sum(map(processor_seconds, [process.pid, *children(process.pid)])) >= 0.2,
               f"work of {shlex.join(map(str, words))}")
    pids = children(process.pid)
    process.send_signal(number)
    began = time.monotonic()
    _, err = process.communicate(timeout=LIMIT)
    place.check(words, process.returncode, err.decode(), 130, ["ringsim: interrupted: "])
    if time.monotonic() - began > 5:
        raise Wrong(f"ended only {time.monotonic() - began:.1f} s after its signal")
    if left := [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]:
        raise Wrong(f"left processes: {left}")
    if place.files() != before:
        raise Wrong(f"left files: {set(place.files()) - set(before)}")


def export_stopped(place):
    """Files of ranks that are written are whole, and the message says how many there are."""
    steps, exported, ranks = place.folder / "steps.json", place.folder / "exported", 256
    steps.write_text(json.dumps({
        "version": 1, "topology": {"kind": "star", "ranks": ranks, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}},
        "training": {"workload": {"layers": [{"name": "l", "times": 2000, "parameters": 1000, "forward": "1 us",
                                              "backward": "1 us"}], "batch": 1},
                     "regime": {"name": "ddp", "algorithm": "ring"}}}))
    exported.mkdir()
    words = ["trace", "export", steps, exported / "step.{rank}.json"]
    process = subprocess.Popen([str(word) for word in [place.ringsim, *words]], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=place.folder)
    wait_until(lambda: process.poll() is not None or (exported / "step.2.json").exists(), "files of the first ranks")
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=LIMIT)
    place.check(words, process.returncode, err.decode(), 130, ["ringsim: interrupted: "])
    if time.monotonic() - began > 5:
        raise Wrong(f"ended only {time.monotonic() - began:.1f} s after its signal")
    files = sorted(exported.iterdir())
    for path in files:
        json.loads(path.read_text())
    if f" {len(files)} of {ranks} are complete" not in err.decode() or len(files) == ranks:
        raise Wrong(f"{len(files)} files are there: {err.decode()}")


def killed(place):
    """SIGKILL while it writes: what was there before stays, and the next run works."""
    out = place.folder / "results.csv"
    place.run("run", STAR, "-o", out, code=0)
    before = out.read_bytes()
    for _ in range(3):
        process = subprocess.Popen([place.ringsim, "run", place.long, "-o", out], stderr=subprocess.DEVNULL)
        wait_until_at_work([process.pid])
        process.kill()
        process.wait()
        if out.read_bytes() != before:
            raise Wrong("a result was lost to a run that was killed")
    place.run("run", STAR, "-o", out, code=0)
    if out.read_bytes() != before:
        raise Wrong("the next run writes something else")


def tiny_disk(place, command):
    """A file system of 8 KiB, filled by a result that was there and another file: the result stays, and nothing else."""
    disk = place.folder / "disk"
    disk.mkdir()
    script = ('mount -t tmpfs -o size=8k none disk || exit 77; cd disk; out=$1; shift; echo "scenario.name,old" > $out; '
              'head -c 3000 /dev/zero > rest; "$@" -o $out; code=$?; '
              '[ "$(cat $out)" = "scenario.name,old" ] || { echo "the old result is lost" >&2; exit 99; }; '
              '[ "$(ls | wc -l)" = 2 ] || { ls >&2; exit 98; }; exit $code')
    words = [str(word) for word in [place.ringsim, *command[:-1]]]
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "out.txt", *words], cwd=place.folder, timeout=LIMIT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    err = done.stderr.decode()
    if done.returncode == 77 or "unshare" in err:
        return skipped.append("a tiny disk: no file system can be mounted here")
    place.check(command, done.returncode, err, 5, ["out.txt: cannot be written: No space left on device"])


def as_nobody(place, *arguments, **more):
    """Permissions are nothing to root."""
    if os.getuid() == 0:
        more.update(user=NOBODY, group=NOBODY, extra_groups=[])
    return place.run(*arguments, **more)


def no_permission(place):
    shut, kept, rows = (place.folder / "shut" / name for name in ["", "kept.csv", "rows.jsonl"])
    shut.mkdir()
    place.run("run", STAR, "-o", kept, code=0)
    place.run("sweep", SWEEP, "-o", rows, code=0)
    before = kept.read_bytes()
    secret = place.folder / "unreadable.json"
    shutil.copy(STAR, secret)
    os.chmod(secret, 0)
    os.chmod(kept, 0o444)
    os.chmod(rows, 0o444)
    os.chmod(shut, 0o555)
    os.chmod(place.folder, 0o755)
    try:
        subprocess.run([place.ringsim, "version"], check=True, stdout=subprocess.DEVNULL,
                       **({"user": NOBODY, "group": NOBODY} if os.getuid() == 0 else {}))
    except (PermissionError, subprocess.CalledProcessError):
        return skipped.append("no permission: nobody cannot run ringsim here")
    denied = "cannot be written: Permission denied"
    for what, command in WRITES.items():
        as_nobody(place, *command, shut / "new", code=5, says=[f"{shut / 'new'}: {denied}"])
    as_nobody(place, "run", STAR, "-o", kept, code=5, says=[denied])
    as_nobody(place, "sweep", SWEEP, "-o", rows, "--resume", code=5, says=["Permission denied"])
    as_nobody(place, "run", secret, code=3, says=[f"{secret}: expected a readable file, found: Permission denied"])
    if kept.read_bytes() != before or {path.name for path in shut.iterdir()} != {"kept.csv", "rows.jsonl"}:
        raise Wrong("something was written in a folder that nobody may write to")


def cases():
    for what, command in PRINTS.items():
        yield f"a full stdout: {what}", lambda place, c=command: full_stdout(place, c)
        yield f"a closed stdout: {what}", lambda place, c=command: closed_stdout(place, c)
        yield f"a stdout that nobody reads: {what}", lambda place, c=command: head(place, c)
    for what, command in WRITES.items():
        yield f"a full file: {what}", lambda place, c=command: full_file(place, c)
        if what != "sweep":  # does not replace files; sweep_ended.py has it out of disk
            yield f"a tiny disk: {what}", lambda place, c=command: tiny_disk(place, c)
    for what, command in RUNS.items():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield f"{number.name}: {what}", lambda place, c=command, n=number: signaled(place, c, n)
    yield "a full stderr", full_stderr
    yield "no descriptors", no_descriptors
    yield "SIGINT: trace export", export_stopped
    yield "SIGKILL: run -o", killed
    yield "no permission", no_permission


def run(ringsim, folder, name, what):
    own = folder / re.sub(r"\W+", "-", name)
    own.mkdir()
    began = time.monotonic()
    try:
        what(Place(ringsim, own))
        wrong = ""
    except Wrong as why:
        wrong = str(why)
    except Exception as why:  # of the test itself, or a command that does not end
        wrong = f"the test broke: {why!r}"
    return name, wrong, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ringsim")
    parser.add_argument("--only", default="", help="only cases with this word")
    arguments = parser.parse_args()
    ringsim = str(pathlib.Path(arguments.ringsim).resolve())
    began, failed, n = time.monotonic(), [], 0
    with tempfile.TemporaryDirectory(prefix="ringsim-hostile-") as folder:
        os.chmod(folder, 0o755)
        chosen = [case for case in cases() if arguments.only in case[0]]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for name, wrong, took in pool.map(lambda case: run(ringsim, pathlib.Path(folder), *case), chosen):
                n += 1
                if wrong:
                    failed.append(name)
                    print(f"{name}: {wrong} ({took:.1f} s)", flush=True)
    for what in sorted(set(skipped)):
        print(f"left out: {what}")
    print(f"{n} cases in {time.monotonic() - began:.0f} s, {len(failed)} failed")
    if n == 0 or failed:
        sys.exit(f"hostile: failed: {', '.join(failed) or 'there is no such case'}")


main()
