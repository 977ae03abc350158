#!/usr/bin/env python3
"""Training steps whose programs are very large: refused before they are made, stopped at once, and as large as was said.

Usage: tests/scripts/large_training.py RINGSIM
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

RINGSIM = os.path.abspath(sys.argv[1])


def scenario(ranks, layers, regime, parameters=1000, workload=None, **more):
    layer = {"name": "l", "times": layers, "parameters": parameters, "forward": "1 us", "backward": "1 us"}
    return {
        "version": 1,
        "topology": {"kind": "star", "ranks": ranks, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}},
        "training": {"workload": {"layers": [layer], "batch": 1, **(workload or {})}, "regime": regime, **more},
    }


def pipeline(ranks, layers, microbatches):
    return scenario(ranks, layers, {"name": "model_parallel", "microbatches": microbatches},
                    workload={"batch": microbatches, "activation_bytes": "1 kB"})


ONE_EACH = {"size": "1 B", "first": "1 B"}
LARGE = {
    "a bucket per layer": scenario(8, 100_000, {"name": "ddp", "algorithm": "ring", "buckets": ONE_EACH}),
    "many servers": scenario(65_536, 100, {"name": "parameter_server", "servers": 256}, 1_000_000),
    "long rounds": scenario(8, 100_000, {"name": "local_sgd", "algorithm": "ring", "every": 1000}),
    "many workers": scenario(100_000, 10, {"name": "parameter_server", "servers": 1, "mode": "async"}),
    "many microbatches": pipeline(64, 64, 100_000),
}
# Small enough to run, of each kind of program. Seconds of a core: less than one each.
MIDDLE = {
    "ddp": scenario(512, 2000, {"name": "ddp", "algorithm": "ring", "buckets": {"size": "1 MB", "first": "1 MB"}}, 16_384),
    "local_sgd": scenario(8, 1500, {"name": "local_sgd", "algorithm": "ring", "every": 100}, steps=1, warmup=0),
    "gossip": scenario(256, 1500, {"name": "gossip", "every": 10}, steps=1, warmup=0),
    "servers": scenario(800, 100, {"name": "parameter_server", "servers": 64}, 1_000_000, steps=1, warmup=0),
    "pipeline": pipeline(4, 4000, 100),
}


class Failed(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failed(what)


def cpu_seconds(pid):
    """Processor time of a process; None if it is over."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (FileNotFoundError, ProcessLookupError):
        return None


def peak_bytes(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
        return int(found.group(1)) * 1024 if found else 0
    except (FileNotFoundError, ProcessLookupError):
        return 0


def run(path, *more, interrupt_after=None):
    """Returns exit code, stderr, CPU seconds after the signal (or of all), and the peak of memory."""
    process = subprocess.Popen([RINGSIM, "run", path, *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    sent, cpu, peak = None, 0.0, 0
    while process.poll() is None:
        peak = max(peak, peak_bytes(process.pid))
        cpu = cpu_seconds(process.pid) or cpu
        if interrupt_after is not None and sent is None and cpu >= interrupt_after:
            sent = cpu
            process.send_signal(signal.SIGINT)
        if sent is not None and cpu - sent > 5:
            process.kill()
        time.sleep(0.005)
    return process.returncode, process.communicate()[1], cpu - (sent or 0), peak


def said(text):
    """The size that a refusal names, in bytes."""
    number, unit = re.search(r"which takes about ([0-9.]+) (MB|GB)", text).groups()
    return float(number) * {"MB": 1e6, "GB": 1e9}[unit]


def interrupted(path, name):
    # What is made until then takes some hundred megabytes; a machine with less memory refuses it.
    code, text, after, _ = run(path, "--max-memory", "1 TB", interrupt_after=0.4)
    expect(code == 130, f"{name}: expected exit code 130 after an interruption, found {code}: {text}")
    expect(after <= 1, f"{name}: expected an end within a second of CPU time, found {after:.2f} s")
    expect("stopped" in text, f"{name}: expected how far it came, found {text}")


def refused(path, name):
    code, text, cpu, peak = run(path, "--max-memory", "200 MB")
    expect(code == 3, f"{name}: expected exit code 3 from --max-memory 200 MB, found {code}: {text}")
    for part in ("/training: expected a training step whose program takes at most 200 MB", "--max-memory", "hint: fewer"):
        expect(part in text, f"{name}: expected \"{part}\", found {text}")
    expect(said(text) > 200e6, f"{name}: expected more than 200 MB, found {text}")
    # The topology is there already: up to 100,000 GPUs.
    expect(peak < 150e6 and cpu < 2, f"{name}: expected a refusal before anything is made, found {peak / 1e6:.0f} MB, {cpu:.1f} s")


def as_large_as_said(path, name):
    expected = said(run(path, "--max-memory", "1 kB")[1])
    code, text, _, peak = run(path)
    expect(code == 0, f"{name}: expected a result, found exit code {code}: {text}")
    expect(expected / 2 < peak < expected * 2,
           f"{name}: expected within a factor of two of {expected / 1e6:.0f} MB, found {peak / 1e6:.0f} MB")


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for test, scenarios in ((refused, LARGE), (interrupted, LARGE), (as_large_as_said, MIDDLE)):
            for name, text in scenarios.items():
                path = os.path.join(folder, "large.json")
                with open(path, "w") as file:
                    json.dump(text, file)
                try:
                    test(path, name)
                except Failed as error:
                    print(f"{test.__name__}: {error}", file=sys.stderr)
                    failed += 1
    print("large_training: all as expected" if failed == 0 else f"large_training: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
