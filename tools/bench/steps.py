#!/usr/bin/env python3
"""Processor seconds and memory of `ringsim` for what users ask at scale, as one table.

  tools/bench/steps.py [CASE...]         all cases, or those whose names contain one of these words
  tools/bench/steps.py --whole           each a second time with --no-fold: every rank and call simulated

Seconds are the processor's of the process and its children; MiB its most memory. `transfers` are messages of the whole
run, whatever of it was simulated. With --whole both results are compared: all but the name of the bottleneck's link,
which may be another of several like ones, has to be equal.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "..", "build")


def cluster(nodes, node="dgx-h100", rate="400 Gb/s"):
    return {"kind": "cluster", "node": node, "nodes": nodes,
            "fabric": {"kind": "star", "link": {"bandwidth": rate, "latency": "1 us"}}}


def scenario(name, topology, **rest):
    return {"version": 1, "name": name, "topology": topology, **rest}


def llama(nodes):
    """Llama-2 7B, DistributedDataParallel, bf16, 40 % of the peak of an H100 (data sheet: 989 TFLOP/s)."""
    workload = {"model": "llama2_7b", "batch": 4, "bytes_per_parameter": 2,
                "compute": {"flops": "989 TFLOP/s", "efficiency": "40%"}}
    return scenario("DDP of Llama-2 7B", cluster(nodes), library="nccl",
                    training={"workload": workload, "regime": {"name": "ddp"}, "steps": 2, "warmup": 1})


def resnet(ranks):
    star = {"kind": "star", "ranks": ranks, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}}
    workload = {"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}}
    return scenario("DDP of ResNet-50", star,
                    training={"workload": workload, "regime": {"name": "ddp", "algorithm": "ring"}, "steps": 3,
                              "warmup": 1})


def all_reduce(nodes, size):
    return scenario("NCCL all-reduce", cluster(nodes), library="nccl",
                    collective={"op": "all_reduce", "bytes": size})


CASES = {
    "llama2-7b/ddp/8": (llama(1), []),
    "llama2-7b/ddp/64": (llama(8), []),
    "llama2-7b/ddp/64/explain": (llama(8), ["--explain"]),
    "llama2-7b/ddp/256": (llama(32), []),
    "llama2-7b/ddp/1024": (llama(128), []),
    "resnet50/ring/1024": (resnet(1024), []),
    "nccl/64/1GiB": (all_reduce(8, "1 GiB"), []),
    "nccl/256/1GiB": (all_reduce(32, "1 GiB"), []),
    "nccl/1024/1GiB": (all_reduce(128, "1 GiB"), []),
}


def run(tool, file, options):
    """(result without the links' names, processor seconds, MiB)"""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        process = subprocess.Popen([tool, "run", file, "--format", "json", "-o", out.name, "--force", *options],
                                   stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{tool} run {file} {' '.join(options)}: exit status {os.waitstatus_to_exitcode(status)}")
        return json.load(open(out.name)), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def told(result):
    """What --no-fold must not change."""
    text = json.dumps(result, sort_keys=True)
    for name in ("fingerprint", "folded", "remembered"):
        text = re.sub(rf'"{name}": (null|"[^"]*"),? ?', "", text)
    return re.sub(r'"(link|longest_link)": "[^"]*"', "", text)


def transfers(result):
    rows = result["results"] if isinstance(result, dict) and "results" in result else result
    return (rows[0] if isinstance(rows, list) else rows)["transfers"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="CASE")
    parser.add_argument("--whole", action="store_true", help="compare with --no-fold")
    parser.add_argument("--build", default=BUILD, help="build folder (default: build)")
    chosen = parser.parse_args()
    tool = os.path.join(chosen.build, "tools", "ringsim")
    if not os.path.exists(tool):
        sys.stderr.write(f"steps.py: expected {tool}; build it first, or name the folder with --build\n")
        sys.exit(5)
    print(f"{'case':32}{'transfers':>16}{'CPU s':>9}{'MiB':>7}" + (f"{'whole s':>10}{'times':>8}" if chosen.whole else ""))
    for name, (what, options) in CASES.items():
        if chosen.words and not any(word in name for word in chosen.words):
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(what, file)
            file.flush()
            result, seconds, mib = run(tool, file.name, options)
            line = f"{name:32}{transfers(result):>16,}{seconds:>9.2f}{mib:>7.0f}"
            if chosen.whole:
                whole, whole_seconds, _ = run(tool, file.name, [*options, "--no-fold"])
                same = "" if told(whole) == told(result) else "  DIFFERS"
                line += f"{whole_seconds:>10.2f}{whole_seconds / seconds:>8.1f}{same}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
