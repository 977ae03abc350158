#!/usr/bin/env python3
"""Makes the page that compares common statements about collectives and training with what ringsim predicts.

Usage: docs/results/make/claims.py RINGSIM [--check]

Runs the examples and writes docs/results/claims.md; with --check compares, exit code 1 where it differs.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
from typing import Callable, NamedTuple

import page

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = "scenarios/examples"


class Claim(NamedTuple):
    says: str
    verdict: str  # "Confirmed", "Quantified" or "Corrected": what follows is what the run shows
    arguments: list  # of `ringsim run`
    shows: Callable  # rows of the result -> text


def ringsim(arguments):
    done = subprocess.run([sys.argv[1], "run", *arguments], cwd=ROOT, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"ringsim run {shlex.join(arguments)}: {done.stderr}")
    return done.stdout


def rows_of(arguments):
    return json.loads(ringsim([*arguments, "--format", "json"]))["results"]


def exactly(row):
    """The words for it, if the closed form holds and the time is that of the form."""
    form = row["closed_form"]
    if not form["holds"] or form["ratio"] != 1:
        sys.exit(f"{row['algorithm']} of {row['ranks']} ranks: expected the time of {form['formula']}, found {form['ratio']} of it")
    return "to the picosecond"


def the(rows, **wanted):
    """The only row whose `point` has these values, by the last word of their paths."""
    def holds(row):
        point = {path.split(".")[-1]: value for path, value in row["point"].items()}
        return all(point.get(key) == value for key, value in wanted.items())
    found = [row for row in rows if holds(row)]
    if len(found) != 1:
        sys.exit(f"expected one row with {wanted}, found {len(found)}")
    return found[0]


def ms(row):
    return row["time_us"] / 1000


def per_cent(share):
    return f"{100 * share:.1f} %"


def listed(texts):
    """Three texts or more as a list in a sentence."""
    *first, last = texts
    return f"{', '.join(first)}, and {last}"


def data_parallel_step(rows):
    row = rows[0]
    split = row["split_us"]
    return (f"With 8 GPUs, a step takes {ms(row):.1f} ms. The master spends {split['compute'] / 1000:.1f} ms on computation and "
            f"{split['exposed_communication'] / 1000:.1f} ms waiting for messages. Together, the GPUs reach {per_cent(row['efficiency'])} of the "
            f"throughput of eight "
            f"independent GPUs. The closed form `{row['closed_form']['formula']}` is exact {exactly(row)}.")


def data_parallel_master(rows):
    master, others = rows[0]["by_rank"]
    total = [sum(each["memory"].values()) / 1e6 for each in (master, others)]
    return (f"With 8 GPUs, the master sends {master['sent_bytes'] / 1e6:.0f} MB per step, and each other GPU sends "
            f"{others['sent_bytes'] / 1e6:.0f} MB. The master needs {total[0]:.0f} MB for weights, gradients and incoming data, and each of the "
            f"others needs {total[1]:.0f} MB. The step is limited by the master's port, {rows[0]['bottleneck']['link']}.")


def server_grows(rows):
    return ("With 10 GB/s ports, 1 GiB takes " + listed(f"{ms(row):.0f} ms for K = {row['ranks']}" for row in rows) +
            f". The times match the formula plus the latency of both directions, {[exactly(row) for row in rows][0]}.")


def ring_stays(rows):
    limit = 2 * 2**30 / 10e9 * 1000
    return ("This is true only if latency is zero. With 10 GB/s ports, 1 GiB takes " +
            listed(f"{ms(row):.1f} ms for K = {row['ranks']}" for row in rows) +
            f". For comparison, 2p/b is {limit:.1f} ms. The simulated times match the formula plus 2(K-1) latencies, {[exactly(row) for row in rows][0]}. With "
            f"enough ranks, these latencies push the time above 2p/b.")


def ddp(rows):
    one, many = (next(row for row in rows if row["buckets"] == buckets) for buckets in (1, 25))
    return (f"With 8 GPUs and 102.4 MB of gradients, a step takes {ms(one):.3f} ms with a single bucket, which is reduced after the backward pass, "
            f"and {ms(many):.3f} ms with 25 buckets, which are reduced during it. Each GPU computes for {many['split_us']['compute'] / 1000:.0f} ms "
            f"per step. The initial broadcast is not part of a step, so these times do not include it.")


def loop(rows):
    row = rows[0]
    return (f"With ResNet-50 and 32 images on an A100 that reaches 14 % of its peak, a step takes {ms(row):.1f} ms, including "
            f"{row['split_us']['compute'] / 1000:.1f} ms of computation. The forward pass, the backward pass and the update run on one stream; "
            f"`--trace` shows each layer.")


def scales(rows):
    good = [row for row in rows if row["workload"] == "resnet50" and row["algorithm"] == "hierarchical"]
    return ("ResNet-50 on DGX A100 nodes with InfiniBand scales with an efficiency of " +
            listed(f"{per_cent(row['efficiency'])} on {row['ranks']} GPUs" for row in good) +
            f". This requires a fast network. For a slow one, see [buckets-slow-network](../../{EXAMPLES}/training/buckets-slow-network.json).")


SLOW = [{"rank": 3, "factor": 2}]
SERVER = {"name": "parameter_server", "servers": 1}


def server_row(rows, size, slow, start):
    return the(rows, parameters=size // 4, slow=slow, regime=SERVER if start is None else {**SERVER, "mode": "async", "start": start})


def stale(rows):
    sync, asynchronous = (server_row(rows, 10_000_000, SLOW, start) for start in (None, "staggered"))
    return (f"This run has 10 MB of gradients and 4 workers, one of which runs at half speed. A synchronous step takes {ms(sync):.1f} ms. With an "
            f"asynchronous server, the workers process the same number of samples in {ms(asynchronous):.1f} ms, but the weights that they use are "
            f"{asynchronous['staleness_mean']:.0f} updates old on average and at most {asynchronous['staleness_max']}.")


def one_thread(rows):
    def row(ranks, launch, order):
        return next(r for r in rows if r["ranks"] == ranks and r["point"]["training.host.launch"] == f"{launch} us"
                    and r["point"]["training.host.order"] == order)
    free, busy, layers = (row(8, *which) for which in ((0, "by_gpu"), (200, "by_gpu"), (200, "by_layer")))
    waits = [each["split_us"]["waiting_for_host"] / 1000 for each in busy["by_rank"]]
    return (f"With ResNet-50 and 64 images on 8 GPUs, a step takes {ms(free):.1f} ms if kernel launches take no time, and {ms(busy):.1f} ms if the "
            f"thread needs 200 us to launch a layer. The thread launches all kernels of one GPU before those of the next, so rank 1 waits "
            f"{waits[1]:.1f} ms for its launches and rank 7 waits {waits[7]:.1f} ms. If the thread launches each layer on all GPUs before the next layer, the "
            f"step takes {ms(layers):.1f} ms. On a single GPU, a step takes {ms(row(1, 0, 'by_gpu')):.1f} ms.")


def no_faster(rows):
    sync, staggered, together, at_random = (server_row(rows, 200_000_000, [], start) for start in (None, "staggered", "together", "random"))
    return (f"This depends on when the workers start. With 4 identical workers and 200 MB of gradients, a synchronous step takes {ms(sync):.1f} ms. "
            f"Asynchronous workers that start one after another need {ms(staggered):.1f} ms for the same number of samples, because one computes "
            f"while another sends. Workers that start at random times need {ms(at_random):.1f} ms. Workers that start at the same time need "
            f"{ms(together):.1f} ms, because they stay synchronized and gain nothing.")


def barrel(rows):
    waits = [(row["ranks"], row["split_us"]["waiting_for_others"] / 1000) for row in rows if row["training"] == "ddp"]
    return ("Each pass is delayed by a random time of 10 ms on average. The average time per step that a rank spends waiting for slower ranks is " +
            listed(f"{wait:.1f} ms with {ranks} GPUs" for ranks, wait in waits) +
            ". The average delay of the slowest of K ranks is 10 ms times 1 + 1/2 + ... + 1/K, so the wait grows with the logarithm of K.")


def reducer(rows):
    at_32 = {row["training"]: row for row in rows if row["ranks"] == 32}
    return (f"With 32 GPUs and random compute times, a step takes {ms(at_32['ddp']):.0f} ms with a ring and {ms(at_32['parameter_server']):.0f} ms "
            f"with one server. Exposed communication accounts for {at_32['parameter_server']['split_us']['exposed_communication'] / 1000:.0f} ms with "
            f"the server and {at_32['ddp']['split_us']['exposed_communication'] / 1000:.0f} ms with the ring.")


def busy_server(rows):
    on_time, late = (server_row(rows, 200_000_000, slow, None) for slow in ([], SLOW))
    return (f"This is not always true. A rank that runs at half speed does not delay the step if the server is busy with the other workers in the "
            f"meantime. With 4 workers and 200 MB of gradients, a step takes {ms(on_time):.3f} ms if all ranks are equally fast and {ms(late):.3f} ms "
            f"if one is slow.")


def model_parallel(rows):
    def shares(parts):
        return listed(f"{per_cent(row['efficiency'])} with {row['ranks']}" for row in rows
                      if row["point"]["training.regime.microbatches"] == parts and row["ranks"] > 1)
    last = the(rows, ranks=8, microbatches=1)
    waits = (last["split_us"]["waiting_for_others"] + last["split_us"]["exposed_communication"] + last["split_us"]["idle"]) / 1000
    return (f"The model is ResNet-50 with 32 images per GPU. If each batch passes through the GPUs as a whole, they reach only a fraction of the "
            f"throughput of independent GPUs: {shares(1)} GPUs. The reason is that each GPU waits while the others compute. With 8 GPUs, rank 0 "
            f"computes for {last['split_us']['compute'] / 1000:.1f} ms and waits for {waits:.1f} ms. With 32 microbatches per batch (GPipe), the GPUs "
            f"reach {shares(32)}. The rest is lost to the pipeline bubble, when not all GPUs have work, and to load imbalance, because the layers "
            f"cannot be divided evenly.")


def one_machine(rows):
    copies, chain, other = rows
    return (f"With 8 GPUs on one switch, a step takes {ms(copies):.1f} ms with DataParallel and {ms(other):.1f} ms with DistributedDataParallel. The "
            f"model, the batch and the ports are the same. If the master broadcasts the model and adds up the gradients in a chain, as "
            f"PyTorch does with NCCL, DataParallel takes {ms(chain):.1f} ms.")


def gpudirect(rows):
    with_it, without = rows
    return (f"If all GPUs of two DGX A100 nodes send 256 MiB each to the other node at the same time, each GPU reaches {with_it['busbw_GBps']:.1f} GB/s "
            f"with GPUDirect RDMA and {without['busbw_GBps']:.1f} GB/s without it. The bottleneck without it is {without['bottleneck']['link']}, "
            f"because all GPUs attached to a CPU share its memory bandwidth.")


def copies(rows):
    with_it, without = rows
    return (f"Between two GPUs in different DGX A100 nodes, 256 MiB takes {ms(with_it):.2f} ms directly from GPU memory and {ms(without):.2f} ms "
            f"through host memory. The two copies overlap, and the additional time is due to {without['bottleneck']['link']}, which both of them cross.")


def hyperplane(rows):
    by = {row["point"]["transport.gpudirect"]: row for row in rows if row["bytes"] == 2**30}
    return (f"For a 1 GiB NCCL all-reduce over two of these nodes, ringsim predicts {by[True]['busbw_GBps']:.1f} GB/s with GPUDirect "
            f"({per_cent(by[True]['busbw_GBps'] / 50)} of the cable rate) and {by[False]['busbw_GBps']:.1f} GB/s without it. The prediction is below "
            f"50 GB/s because PCIe gen3 x16 limits the four adapters to 48 GB/s, and adapters read V100 memory more slowly than that.")


def big_models(rows):
    alone = {row["workload"]: row["samples_per_s"] for row in rows if row["training"] == "single"}
    gains = [f"{row['samples_per_s'] / alone[row['workload']]:.1f} times ({row['workload']})"
             for row in rows if row["ranks"] == 64]
    return (f"Compared with a single A100, 64 A100 GPUs in eight nodes process {listed(gains)} as many samples per second. Each GPU computes at 14 "
            f"% of its peak.")


def centralized(rows):
    one, many = (the(rows, regime={"name": "parameter_server", "servers": servers}) for servers in (1, 16))
    return (f"With VGG-16 on 16 GPUs, a step takes {ms(one):.0f} ms with one separate server and {ms(many):.0f} ms with 16 servers that each store a "
            f"part of the model. Computation accounts for {one['split_us']['compute'] / 1000:.0f} ms in both cases.")


def decentralized(rows):
    ddp_row, *averaged = rows
    every = {row["point"]["training.regime"]["every"]: row for row in averaged}
    return (f"With BERT-large on 16 GPUs with 10 Gb/s ports, a step takes {ms(every[1]):.0f} ms if weights are averaged after every step, "
            f"{ms(every[4]):.0f} ms if they are averaged every 4 steps, and {ms(every[64]):.0f} ms if they are averaged every 64 steps. The gain is "
            f"large because the network is slow. Averaging after every step is slower "
            f"than DistributedDataParallel ({ms(ddp_row):.0f} ms), which sends during the backward pass.")


def seven(rows):
    one, by_cpu, node, server, asynchronous, sharded, nodes = rows
    return (f"The model is ResNet-50 with 128 images per V100. One GPU takes {ms(one):.1f} ms per step. If a CPU adds up the gradients of the 8 GPUs "
            f"in a node, a step takes {ms(by_cpu):.1f} ms, because {by_cpu['bottleneck']['link']} carries the copies of half of the GPUs. With an "
            f"all-reduce over NVLink, a step on the same GPUs takes {ms(node):.1f} ms. On two nodes, a step takes {ms(asynchronous):.1f} ms per "
            f"worker with an asynchronous server (the weights are {asynchronous['staleness_mean']:.0f} updates old), {ms(server):.1f} ms with a "
            f"synchronous server, {ms(sharded):.1f} ms with four synchronous servers that each store a part of the model, and {ms(nodes):.1f} ms with "
            f"an all-reduce. [Regimes](regimes.md) describes what each regime sends and where it computes, with pictures.")


def server_that_trains(rows):
    apart, among, apart_busy, among_busy = (
        the(rows, regime=regime, time=time) for time in ("0 us", "4 ms")
        for regime in ({"name": "parameter_server", "mode": "async", "servers": 1}, {"name": "parameter_server", "mode": "async"}))
    return (f"With ResNet-50 on 4 V100 and asynchronous updates, a worker's step takes {ms(among):.2f} ms if one of the four GPUs is also the server, "
            f"and {ms(apart):.2f} ms with a separate server. The former is faster because the gradients of the server's own GPU do not have to be "
            f"sent. If an update takes 4 ms, the steps take {ms(among_busy):.2f} and {ms(apart_busy):.2f} ms. The advantage shrinks because the "
            f"server's GPU runs all updates between its own kernels.")


def without_averaging(rows):
    all_together, gossip, meanwhile = rows[:3]
    return (f"With 8 GPUs and random compute times, a step takes {ms(all_together):.1f} ms if all workers average after every step, {ms(gossip):.1f} "
            f"ms if each averages with its two neighbors, and {ms(meanwhile):.1f} ms if this averaging overlaps with the next step.")


def on_workers(rows):
    server, ring, _ = (row for row in rows if row["ranks"] == 64)
    return (f"With ResNet-50 on 64 GPUs, a step takes {ms(ring):.1f} ms with a ring of workers and {ms(server):.1f} ms with a server. In both cases, "
            f"each GPU computes for {ring['split_us']['compute'] / 1000:.1f} ms.")


def server_in_parts(rows):
    parts = {row["job"]: row for row in rows}
    server = rows_of([*SERVER_IN_PARTS, "--set", "jobs=null", "--set",
                      'collective={"op":"all_reduce","algorithm":"parameter_server","bytes":"256 MiB"}'])[0]
    both = parts["gradients"]["time_us"] + parts["model"]["time_us"]
    if abs(both - server["time_us"]) > 1e-6:
        sys.exit(f"expected reduce and broadcast to take a server's {server['time_us']} us, found {both}")
    return (f"The exchange in each step consists of a reduce and a broadcast, which take {ms(parts['gradients']):.3f} and {ms(parts['model']):.3f} "
            f"ms. The sum equals the time of `parameter_server` for the same number of bytes, {ms(server):.3f} ms, to the picosecond. A scatter is "
            f"needed only if the server also distributes the samples. In this run, it takes {ms(parts['main']):.3f} ms, and the total is "
            f"{ms(parts['all']):.3f} ms.")


def last_step(_):
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        ringsim([*HALVING, "--trace", str(trace)])
        steps = [each["dur"] / 1000 for each in json.loads(trace.read_text())["traceEvents"] if each.get("cat") == "link"]
    return (f"With 8 GPUs and 1 GiB, the six steps of the critical path take {listed(f'{each:.1f}' for each in steps)} ms. The first and the last "
            f"step each send half of the buffer, and each takes {per_cent(steps[-1] / sum(steps))} of the time.")


def thirteen(rows):
    eight, many = rows[0], rows[2]
    return (f"An all-reduce of 64 MiB takes {ms(many):.2f} ms with 13 GPUs and {ms(eight):.2f} ms with 8. The transfers from and to the five extra "
            f"GPUs account for {per_cent(1 - ms(eight) / ms(many))} of the time.")


def long_ring(rows):
    small, large = ({(row["algorithm"], row["ranks"]): ms(row) for row in rows if row["bytes"] == size} for size in (2**10, 2**30))
    return (f"On 64 GPUs, 1 GiB takes {large['ring', 64]:.1f} ms with a ring and {large['halving_doubling', 64]:.1f} ms with halving-doubling. On "
            f"4096 GPUs, these times are {large['ring', 4096]:.1f} and {large['halving_doubling', 4096]:.1f} ms. The difference is largest for small "
            f"messages. On 4096 GPUs, 1 KiB takes {small['ring', 4096]:.2f} ms with a ring and {small['halving_doubling', 4096]:.3f} ms with "
            f"halving-doubling, a factor of {small['ring', 4096] / small['halving_doubling', 4096]:.0f}, because a ring incurs 2(K-1) latencies and "
            f"halving-doubling only 2 log2(K).")


def collectives(rows):
    by = {(row["collective"], row["ranks"]): row for row in rows if row["point"]["topology.kind"] == "ring"}
    whole, first, second = (ms(by[op, 8]) for op in ("all_reduce", "reduce_scatter", "all_gather"))
    return (f"For 8 MiB on a ring of 8 GPUs, the reduce-scatter takes {first:.4f} ms and the all-gather takes {second:.4f} ms. The sum equals the "
            f"time of the all-reduce, {whole:.4f} ms. `ringsim schedule picture` draws each of them step by step.")


SERVER_IN_PARTS = [f"{EXAMPLES}/collectives/server-in-parts.json"]
TRAINING, STAR = f"{EXAMPLES}/training", "scenarios/star.json"
DP = f"{TRAINING}/data-parallel.json"
HALVING = [STAR, "--set", 'collective.algorithm="halving_doubling"', "--set", 'network.model="fair"', "--set", 'collective.bytes="1 GiB"']

BIG = [{"model": model, "batch": 16, "compute": {"flops": "156 TFLOP/s", "efficiency": "14%"}}
       for model in ("nasnet_a_large", "bert_large", "gpt2_xl")]


def star(algorithm, *more):
    settings = [f'collective.algorithm={algorithm}', 'network.model="fair"', *more]
    return [STAR, *(word for each in settings for word in ("--set", each))]


CLAIMS = {
    "Training on one machine": [
        Claim("The training loop consists of a forward pass, a loss, a backward pass and an update.", "Quantified",
              [f"{TRAINING}/dgx-a100.json", "--set", "topology.nodes=1", "--set", 'training.regime="single"', "--set",
               'training.workload={"model":"resnet50","batch":32,"compute":{"flops":"156 TFLOP/s","efficiency":"14%"}}'], loop),
        Claim("In DataParallel, the master scatters the batch, broadcasts the model, gathers the outputs, scatters their losses, gathers the "
              "gradients and updates the model.", "Quantified", [DP, "--set", "topology.ranks=8"], data_parallel_step),
        Claim("The master has a higher load.", "Quantified", [DP, "--set", "topology.ranks=8", "--explain"], data_parallel_master),
        Claim("A single process on one CPU core drives all GPUs.", "Quantified", [f"{TRAINING}/one-thread.json", "--explain"], one_thread),
        Claim("DistributedDataParallel is faster than DataParallel on one machine.", "Confirmed",
              [DP, "--set", "topology.ranks=8", "--set",
               'training.regime=[{"name":"data_parallel","algorithm":"direct","loss":"1 ms"},'
               '{"name":"data_parallel","algorithm":{"name":"chain","segments":64},"loss":"1 ms"},{"name":"ddp","algorithm":"ring"}]'],
              one_machine),
        Claim("Model parallelism scales poorly, because the parts of a model on different GPUs wait for each other.", "Quantified",
              [f"{TRAINING}/model-parallel.json"], model_parallel),
    ],
    "Parameter server and ring": [
        Claim("With a parameter server, an exchange takes T = 2(K-1) p/b, which grows with K.", "Confirmed",
              star('"parameter_server"', "topology.ranks=[2,8,64]", 'collective.bytes="1 GiB"'), server_grows),
        Claim("A ring sends p/K in each of 2(K-1) steps, so T = 2(K-1) p/(Kb), which is below 2p/b for any K.", "Corrected",
              star('"ring"', "topology.ranks=[2,8,64,4096]", 'collective.bytes="1 GiB"'), ring_stays),
        Claim("A parameter server performs a scatter, a reduce and a broadcast.", "Corrected", SERVER_IN_PARTS,
              server_in_parts),
        Claim("Workers that average gradients among themselves do not need a server (PyTorch DDP, MultiWorkerMirroredStrategy).", "Quantified",
              [f"{TRAINING}/server-or-ring.json"], on_workers),
    ],
    "Synchronous and asynchronous": [
        Claim("There are seven ways to train: one GPU; several GPUs and their CPU; one node with all-reduce; asynchronous, synchronous and sharded "
              "parameter servers; several nodes with all-reduce.", "Quantified", [f"{TRAINING}/seven-regimes.json"], seven),
        Claim("In DistributedDataParallel, rank 0 broadcasts the model once. Each GPU then processes its own data, and the gradients are "
              "all-reduced.", "Quantified", [f"{TRAINING}/buckets.json"], ddp),
        Claim("Data parallelism scales well.", "Quantified", [f"{TRAINING}/dgx-a100.json"], scales),
        Claim("A synchronous update waits for the slowest worker; an asynchronous one does not, but its gradients are stale.", "Quantified",
              [f"{TRAINING}/async-server.json"], stale),
        Claim("Asynchronous updates are faster.", "Corrected", [f"{TRAINING}/async-server.json"], no_faster),
        Claim("The more GPUs there are, the longer they wait for the slowest one (the barrel effect).", "Quantified", [f"{TRAINING}/stragglers.json"],
              barrel),
        Claim("The reducer is a bottleneck.", "Quantified", [f"{TRAINING}/stragglers.json"], reducer),
        Claim("A straggler lengthens the step by its delay.", "Corrected", [f"{TRAINING}/async-server.json"], busy_server),
    ],
    "Centralized and decentralized": [
        Claim("In centralized training, a server averages the gradients when all have arrived and sends back new weights.", "Quantified",
              [f"{TRAINING}/parameter-server.json"], centralized),
        Claim("The server can be one of the workers.", "Quantified", [f"{TRAINING}/async-master.json"], server_that_trains),
        Claim("In decentralized training, workers average their weights every few steps. This is slightly faster, because machines communicate "
              "less.", "Quantified",
              [f"{TRAINING}/local-sgd.json"], decentralized),
        Claim("In decentralized training, a worker does not have to wait for all others.", "Quantified", [f"{TRAINING}/gossip.json"], without_averaging),
    ],
    "Hardware requirements": [
        Claim("Full speed requires NVLink, InfiniBand and GPUDirect RDMA.", "Quantified",
              [f"{EXAMPLES}/machines/gpudirect-all.json", "--set", 'topology.node="dgx-a100"'], gpudirect),
        Claim("Without RDMA, data is copied twice, from GPU to CPU and from CPU to adapter.", "Quantified",
              [f"{EXAMPLES}/machines/gpudirect-pair.json", "--set", 'topology.node="dgx-a100"'], copies),
        Claim("Between Hyperplane V100 nodes, 42 GB/s was measured out of 4 x 100 Gb/s (50 GB/s).", "Quantified",
              [f"{EXAMPLES}/library/hyperplane-v100.json"], hyperplane),
        Claim("Multi-node training is useful for NasNet, BERT and GPT-2.", "Quantified",
              [f"{TRAINING}/dgx-a100.json", "--set", "topology.nodes=[1,8]", "--set", f"training.workload={json.dumps(BIG)}", "--set",
               'training.regime=["single",{"name":"ddp","algorithm":"hierarchical"}]'], big_models),
    ],
    "Collectives": [
        Claim("An all-reduce is a reduce-scatter followed by an all-gather.", "Confirmed", [f"{EXAMPLES}/collectives/ring-collectives.json"], collectives),
        Claim("Halving-doubling has no single bottleneck and uses both directions; the last step sends a lot of data.", "Quantified",
              HALVING, last_step),
        Claim("With 13 servers, the five extra ones send all their data before the exchange and receive the result after it. This takes a huge share "
              "of the time.",
              "Quantified", [f"{EXAMPLES}/algorithms/thirteen-ranks.json"], thirteen),
        Claim("A ring reaches full bandwidth at medium scale, but long rings are slower.", "Quantified",
              star('["ring","halving_doubling"]', "topology.ranks=[64,4096]", 'collective.bytes=["1 KiB","1 GiB"]'), long_ring),
    ],
}


def entry(claim):
    text = f"### {claim.says}\n\n"
    text += f"**{claim.verdict}.** {claim.shows(rows_of(claim.arguments))}\n"
    return text + f"\n    ringsim run {shlex.join(claim.arguments)}\n"


def text():
    sections = "\n".join(f"## {title}\n\n" + "\n".join(entry(claim) for claim in claims) for title, claims in CLAIMS.items())
    return f"""# Common claims, checked with ringsim

Many public texts explain data parallelism, parameter servers, ring all-reduce, halving-doubling,
DistributedDataParallel and GPUDirect RDMA. This page lists common claims from these texts. For each claim, a run confirms,
quantifies or corrects it. `docs/results/make/claims.py build/tools/ringsim` generates this page, and a test checks that it is up to date.

{sections}"""


if __name__ == "__main__":
    page.write_or_check(ROOT / "docs/results/claims.md", text, __doc__)
