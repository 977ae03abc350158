#!/usr/bin/env python3
"""What the laws that are always on (ensure() in sim/base/error.hpp, and the loops that feed it) cost.

Runs cases in turn with the program as it is and with the same sources built without the laws (ringsim_once_unchecked:
nothing else is ever built so); prints the best time of each and the difference. The turns lie so that a machine that
slows down does so for both. --count has callgrind count the instructions of one run with and without (as
instructions.sh does), which no load of the machine disturbs.
"""

import argparse
import re
import shutil
import statistics
import subprocess

import once

CASES = ["ring/1024", "ring/1024/uneven", "halving_doubling/16384", "all_to_all/128/direct", "parameter_server/1024",
         "leaf_spine/512/ring_shuffled", "packet/ring/64", "packet/fat_tree/1024/permutation"]

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("case", nargs="*", default=CASES, help="default: one of each kind")
arguments.add_argument("--rounds", type=int, default=7, help="processes of each program and case (default 7)")
arguments.add_argument("--count", action="store_true", help="instructions instead of times (needs valgrind)")
arguments.add_argument("--build", default=once.BUILD, help="build folder (default: build)")
chosen = arguments.parse_args()

programs = [once.program(chosen.build), once.program(chosen.build, "ringsim_once_unchecked")]
costs = []


def instructions(path, case):
    """Instructions of one run: those of a process that makes two runs, less those of one that makes one."""
    counts = []
    for times in (1, 2):
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", path, case, str(times)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            once.stop(f"{path} {case} failed under valgrind\n{done.stderr}", 4)
        counts.append(int(re.search(r"Collected : (\d+)", done.stderr)[1]))
    return counts[1] - counts[0]


def best_times(case):
    """Milliseconds with and without; stops if the two do not simulate the same."""
    best = [float("inf")] * 2
    results = set()
    for turn in range(chosen.rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            found = once.run(programs[which], case, 3)
            best[which] = min(best[which], found["run_s"] * 1e3)
            results.add((found["finish_ps"], found["fingerprint"], found["events"]))
    if len(results) != 1:
        once.stop(f"{case}: the two programs do not agree: {sorted(results)}", 4)
    return best


if chosen.count and not shutil.which("valgrind"):
    once.stop("valgrind is missing\n  hint: apt-get install valgrind", 5)
print(f"{'case':36}{'checks on':>16}{'off':>16}{'cost':>9}   ({'instructions' if chosen.count else 'ms'})")
for case in chosen.case:
    on, off = [instructions(path, case) for path in programs] if chosen.count else best_times(case)
    costs.append(on / off - 1)
    print(f"{case:36}{on:>16,.{0 if chosen.count else 2}f}{off:>16,.{0 if chosen.count else 2}f}{costs[-1]:>9.1%}", flush=True)
print(f"\nmedian {statistics.median(costs):.1%}, largest {max(costs):.1%}")
