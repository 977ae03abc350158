#!/usr/bin/env python3
"""How long ringsim takes over the number of GPUs, for questions that users ask: writes docs/results/scale.md.

  tools/bench/scale.py [--build FOLDER] [--limit SECONDS] [-o FILE] [QUESTION...]

Each cell is one process: processor seconds of all its threads, and its most memory. A row ends at the first number of
GPUs that takes longer than the limit (120 processor seconds). Without QUESTION (words of their names) all are asked.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

import steps

GPUS = [8, 64, 512, 1024, 4096, 8192, 16384, 65536]


def star(ranks):
    return {"kind": "star", "ranks": ranks, "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}


def speed(**shares):
    return {"gemm": "70%", "attention": "45%", "memory": "80%", "peak": "989 TFLOP/s", "hbm": "3350 GB/s", **shares}


def gpt3(gpus):
    """GPT-3 175B, tensor 8, 8 stages, 8 micro-batches of one sequence for each data rank."""
    workload = {"model": "gpt3_175b", "micro_batch_size": 1, "global_batch_size": gpus // 64 * 8, "compute": speed()}
    parallel = {"tensor": 8, "pipeline": 8, "sequence_parallel": True, "shard": "optimizer", "recompute": "full"}
    return steps.scenario("GPT-3 175B", steps.cluster(gpus // 8), library="nccl",
                          training={"workload": workload, "parallel": parallel, "optimizer": "adam", "steps": 1, "warmup": 0})


def fsdp(gpus):
    """Llama 3 8B, weights sharded over all GPUs, a sequence each."""
    workload = {"model": "llama3_8b", "micro_batch_size": 1, "global_batch_size": gpus, "compute": speed()}
    return steps.scenario("Llama 3 8B", steps.cluster(gpus // 8), library="nccl",
                          training={"workload": workload, "parallel": {"shard": "full", "recompute": "full"},
                                    "optimizer": "adam", "steps": 1, "warmup": 0})


def server(ranks):
    layer = {"name": "l", "times": 10, "parameters": 1_000_000, "forward": "10 ms", "backward": "20 ms"}
    regime = {"name": "parameter_server", "servers": max(1, ranks // 64), "mode": "async"}
    return steps.scenario("asynchronous servers", star(ranks),
                          training={"workload": {"layers": [layer], "batch": 1}, "regime": regime, "steps": 4, "warmup": 1})


def sweep(ranks):
    """1,000 sizes that divide evenly."""
    sizes = [f"{(i + 1) * ranks} KiB" for i in range(1000)]
    return steps.scenario("1000 rings", star(ranks),
                          collective={"op": "all_reduce", "algorithm": "ring", "bytes": sizes})


# Question, scenario by number of GPUs, command, least number of GPUs.
QUESTIONS = [
    ("all-reduce of 1 GiB, NCCL", lambda n: steps.all_reduce(n // 8, "1 GiB"), ["run"], 8),
    ("why it takes so long", lambda n: steps.all_reduce(n // 8, "1 GiB"), ["explain"], 8),
    ("a step of Llama 2 7B, DDP, NCCL", lambda n: steps.llama(n // 8), ["run"], 8),
    ("a step of Llama 3 8B, FSDP, NCCL", fsdp, ["run"], 8),
    ("a step of GPT-3 175B, tensor 8, 8 stages, NCCL", gpt3, ["run"], 64),
    ("4 steps with asynchronous servers, one for 64 workers", server, ["run"], 8),
    ("1,000 sizes of a ring", sweep, ["run"], 8),
]


def ask(tool, command, scenario, limit):
    """(processor seconds, MiB), or None past the limit."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "scenario.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(scenario, out)
        process = subprocess.Popen([tool, *command, file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)))
        errors = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        if os.WIFSIGNALED(status):
            return None
        if status != 0:
            sys.exit(f"ringsim {' '.join(command)} {scenario['name']}: {errors}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def cell(found):
    if found is None:
        return ""
    seconds, mib = found
    return f"{seconds:.2f} s" + (f", {mib:.0f} MiB" if mib < 1000 else f", {mib / 1024:.1f} GiB")


def page(rows, limit):
    lines = ["# How long it takes", "",
             "Processor seconds and memory of one process, for questions that users ask, over the number of GPUs. Made by",
             "`tools/bench/scale.py`, by hand: no test depends on a time. A row ends where an answer would take more than "
             f"{limit} s.",
             "Machines: DGX H100 with NICs of 400 Gb/s on one switch; servers and rings: a star of ranks with links of "
             "400 Gb/s.", "",
             "| question | " + " | ".join(f"{n:,}" for n in GPUS) + " |", "| --- |" + " ---: |" * len(GPUS)]
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows]
    return "\n".join(lines) + """

Three things keep these times short, and none of them changes a result by more than rounding ([models](../guide/models.md)):
ranks that do the same are simulated as one; channels that become each other if their ranks are renamed are simulated as one; and
a call that repeats another takes its times. None of them helps with asynchronous servers, whose workers drift apart.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="QUESTION")
    parser.add_argument("--build", default=steps.BUILD, help="build folder (default: build)")
    parser.add_argument("--limit", type=int, default=120, help="processor seconds of an answer (default: 120)")
    parser.add_argument("-o", "--output", help="the page (default: standard output)")
    chosen = parser.parse_args()
    tool = os.path.join(chosen.build, "tools", "ringsim")
    if not os.path.exists(tool):
        sys.stderr.write(f"scale.py: expected {tool}; build it first, or name the folder with --build\n")
        sys.exit(5)
    rows = []
    for name, make, command, least in QUESTIONS:
        if chosen.words and not any(word in name for word in chosen.words):
            continue
        cells, is_over = [], False
        for gpus in GPUS:
            found = None if is_over or gpus < least else ask(tool, command, make(gpus), chosen.limit)
            is_over = is_over or (found is None and gpus >= least)
            cells.append(cell(found))
            sys.stderr.write(f"{name}, {gpus}: {cells[-1] or 'no'}\n")
        rows.append((name, cells))
    text = page(rows, chosen.limit)
    if chosen.output:
        with open(chosen.output, "w", encoding="utf-8") as out:
            out.write(text)
    else:
        sys.stdout.write(text)


main()
