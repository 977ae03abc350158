#!/usr/bin/env python3
"""Makes the guide that answers questions of users, each with one command and its output.

Usage: docs/results/make/questions.py RINGSIM [--check]

Runs the commands and writes docs/guide/questions.md; with --check compares, exit code 1 where it differs.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap
from typing import NamedTuple

import page
from question_answers import ANSWERS

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = "scenarios/questions"
NODE_OUT = "inter_node.GBps"
PROFILES = [f"{FOLDER}/profiles/rank{rank}.json.gz" for rank in range(4)]


class Question(NamedTuple):
    number: int
    asks: str
    threads: str
    arguments: list  # of ringsim
    answer: str
    since: str = ""  # the output begins with the line that begins so; empty: with the first
    until: str = ""  # the output is cut before the line that begins so; empty: it is whole


def matrix(name, rows, columns, cell, *more):
    return ["run", f"{FOLDER}/{name}.json", "--format", "matrix", "--rows", rows, "--columns", columns, "--cell", cell, *more]


QUESTIONS = [
    Question(3, "With more nodes mid sizes lose bandwidth, the largest do not. Why?", "NVIDIA/nccl#1712",
             matrix("03-mid-sizes", "topology.nodes", "bytes", "busbw_GBps"),
             "Read down: a ring of K GPUs has 2(K-1) steps, and each waits for a latency, regardless of the size. The next command "
             "says how much of the time this is."),
    Question(3, "And why is it so at 16 MiB on 32 nodes?", "NVIDIA/nccl#1712",
             ["explain", f"{FOLDER}/03-mid-sizes.json", "--set", "topology.nodes=32", "--set", "collective.bytes=16 MiB"],
             "The latencies of 510 steps. Twice the nodes need twice the size for the same bandwidth, or trees, which NCCL chooses "
             "if it may (`--set library.env.NCCL_ALGO=null`).", until="\nThe critical path, from"),
    Question(5, "One pair of nodes has half the bandwidth of the others. Which node is bad?", "NVIDIA/nccl-tests#106",
             matrix("05-one-bad-pair", "collective.ranks", "algorithm", NODE_OUT),
             "node2: each pair that contains it has half the bandwidth, and so does a ring of all four nodes (the first row). "
             "`--cell bottleneck.link` names the adapter."),
    Question(1, "busbw on two nodes is above what my NICs have. A bug?", "NVIDIA/nccl#837, #946, NVIDIA/nccl-tests#22, #160, #196, #251",
             matrix("01-nccl", "topology.nodes", "algorithm", "busbw_GBps"),
             "No: busbw counts what a ring sends, and on two nodes trees send half as much out of a node. Each node has four NICs of "
             "12 GB/s. With trees 57, 32 and 30 were measured (NVIDIA/nccl#527), over EFA, whose losses are not modeled."),
    Question(8, "Latency between two sites halves 32 GPUs, not 16. Why?", "NVIDIA/nccl-tests#241",
             matrix("08-nccl", "ranks", "topology.fabric.uplink.latency", "busbw_GBps", "--set", "collective.bytes=8 GiB"),
             "Twice the GPUs take twice the steps, and each step has half the data to hide the latency. At 1 GiB both lose half."),
    Question(9, "Two nodes are fine, in a rack and across; three in two racks collapse. Is it oversubscription?", "NVIDIA/nccl#1453",
             ["run", f"{FOLDER}/09-nccl.json", "--set", "network.routing=static"],
             "No: two nodes across racks (one per leaf) lose as much as three."),
    Question(10, "100, 70, 58, 40 GB/s on 2, 3, 4 and 6 nodes. Why?", "NVIDIA/nccl-tests#169",
             matrix("10-nccl", "topology.nodes", "network.routing", "busbw_GBps"),
             "ECMP puts several flows on one cable, and all ranks wait for them. The thread's figures are between the two columns, "
             "because several queue pairs per NIC average out collisions. They are not modeled."),
    Question(12, "NVLS gives 480 GB/s where the wire has 450 and a ring 370?", "NVIDIA/nccl#1374, #1455, #1442, NVIDIA/nccl-tests#212",
             matrix("12-nvls", "library.env.NCCL_ALGO", "bytes", "busbw_GBps"),
             "busbw counts what a ring sends: 1.75 times the buffer on 8 GPUs. NVLS sends 1.125 times the buffer, so a busbw of 460 "
             "is 296 GB/s on the wire. Measured with NVLS: 321, 435, 470, 482."),
    Question(13, "LL, LL128 or Simple: when?", "NVIDIA/nccl#281, #1315, #756, #1847",
             matrix("13-protocols", "library.env.NCCL_PROTO", "bytes", "time_us", "--set", "topology.nodes=1"),
             "LL has the shortest steps, but half the bandwidth; Simple has the longest steps and the full bandwidth."),
    Question(18, "NCCL_CROSS_NIC=1 beats the NVLink bound with 4 GPUs, not with 8. Why?", "NVIDIA/nccl#1411",
             ["run", f"{FOLDER}/18-nccl.json"],
             "Without the variable NVLink limits both; 164 GB/s were measured. With it and four GPUs, 194 were measured, because one "
             "of the GPUs can then avoid NVLink. Its effect on Hopper is not modeled; 18-cross-nic has the arithmetic for one "
             "channel."),
    Question(19, "All NICs are on the other NUMA node. Does that halve NCCL?", "NVIDIA/nccl-tests#347",
             ["run", f"{FOLDER}/19-nic-on-other-socket.json", "--set", "library.env.NCCL_NET_GDR_LEVEL=null"],
             "One GPU far from its NIC gets half (ranks 2, the second machine). All eight lose nothing, because NCCL enters a node "
             "at a GPU next to a NIC and continues over NVLink."),
    Question(20, "What should my cluster reach? The rule: 12 GB/s per NIC of 100 Gb/s, 24 per 200, 46 to 48 per 400.",
             "NVIDIA/nccl-tests#119, #290, #309, NVIDIA/nccl#495",
             matrix("20-what-to-expect", "topology.node", "library", "busbw_GBps"),
             "The rule is right (1, 4, 16 NICs of 100 Gb/s; 4, 4, 8 of 200; 8 and 8 of 400) if each NIC has a fast path to a GPU. A "
             "DGX-1V (4 x 100), whose adapters read GPUs at 85 % of PCIe's rate, and servers without NVLink (2 x 200) stay below it."),
    Question(20, "And mine?", "the same",
             ["run", f"{FOLDER}/20-what-to-expect.json", "--set", "topology.node=dgx-a100"],
             "The rule gives 8 x 24 = 192 GB/s."),
    Question(22, "Which bucket size for DDP on 10 GbE?", "pytorch/pytorch#118421, horovod/horovod#2468, #659",
             matrix("22-ddp-buckets", "training.regime.buckets.size", "topology.link.bandwidth", "time_us"),
             "25 MiB at 10 Gb/s. If the network is fast enough, the smaller the better, because only the last bucket is exposed. For "
             "the exposed time use `--cell split_us.exposed_communication`."),
    Question(24, "I changed the bandwidth, and the time is the same. Why?", "astra-sim/astra-sim#207, simgrid/simgrid#338",
             ["explain", f"{FOLDER}/24-no-change.json", "--whatif", "topology.fabric.link.bandwidth=400 Gb/s", "--whatif",
              "calibration.scale_nvlink=2"],
             "Something else limits the time, and the output says so for each change.", until="\nThe critical path by"),
    Question(33, "Which rank of my job is late?", "profiles of a job of four GPUs that is made up",
             ["trace", "show", *PROFILES],
             "Rank 2. The others wait about 0.9 ms for it in each all-reduce of 64 MiB; the second table shows the sums. [My job is "
             "slow](my-job-is-slow.md) says how to record profiles."),
    Question(34, "Is my all-reduce as fast as it should be?", "the same profiles, and the machine",
             ["trace", "compare", "dgx-a100", *PROFILES],
             "At 64 MiB it is: the additional time is spent waiting for rank 2. At 16 MiB it takes twice as long as predicted, although all "
             "ranks have arrived."),
    Question(35, "FSDP, or tensor and pipeline parallelism: Llama 3 70B on 64 GPUs with a NIC of 400 Gb/s each?",
             "asked of every planner; shares of the peak are assumed",
             ["plan", f"{FOLDER}/35-fsdp-or-tp-pp.json", "--within", "50%"],
             "They are equally fast. FSDP loses a quarter of the time to recomputation, because its activations do not fit "
             "otherwise, but it hides its traffic. The other plan loses as much to tensor collectives and the bubble. FSDP among the "
             "GPUs of 8 nodes with tensor 8 gathers all weights for each micro-batch and cannot hide that. The fastest plan is "
             "between them: FSDP with tensor 4 takes 7.27 s without recomputation. Simulating it takes a minute, because its gathers "
             "share NVLink with tensor collectives.",
             until="\nTo run and to explain"),
    Question(36, "How many experts per GPU?", "likewise",
             ["plan", f"{FOLDER}/36-experts-per-gpu.json", "--set", "training.parallel.expert=[1,2,4,8]"],
             "One, for Mixtral's 8 experts on a node of 8 GPUs. With two (expert 4) the step takes 1.3 % longer and each GPU stores "
             "8.5 GB more; with four it does not fit. With two, dispatch and combine take 7 ms less, but kernels that read the "
             "weights of two experts for half the tokens each take 13 ms more, and gradients of twice the experts another 13 ms.",
             until="\nTo run and to explain"),
    Question(37, "What does context parallelism cost at 128 k tokens?", "likewise",
             matrix("37-context", "training.workload.sequence", "training.parallel.context", "tokens_per_s"),
             "3 % with two ranks and 8 % with four, whereas 8 k tokens lose 18 and 31 %: keys and values grow with the sequence, "
             "attention with its square. Use it if the model does not fit otherwise, not for speed."),
    Question(37, "And if keys and values travel around a ring while attention computes?", "the same",
             matrix("37-ring", "training.workload.sequence", "training.parallel.context", "tokens_per_s"),
             "At 128 k tokens the steps of attention hide all hops. Two ranks lose 0.7 % and four lose 1.8 %. Half of the loss comes "
             "from kernels that add up the results and gradients of the steps, and half from tensor collectives, which are smaller "
             "and more numerous. At 8 k tokens a step takes less time than a hop: 15 and 35 % are lost, and four ranks are slower "
             "than with gathers, because each hop is a call with its own latency."),
    Question(38, "How many GPUs are worth it for a batch of a fixed size?", "strong scaling; shares of the peak are assumed",
             matrix("38-strong-scaling", "topology.nodes", "topology.fabric.link.bandwidth", "time_us"),
             "With NICs of 400 Gb/s, all 64: they reach 96 % of ideal scaling. With 100 Gb/s, 16 GPUs reach 89 %, 32 reach 73 % and "
             "64 reach 54 %: the gradients and weights of each ring, 11.3 GB, take 452 ms on two NICs for any number of GPUs, while "
             "the passes of 64 GPUs take 252 ms. `ringsim plot scenarios/questions/38-strong-scaling.csv --x ranks --y time_us "
             "--ideal -o scaling.svg` [draws it](training.md#strong-scaling)."),
]


def faster(arguments):
    """A matrix of a scenario as it stands is made of its results that are kept: a test compares those with the simulation."""
    if arguments[0] == "run" and "matrix" in arguments and "--set" not in arguments:
        return ["merge", arguments[1].replace(".json", ".csv"), *arguments[2:], "-o", "-"]
    return arguments


def output(question):
    done = subprocess.run([sys.argv[1], *faster(question.arguments)], cwd=ROOT, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"ringsim {shlex.join(question.arguments)}: {done.stderr}")
    text = done.stdout
    if question.since:
        if f"\n{question.since}" not in text:
            sys.exit(f"ringsim {shlex.join(question.arguments)}: no line begins with {question.since!r}")
        text = "...\n" + text[text.index(f"\n{question.since}") + 1:]
    if question.until:
        if question.until not in text:
            sys.exit(f"ringsim {shlex.join(question.arguments)}: no line begins with {question.until.strip()!r}")
        text = text[:text.index(question.until)] + "\n...\n"
    return text


def command(arguments):
    """In lines of at most 110 characters."""
    words, lines = [shlex.quote(word) for word in ["ringsim", *arguments]], [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > 106:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def entry(question):
    lines = command(question.arguments)
    lines[0] = f"$ {lines[0]}"
    lines += output(question).rstrip("\n").split("\n")
    block = "\n".join(f"    {line}".rstrip() for line in lines)
    return f"### {question.asks}\n\n({question.number}; {question.threads})\n\n{block}\n\n{textwrap.fill(question.answer, 120)}\n"


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-")


def table():
    """All questions; the number links to the command that answers it, if the page has one."""
    commands = {}
    for question in QUESTIONS:
        commands.setdefault(question.number, question)
    lines = ["| question | file | answer |", "| --- | --- | --- |"]
    for number, asks, file, answer in ANSWERS:
        shown = f"[{number}](#{anchor(commands[number].asks)})" if number in commands else str(number)
        lines.append(f"| {shown}. {asks} | {file} | {answer} |")
    return "\n".join(lines)


def text():
    entries = "\n".join(entry(question) for question in QUESTIONS)
    return f"""# Questions that users ask

These questions come from issue threads of NCCL, nccl-tests and other projects. The table gives short answers to all
{len({number for number, *_ in ANSWERS})}. Each file is a scenario. Its first comment has the question with its thread, the answer, and, after
"Missing", effects that ringsim does not model yet. A linked number leads to a command below that shows the answer.

{table()}

## The commands

In matrices, `inter_node.GBps` is the rate at which data leaves the busiest node. For a single ring that goes from node to node, GPU by GPU, it
equals the busbw of NCCL with one ring per NIC. `gpu0-7 x node0-2` means gpu0 of node0, node1 and node2, then gpu1 of each, and so on. A script
(`docs/results/make/questions.py build/tools/ringsim`) runs the commands and writes this page; a test compares them.

{entries}"""


if __name__ == "__main__":
    page.write_or_check(ROOT / "docs/guide/questions.md", text, __doc__)
