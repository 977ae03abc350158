#!/usr/bin/env python3
"""Simulates every plan that a scenario leaves open, and compares what `ringsim plan` finds by itself with that.

Usage: tools/bench/plans_by_force.py RINGSIM SCENARIO [OPTION of ringsim plan]...

For several values of --within: all plans that are within it must be among those that were simulated, in the same order. By hand: it
simulates hundreds of plans.
"""
import json
import subprocess
import sys
import time


def plans(ringsim, scenario, options, within, top):
    begin = time.monotonic()
    out = subprocess.run([ringsim, "plan", scenario, *options, "--within", within, "--top", str(top), "--format", "jsonl"],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    found = [(row["time_us"], json.dumps(row["point"], sort_keys=True)) for row in rows]
    return found, time.monotonic() - begin


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    ringsim, scenario, *options = sys.argv[1:]
    everything, took = plans(ringsim, scenario, options, "100000%", 100000)
    print(f"{len(everything)} plans simulated in {took:.1f} s; steps of {everything[0][0]:.0f} to {everything[-1][0]:.0f} us")
    failed = False
    for within in (0, 1, 5, 20):
        found, took = plans(ringsim, scenario, options, f"{within}%", 100000)
        limit = everything[0][0] * (1 + within / 100)
        wanted = [each for each in everything if each[0] <= limit]
        missed = [each for each in wanted if each not in found]
        failed = failed or bool(missed) or [each for each in found if each[0] <= limit] != wanted
        print(f"within {within} %: {len(wanted)} plans, {len(found)} simulated in {took:.1f} s, {len(missed)} missed")
    for top in (1, 5, 10):
        found, took = plans(ringsim, scenario, options, "100000%", top)
        same = [each[0] for each in found[:top]] == [each[0] for each in everything[:top]]
        failed = failed or not same
        print(f"top {top}: {'the same' if same else 'OTHERS'}, in {took:.1f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
