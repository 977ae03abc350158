#!/usr/bin/env python3
"""Writes the guide that answers users' questions, each with one command and its output.

Usage: docs/results/make/questions.py RINGSIM [--check]

Runs the commands and writes docs/guide/questions.md; with --check, compares the page instead and exits with code 1 if it differs.
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
    Question(3, "Why do more nodes lower the bandwidth of medium sizes, but not of the largest sizes?", "NVIDIA/nccl#1712",
             matrix("03-mid-sizes", "topology.nodes", "bytes", "busbw_GBps"),
             "A ring of K GPUs has 2(K-1) steps, and each step waits for a latency that does not depend on the size. "
             "Therefore, the bandwidth of small and medium sizes falls from row to row. The next command shows how much of "
             "the time these latencies take."),
    Question(3, "What limits an all-reduce of 16 MiB on 32 nodes?", "NVIDIA/nccl#1712",
             ["explain", f"{FOLDER}/03-mid-sizes.json", "--set", "topology.nodes=32", "--set", "collective.bytes=16 MiB"],
             "The latencies of 510 steps take 95 % of the time. With twice as many nodes, a ring needs messages of twice the "
             "size to reach the same bandwidth. Trees avoid this, and NCCL uses them "
             "unless a variable prevents it (`--set library.env.NCCL_ALGO=null` removes this variable).", until="\nThe critical path, from"),
    Question(5, "One pair of nodes has half the bandwidth of the other pairs. Which node is faulty?", "NVIDIA/nccl-tests#106",
             matrix("05-one-bad-pair", "collective.ranks", "algorithm", NODE_OUT),
             "The faulty node is node2, because every pair that contains it has half the bandwidth. A ring of all four nodes "
             "also has half the bandwidth (first row), so it does not show which node is faulty. `--cell bottleneck.link` "
             "prints the name of the adapter."),
    Question(1, "The busbw on two nodes is higher than the rate of my NICs. Is this a bug?",
             "NVIDIA/nccl#837, #946, NVIDIA/nccl-tests#22, #160, #196, #251",
             matrix("01-nccl", "topology.nodes", "algorithm", "busbw_GBps"),
             "No. busbw is calculated from the number of bytes that a ring sends, but on two nodes, trees send only half as "
             "many bytes out of a node. Here, each node has four NICs of 12 GB/s. The measured values with trees are 57, 32 "
             "and 30 GB/s (NVIDIA/nccl#527). They were measured over EFA, whose losses ringsim does not model for trees."),
    Question(8, "Why does latency between two sites halve the bandwidth of 32 GPUs, but not of 16?", "NVIDIA/nccl-tests#241",
             matrix("08-nccl", "ranks", "topology.fabric.uplink.latency", "busbw_GBps", "--set", "collective.bytes=8 GiB"),
             "With twice as many GPUs, a ring has twice as many steps, and each step has only half as much data to hide the "
             "latency. At 1 GiB, 16 and 32 GPUs both lose more than half of their bandwidth."),
    Question(9, "Two nodes are fast, even across racks, but three nodes in two racks are slow. Is oversubscription the cause?",
             "NVIDIA/nccl#1453",
             ["run", f"{FOLDER}/09-nccl.json", "--set", "network.routing=static"],
             "No. Oversubscription slows down two nodes across racks (one node per leaf) at least as much as three nodes. "
             "However, NCCL uses NVLSTree on two nodes and rings on three, which lose more if ECMP assigns several flows to "
             "the same cable: with `--set network.routing=ecmp`, two nodes reach 367 GB/s and three nodes 133 GB/s."),
    Question(10, "Why do I get 100, 70, 58 and 40 GB/s on 2, 3, 4 and 6 nodes?", "NVIDIA/nccl-tests#169",
             matrix("10-nccl", "topology.nodes", "network.routing", "busbw_GBps"),
             "ECMP assigns several flows to the same cable, and all ranks wait for these flows. The user's values are "
             "between the two columns, because several queue pairs per NIC average out collisions. ringsim does not model "
             "these queue pairs."),
    Question(12, "How can NVLS reach 480 GB/s if the wire provides 450 GB/s and a ring reaches 370 GB/s?",
             "NVIDIA/nccl#1374, #1455, #1442, NVIDIA/nccl-tests#212",
             matrix("12-nvls", "library.env.NCCL_ALGO", "bytes", "busbw_GBps"),
             "busbw is calculated from the number of bytes that a ring sends, which is 1.75 times the buffer on 8 GPUs. NVLS "
             "sends only 1.125 times the buffer, so a busbw of 460 GB/s corresponds to 296 GB/s on the wire. The measured "
             "values for NVLS are 321, 435, 470 and 482 GB/s."),
    Question(13, "When are LL, LL128 and Simple the fastest?", "NVIDIA/nccl#281, #1315, #756, #1847",
             matrix("13-protocols", "library.env.NCCL_PROTO", "bytes", "time_us", "--set", "topology.nodes=1"),
             "LL is the fastest for small messages because it has the shortest steps, but it uses only half of the "
             "bandwidth. Simple is the fastest for large messages because it uses the full bandwidth, but it has the longest "
             "steps. LL128 is between them."),
    Question(18, "Why does NCCL_CROSS_NIC=1 exceed the NVLink bound with 4 GPUs, but not with 8?", "NVIDIA/nccl#1411",
             ["run", f"{FOLDER}/18-nccl.json"],
             "With the value 0, NVLink limits both cases (measured without the variable: 164 GB/s). With the value 1 and four "
             "GPUs, a ring leaves a node through a different NIC than the one through which it enters: its last GPU sends to its "
             "own NIC instead of over NVLink (measured: 194 GB/s). With eight GPUs and four NICs, NCCL finds no faster rings. "
             "The scenario `18-cross-nic.json` explains the effect for one channel."),
    Question(19, "All NICs are on the other NUMA node. Does this halve the bandwidth of NCCL?", "NVIDIA/nccl-tests#347",
             ["run", f"{FOLDER}/19-nic-on-other-socket.json", "--set", "library.env.NCCL_NET_GDR_LEVEL=null"],
             "For a single GPU that is far from its NIC, yes (row 5, on the second machine). With all eight GPUs, only "
             "5 % is lost, because NCCL enters a node at a GPU next to a NIC and continues over NVLink."),
    Question(20, "What bandwidth should my cluster reach?",
             "NVIDIA/nccl-tests#119, #290, #309, NVIDIA/nccl#495",
             matrix("20-what-to-expect", "topology.node", "library", "busbw_GBps"),
             "NVIDIA's rule is 12 GB/s per 100 Gb/s NIC, 24 GB/s per 200 Gb/s NIC, and 46 to 48 GB/s per 400 Gb/s NIC. It "
             "holds if each NIC has a fast path to a GPU. Over EFA, aws-p4d reaches 94 % of the rule. A DGX-1V, whose "
             "adapters read GPU memory at 85 % of the PCIe rate, and the servers without NVLink reach less. For these servers, "
             "ringsim assumes NCCL_NET_DISABLE_INTRA=1, because it does not model NICs between the sockets of a node."),
    Question(20, "What should a particular cluster reach?", "the same",
             ["run", f"{FOLDER}/20-what-to-expect.json", "--set", "topology.node=dgx-a100"],
             "According to the rule, this cluster should reach 8 x 24 = 192 GB/s."),
    Question(22, "Which bucket size should I use for DDP on 10 GbE?", "pytorch/pytorch#118421, horovod/horovod#2468, #659",
             matrix("22-ddp-buckets", "training.regime.buckets.size", "topology.link.bandwidth", "time_us"),
             "At 10 Gb/s, the best size is 25 MiB. If the network is fast enough, smaller buckets are better, because only "
             "the last bucket is exposed. `--cell split_us.exposed_communication` prints the exposed time."),
    Question(24, "Why does the time stay the same if I change the bandwidth?", "astra-sim/astra-sim#207, simgrid/simgrid#338",
             ["explain", f"{FOLDER}/24-no-change.json", "--whatif", "topology.fabric.link.bandwidth=400 Gb/s", "--whatif",
              "calibration.scale_nvlink=2"],
             "Something else limits the time. For each change, the output explains why it has no effect.", until="\nThe critical path by"),
    Question(33, "Which rank of my job is late?", "made-up profiles of a job with four GPUs",
             ["trace", "show", *PROFILES],
             "Rank 2 is late. The other ranks wait about 0.9 ms for it in each all-reduce of 64 MiB; the second table shows "
             "the total waiting time per rank. [My job is slow](my-job-is-slow.md) explains how to record profiles."),
    Question(34, "Is my all-reduce as fast as it should be?", "the same profiles, compared with predictions for the machine",
             ["trace", "compare", "dgx-a100", *PROFILES],
             "At 64 MiB it is: the ranks spend the additional time waiting for rank 2. At 16 MiB, the all-reduce takes twice "
             "as long as predicted, although no rank is late."),
    Question(35, "FSDP, or tensor and pipeline parallelism: Llama 3 70B on 64 GPUs with a NIC of 400 Gb/s each?",
             "a common planning question; kernel efficiencies are assumed",
             ["plan", f"{FOLDER}/35-fsdp-or-tp-pp.json", "--within", "50%"],
             "FSDP alone (row 1) and the combination of tensor and pipeline parallelism (row 2) are equally fast. FSDP loses "
             "a quarter of the time to recomputation, because its activations do not fit in memory otherwise, but it hides "
             "its communication. The plan in row 2 loses as much time to tensor collectives and the pipeline bubble. FSDP "
             "across 8 nodes combined with tensor 8 gathers all weights for each micro-batch and cannot hide this. The "
             "fastest plan is in between: FSDP with tensor 4 takes 7.27 s without recomputation. Its simulation takes a "
             "minute, because its gathers share NVLink with tensor collectives.",
             until="\nTo run and explain"),
    Question(36, "How many experts should I put on each GPU?", "kernel efficiencies are assumed",
             ["plan", f"{FOLDER}/36-experts-per-gpu.json", "--set", "training.parallel.expert=[1,2,4,8]"],
             "For Mixtral's 8 experts on a node of 8 GPUs, one expert per GPU is best. With two experts (expert 4), a step "
             "takes 0.7 % longer, and each GPU stores 8.5 GB more. Four experts do not fit in memory. With two experts, "
             "dispatch and combine take 7 ms less. However, kernels that read the weights of two experts, each for half as "
             "many tokens, take 13 ms more, and the gradients of twice as many experts take another 4 ms.",
             until="\nTo run and explain"),
    Question(37, "How much throughput does context parallelism cost at 128 k tokens?", "kernel efficiencies are assumed",
             matrix("37-context", "training.workload.sequence", "training.parallel.context", "tokens_per_s"),
             "At 128 k tokens, the loss is 3 % with two ranks and 8 % with four. At 8 k tokens, it is 19 and 37 %. The "
             "reason is that keys and values grow linearly with the sequence length, while attention grows with its square. "
             "Use context parallelism if the model does not fit in memory otherwise, but not to increase speed."),
    Question(37, "How much does it cost if keys and values travel around a ring during attention?", "the same",
             matrix("37-ring", "training.workload.sequence", "training.parallel.context", "tokens_per_s"),
             "At 128 k tokens, the attention steps hide all hops. The loss is 0.7 % with two ranks and 1.8 % with four. Half "
             "of this loss comes from kernels that add up the results and gradients of the steps, and the other half comes "
             "from tensor collectives, which are smaller and more numerous. At 8 k tokens, a step takes less time than a "
             "hop. The loss is then 15 and 36 %. With two ranks, this is less than with gathers; with four, it is about the "
             "same, because each hop is a call with its own latency."),
    Question(38, "How many GPUs can a batch of fixed size use efficiently?",
             "strong scaling; kernel efficiencies are assumed",
             matrix("38-strong-scaling", "topology.nodes", "topology.fabric.link.bandwidth", "time_us"),
             "With 400 Gb/s NICs, all 64 GPUs can be used efficiently: they reach 95 % of ideal scaling. With 100 Gb/s NICs, "
             "16 GPUs reach 89 %, 32 reach 73 % and 64 reach 54 %. The reason is that the gradients and weights of each "
             "ring, 11.3 GB, take 452 ms on two NICs for any number of GPUs, whereas the passes of 64 GPUs take only 252 ms. "
             "`ringsim plot scenarios/questions/38-strong-scaling.csv --x ranks --y time_us --ideal -o scaling.svg` [plots "
             "this](training.md#strong-scaling)."),
]


def faster(arguments):
    """Uses the stored results for the matrix of an unchanged scenario; a test compares them with the simulation."""
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
    """The command, in lines of at most 110 characters."""
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
    return f"### {question.asks}\n\n({question.number}; {question.threads})\n\n{block}\n\n{textwrap.fill(question.answer, 120, break_on_hyphens=False)}\n"


def anchor(heading):
    """The anchor that GitHub generates."""
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

These questions come from issue threads of NCCL, nccl-tests and other projects. The table has short answers to all
{len({number for number, *_ in ANSWERS})} questions. The first comment in each scenario file contains the question with its thread, the answer, and, after
"Missing", effects that ringsim does not model yet. If a number is a link, it leads to a command that shows the answer.

{table()}

## The commands

In matrices, `inter_node.GBps` is the rate at which data leaves the busiest node. Some scenarios use a single ring that
visits gpu0 of each node, then gpu1 of each node, and so on, which is written as `gpu0-7 x node0-2`. For these rings,
`inter_node.GBps` equals the busbw of NCCL with one ring per NIC. The script
`docs/results/make/questions.py build/tools/ringsim` runs the commands and writes this page, and a test checks that the
page is up to date.

{entries}"""


if __name__ == "__main__":
    page.write_or_check(ROOT / "docs/guide/questions.md", text, __doc__)
