#!/usr/bin/env python3
"""How replays end that cannot end well: by a message, an exit code, in time, and with no process left.

Usage: tests/scripts/replay_ended.py path/to/ringsim
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

from processes import children, wait_until, wait_until_at_work

ringsim = sys.argv[1]
folder = tempfile.TemporaryDirectory()
failures = []


def file(name, text):
    path = pathlib.Path(folder.name) / name
    path.write_text(text)
    return str(path)


def scenario():
    return file("long.json", '{"version": 1, "name": "ended", "topology": {"kind": "star", "ranks": 3, "link": '
                '{"bandwidth": "1 GB/s", "latency": "0 us"}}, "collective": {"op": "all_reduce", "algorithm": "ring", '
                '"bytes": "32 MiB"}}')


def start(*arguments):
    if "--hosts" in arguments:
        arguments += ("--secret-file", SECRET)
    return subprocess.Popen([ringsim, "replay", *arguments, "--backend", "tcp"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def wait_for_children(process, n, why):
    def come():
        if process.poll() is not None:
            sys.exit(f"{why}: {n} children never came: {process.communicate()}")
        return len(children(process.pid)) >= n
    wait_until(come, f"{why}: {n} children")
    return children(process.pid)


def gone(pids):
    until = time.monotonic() + 5
    while time.monotonic() < until:
        left = [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]
        if not left:
            return True
        time.sleep(0.05)
    return False


def expect(what, process, code, *texts, within, pids=()):
    began = time.monotonic()
    try:
        out, err = process.communicate(timeout=within + 20)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "\n(was still running)"
    took = time.monotonic() - began
    wrong = []
    if process.returncode != code:
        wrong.append(f"exit code {process.returncode}, expected {code}")
    wrong += [f"does not say: {text}" for text in texts if text not in err]
    if took > within:
        wrong.append(f"took {took:.1f} s, expected at most {within} s")
    if not gone(pids):
        wrong.append("left processes behind")
    print(f"{what}: {'; '.join(wrong) if wrong else 'as expected'} ({took:.1f} s)\n    " + err.strip().replace("\n", "\n    "))
    if wrong:
        failures.append(what)


def secret():
    path = pathlib.Path(file("secret", "of all processes of this test\n"))
    path.chmod(0o600)
    return str(path)


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def endless():
    """A replay that goes on until something happens to it, seen in the middle of a run."""
    process = start(LONG, "--repeats", "1000000")
    pids = wait_for_children(process, 3, "endless")
    wait_until_at_work(pids)
    return process, pids


SECRET = secret()
LONG = scenario()
OTHER = file("other.json", pathlib.Path(LONG).read_text().replace("32 MiB", "16 MiB"))
TWO_POINTS = file("two.json", pathlib.Path(LONG).read_text().replace('"ring"', '["ring", "direct"]').replace("32 MiB", "64 KiB"))

process, pids = endless()
os.kill(pids[1], signal.SIGKILL)
expect("a rank is killed", process, 5, "rank 1 was killed by signal 9", within=5, pids=pids)

process, pids = endless()
os.kill(process.pid, signal.SIGINT)
expect("Ctrl-C", process, 130, "interrupted", "0 of 1 points done", within=5, pids=pids)

process, pids = endless()
process.kill()
process.wait()
print("the parent is killed:", "as expected" if gone(pids) else failures.append("the parent is killed") or "children are left")

process = start(LONG, "--repeats", "1000000", "--timeout", "3s")
pids = wait_for_children(process, 3, "stopped")
wait_until_at_work(pids)
os.kill(pids[2], signal.SIGSTOP)
expect("a rank hangs", process, 5, "took longer than 3 s", "rank 2", within=6, pids=pids)

process = start(LONG, "--repeats", "1", "-o", "/dev/full")
expect("a full disk", process, 5, "/dev/full: cannot be written: No space left on device", within=60)

with socket.socket() as taken:
    taken.bind(("", 0))
    taken.listen()
    hosts = file("hosts", f"127.0.0.1:{taken.getsockname()[1]}\n127.0.0.1\n127.0.0.1\n")
    process = start(LONG, "--hosts", hosts, "--rank", "0")
    expect("a port is taken", process, 5, f"cannot listen on port {taken.getsockname()[1]}: Address already in use",
           within=5)

hosts = file("hosts", f"127.0.0.1:{free_port()}\n127.0.0.1\n127.0.0.1\n")
process = start(LONG, "--hosts", hosts, "--rank", "1", "--timeout", "2s")
expect("the first process never comes", process, 5, "process 0 does not answer at 127.0.0.1 port ", "within 2 s", within=5)

first = start(LONG, "--hosts", hosts, "--rank", "0", "--timeout", "3s")
second = start(LONG, "--hosts", hosts, "--rank", "1", "--timeout", "3s")
expect("a peer never comes", first, 5, "rank 2 (127.0.0.1) did not connect within 3 s", within=8)
expect("... and the others hear why", second, 5, "process 0 reports: rank 2 (127.0.0.1) did not connect within 3 s", within=8)

first = start(LONG, "--hosts", hosts, "--rank", "0", "--timeout", "3s")
other = start(OTHER, "--hosts", hosts, "--rank", "1", "--timeout", "3s")
expect("another scenario on another host", other, 5, "replays a different scenario", within=8)
expect("... is not counted", first, 5, "rank 1 (127.0.0.1), rank 2 (127.0.0.1) did not connect", within=8)

parts = [start(TWO_POINTS, "--hosts", hosts, "--rank", str(rank), "--repeats", "3", "--format", "jsonl") for rank in (1, 2)]
first = start(TWO_POINTS, "--hosts", hosts, "--rank", "0", "--repeats", "3", "--format", "jsonl")
out, err = first.communicate(timeout=60)
lines = out.splitlines()
good = first.returncode == 0 and len(lines) == 2 and all('"wrong":0' in line for line in lines)
for part in parts:
    part_out, part_err = part.communicate(timeout=60)
    good = good and part.returncode == 0 and part_out == "" and part_err == ""
print("three processes that were started apart:", "as expected" if good else f"wrong: {out} {err}")
if not good:
    failures.append("started apart")

first = start(LONG, "--hosts", hosts, "--rank", "0", "--repeats", "1000000")
parts = [start(LONG, "--hosts", hosts, "--rank", str(rank), "--repeats", "1000000") for rank in (1, 2)]
wait_until_at_work([*wait_for_children(first, 1, "apart"), *(part.pid for part in parts)])
parts[1].kill()
parts[1].communicate()
expect("one that was started apart is killed", first, 5, "lost rank 2", within=5)
expect("... and its peer hears of it", parts[0], 5, "process 0 reports: lost rank 2", within=5)

sys.exit(f"replay_ended: failed: {', '.join(failures)}" if failures else 0)
