#!/usr/bin/env python3
"""What the laws that are always on (ensure() in sim/error.hpp, and the loops that feed it) cost.

Runs cases in turn with the program as it is and with the same sources built without the laws (ringsim_once_unchecked:
nothing else is ever built so); prints the best time of each and the difference. The turns lie so that a machine that
slows down does so for both.
"""

import argparse
import statistics

import once

CASES = ["ring/1024", "ring/1024/uneven", "halving_doubling/16384", "all_to_all/128/direct", "parameter_server/1024",
         "leaf_spine/512/ring_shuffled", "packet/ring/64", "packet/fat_tree/1024/permutation"]

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("case", nargs="*", default=CASES, help="default: one of each kind")
arguments.add_argument("--rounds", type=int, default=7, help="processes of each program and case (default 7)")
arguments.add_argument("--build", default=once.BUILD, help="build folder (default: build)")
chosen = arguments.parse_args()

programs = [once.program(chosen.build), once.program(chosen.build, "ringsim_once_unchecked")]
costs = []
print(f"{'case':36}{'checks on, ms':>15}{'off, ms':>12}{'cost':>9}")
for case in chosen.case:
    best = [float("inf")] * 2
    results = set()
    for turn in range(chosen.rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            found = once.run(programs[which], case, 3)
            best[which] = min(best[which], found["run_s"])
            results.add((found["finish_ps"], found["transfers"], found["events"]))
    if len(results) != 1:
        once.stop(f"{case}: the two programs do not agree: {sorted(results)}", 4)
    costs.append(best[0] / best[1] - 1)
    print(f"{case:36}{best[0] * 1e3:>15.2f}{best[1] * 1e3:>12.2f}{costs[-1]:>9.1%}", flush=True)
print(f"\nmedian {statistics.median(costs):.1%}, largest {max(costs):.1%}")
