#!/usr/bin/env python3
"""Time and memory of the benchmark's cases, each in a process of its own, as one table.

  tools/bench/figures.py                 all cases but the slow ones
  tools/bench/figures.py --slow          those too (the ring of 16384 ranks, unfolded, takes a minute)
  tools/bench/figures.py ring/1024 ...   some

whole s: topology, proof and run, as `ringsim run` does them. run s: the simulation alone, the best of --times; ns: that
over the transfers. Seconds are the processor's, which other work on the machine disturbs least. MiB: the most memory of
the process. Packets are counted from end to end, not link by link: the bytes
of every message over the MTU, rounded up.
"""

import argparse

import once

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("case", nargs="*", help="default: all")
arguments.add_argument("--slow", action="store_true", help="the slow ones too")
arguments.add_argument("--times", type=int, default=3, help="how often a case that is not slow is run (default 3)")
arguments.add_argument("--build", default=once.BUILD, help="build folder (default: build)")
chosen = arguments.parse_args()

path = once.program(chosen.build)
quick = once.names(path, slow=False)
cases = chosen.case or once.names(path, slow=chosen.slow)

packets = {}
print(f"{'case':36}{'transfers':>14}{'whole s':>10}{'run s':>10}{'ns':>9}{'MiB':>8}{'packets':>10}{'M packets/s':>13}")
for case in cases:
    found = once.run(path, case, chosen.times if case in quick else 1)
    whole = found["build_s"] + found["proof_s"] + found["run_s"]
    line = f"{case:36}{found['transfers']:>14,}{whole:>10.3f}{found['run_s']:>10.3f}"
    if found["packets"]:
        packets[case] = found["packets"] / found["run_s"] / 1e6
        line += f"{'':>9}{found['peak_MiB']:>8.0f}{found['packets']:>10,}{packets[case]:>13.2f}"
    elif found["folded"]:  # one rank represents all: a time per transfer would say nothing
        line += f"{'':>9}{found['peak_MiB']:>8.0f}"
    else:
        line += f"{found['run_s'] / found['transfers'] * 1e9:>9.1f}{found['peak_MiB']:>8.0f}"
    print(line, flush=True)
small, large = packets.get("packet/ring/8"), packets.get("packet/ring/64")
if small and large:
    print(f"\npackets a second, ring of 64 hosts over ring of 8: {large / small:.2f}")
