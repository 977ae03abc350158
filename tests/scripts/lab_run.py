#!/usr/bin/env python3
"""Replays in a lab of namespaces: right to the bit; whatever ends them, nothing of the lab is left. Times are printed, not
asserted. Without what the lab needs it says so, and exits with 77.

Usage: tests/scripts/lab_run.py path/to/ringsim
"""
import atexit
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from processes import are_at_work, children, wait_until

ringsim = sys.argv[1]
scenarios = pathlib.Path(__file__).resolve().parents[2] / "scenarios/examples/replay"
failures = []
started = []


def namespaces(of=""):
    folder = pathlib.Path("/run/netns")
    return sorted(p.name for p in folder.iterdir() if p.name.startswith(f"ringsim-{of}")) if folder.exists() else []


def start(*arguments):
    started.append(subprocess.Popen([ringsim, "lab", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return started[-1]


@atexit.register
def end_all():
    """A lab that is still up, because the test ends early, takes itself down."""
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def check(what, good, detail=""):
    print(f"{what}: {'as expected' if good else 'WRONG'} {detail}".rstrip())
    if not good:
        failures.append(what)


star = str(scenarios / "replay-star.json")
small = ["--set", "collective.bytes=1 MiB"]
probe = start("run", star, *small, "--set", "collective.algorithm=ring", "--repeats", "1", "--warmups", "0")
out, err = probe.communicate(timeout=120)
if probe.returncode == 5 and ("needs" in err):
    check("without what the lab needs nothing is left", not namespaces(probe.pid))
    print(f"skipped: no lab here: {err.strip()}")
    sys.exit(f"lab_run: failed: {failures}" if failures else 77)
check("a first run", probe.returncode == 0, err)

run = start("run", star, "--repeats", "3", "--format", "json")
out, err = run.communicate(timeout=240)
check("K = 4, 8 MiB", run.returncode == 0, err)
if run.returncode == 0:
    for row in json.loads(out)["results"]:
        check(f"{row['algorithm']}: right to the bit", row["wrong"] == 0)
        print(f"    predicted {row['time_us'] / 1e3:.1f} ms, measured {row['measured_us'] / 1e3:.1f} "
              f"({row['measured_min_us'] / 1e3:.1f} to {row['measured_max_us'] / 1e3:.1f}), load {os.getloadavg()[0]:.1f}")
check("nothing is left", not namespaces(run.pid), " ".join(namespaces(run.pid)))


def at_work(process):
    """The ranks of a lab in the middle of its runs. Before them it has other children, which set up its network."""
    return wait_until(lambda: len(found := children(process.pid)) >= 4 and are_at_work(found) and found,
                      "four ranks at work")


def ended(what, code, end, *texts):
    """A lab in the middle of its runs is ended, and is gone."""
    process = start("run", star, *small, "--repeats", "100000")
    pids = at_work(process)
    was_up = len(namespaces(process.pid))
    began = time.monotonic()
    end(process, pids)
    out, err = process.communicate(timeout=60)
    left = namespaces(process.pid) + [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]
    check(what, process.returncode == code and was_up == 5 and not left and all(text in err for text in texts),
          f"exit {process.returncode} in {time.monotonic() - began:.1f} s, {was_up} namespaces, left {left}: {err.strip()}")


ended("Ctrl-C takes the lab down", 130, lambda process, pids: process.send_signal(signal.SIGINT), "interrupted")
ended("so does being told to end", 130, lambda process, pids: process.send_signal(signal.SIGTERM), "interrupted")
ended("so does a rank that is killed", 5, lambda process, pids: os.kill(pids[2], signal.SIGKILL),
      "rank 2 was killed by signal 9")

# Killed outright it cannot take anything down: the next `lab down` does.
process = start("run", star, *small, "--repeats", "100000")
at_work(process)
process.kill()
process.communicate()
left = namespaces(process.pid)
down = start("down", star)
_, err = down.communicate(timeout=60)
check("lab down takes down what was left over", len(left) == 5 and down.returncode == 0 and not namespaces(process.pid), err.strip())

up = start("up", star)
out, err = up.communicate(timeout=60)
lasting = sorted(set(word for word in out.split() if word.startswith("ringsim-lab")))
check("lab up leaves it there", up.returncode == 0 and len(lasting) == 4 and set(lasting) <= set(namespaces()), out + err)
again = start("up", star)
_, err = again.communicate(timeout=60)
check("twice is refused", again.returncode == 5 and "is already up" in err, err.strip())
before = namespaces()
run = start("run", star, "--repeats", "1", "--warmups", "0", "--format", "jsonl")
out, err = run.communicate(timeout=120)
check("lab run uses it", run.returncode == 0 and out.count('"wrong":0') == 3 and namespaces() == before, err)
down = start("down", star)
_, err = down.communicate(timeout=60)
check("lab down takes it down", down.returncode == 0 and not set(lasting) & set(namespaces()), err.strip())

odd = start("run", star, "--set", 'topology.kind=ring')
_, err = odd.communicate(timeout=60)
check("what namespaces cannot be is refused", odd.returncode == 3 and "/topology: expected endpoints" in err, err.strip())
sys.exit(f"lab_run: failed: {', '.join(failures)}" if failures else 0)
