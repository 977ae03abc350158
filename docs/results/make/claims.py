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


def data_parallel_step(rows):
    row = rows[0]
    split = row["split_us"]
    return (f"8 GPUs: the step takes {ms(row):.1f} ms. For {split['compute'] / 1000:.1f} of these the master computes, and for "
            f"{split['exposed_communication'] / 1000:.1f} it waits for messages. The GPUs reach {per_cent(row['efficiency'])} of the "
            f"throughput of eight separate GPUs. The closed form `{row['closed_form']['formula']}` is exact {exactly(row)}.")


def data_parallel_master(rows):
    master, others = rows[0]["by_rank"]
    total = [sum(each["memory"].values()) / 1e6 for each in (master, others)]
    return (f"8 GPUs: the master sends {master['sent_bytes'] / 1e6:.0f} MB in a step and each other GPU "
            f"{others['sent_bytes'] / 1e6:.0f}; it needs {total[0]:.0f} MB for weights, gradients and incoming data, the others "
            f"{total[1]:.0f} MB. Its port, {rows[0]['bottleneck']['link']}, limits the step.")


def server_grows(rows):
    return ("1 GiB over ports of 10 GB/s: " + ", ".join(f"{ms(row):.0f} ms for K = {row['ranks']}" for row in rows) +
            f". The times match the form plus the latency of both directions, {[exactly(row) for row in rows][0]}.")


def ring_stays(rows):
    limit = 2 * 2**30 / 10e9 * 1000
    return ("This is true only without latency. 1 GiB over ports of 10 GB/s: " +
            ", ".join(f"{ms(row):.1f} ms for K = {row['ranks']}" for row in rows) +
            f"; 2p/b is {limit:.1f}. The simulation matches the form plus 2(K-1) latencies, {[exactly(row) for row in rows][0]}. With "
            f"enough ranks, these make it longer than 2p/b.")


def ddp(rows):
    one, many = (next(row for row in rows if row["buckets"] == buckets) for buckets in (1, 25))
    return (f"8 GPUs, 102.4 MB of gradients: with one bucket, reduced after the backward pass, the step takes {ms(one):.3f} ms; with 25 "
            f"buckets, reduced during the backward pass, {ms(many):.3f}. Each GPU computes {many['split_us']['compute'] / 1000:.0f} ms. The "
            "broadcast at the start belongs to no step and is not in these times.")


def loop(rows):
    row = rows[0]
    return (f"ResNet-50, 32 images, an A100 that reaches 14 % of its peak: the step takes {ms(row):.1f} ms, "
            f"of which computing takes {row['split_us']['compute'] / 1000:.1f} ms. Forward pass, backward pass and update are the tasks of one stream; "
            "`--trace` shows each layer.")


def scales(rows):
    good = [row for row in rows if row["workload"] == "resnet50" and row["algorithm"] == "hierarchical"]
    return ("ResNet-50 on DGX A100 with InfiniBand: " +
            ", ".join(f"{per_cent(row['efficiency'])} on {row['ranks']} GPUs" for row in good) +
            ". This requires a fast network: [buckets-slow-network]"
            f"(../../{EXAMPLES}/training/buckets-slow-network.json) shows a slow one.")


SLOW = [{"rank": 3, "factor": 2}]
SERVER = {"name": "parameter_server", "servers": 1}


def server_row(rows, size, slow, start):
    return the(rows, parameters=size // 4, slow=slow, regime=SERVER if start is None else {**SERVER, "mode": "async", "start": start})


def stale(rows):
    sync, asynchronous = (server_row(rows, 10_000_000, SLOW, start) for start in (None, "staggered"))
    return (f"4 workers, one of them half as fast, 10 MB: a synchronous step takes {ms(sync):.1f} ms; an asynchronous server needs "
            f"{ms(asynchronous):.1f} ms for as many samples. The price: an update is computed from weights that are "
            f"{asynchronous['staleness_mean']:.0f} updates old on average, {asynchronous['staleness_max']} at most.")


def one_thread(rows):
    def row(ranks, launch, order):
        return next(r for r in rows if r["ranks"] == ranks and r["point"]["training.host.launch"] == f"{launch} us"
                    and r["point"]["training.host.order"] == order)
    free, busy, layers = (row(8, *which) for which in ((0, "by_gpu"), (200, "by_gpu"), (200, "by_layer")))
    waits = [each["split_us"]["waiting_for_host"] / 1000 for each in busy["by_rank"]]
    return (f"ResNet-50, 64 images on 8 GPUs: {ms(free):.1f} ms if launches take no time, {ms(busy):.1f} if the thread takes 200 us per "
            f"layer. The thread launches on one GPU after the other, so rank 1 waits {waits[1]:.1f} ms for it and rank 7 {waits[7]:.1f}. If "
            f"it launches layer by layer on all GPUs, the step takes {ms(layers):.1f}. One GPU alone: {ms(row(1, 0, 'by_gpu')):.1f}.")


def no_faster(rows):
    sync, staggered, together, at_random = (server_row(rows, 200_000_000, [], start) for start in (None, "staggered", "together", "random"))
    return (f"It depends on when the workers begin. 4 equal workers, 200 MB: a synchronous step takes {ms(sync):.1f} ms. Asynchronous "
            f"workers that begin one after another need {ms(staggered):.1f} for as many samples, because one computes while another "
            f"sends. Workers that begin at random need {ms(at_random):.1f}. Workers that begin together need {ms(together):.1f}: they stay "
            "together and gain nothing.")


def barrel(rows):
    waits = [(row["ranks"], row["split_us"]["waiting_for_others"] / 1000) for row in rows if row["training"] == "ddp"]
    return ("Each pass takes an additional random time, 10 ms on average. On average over the steps, a rank waits for a slower one for " +
            ", ".join(f"{wait:.1f} ms with {ranks} GPUs" for ranks, wait in waits) +
            ". The slowest of K ranks is late by 10 ms times 1 + 1/2 + ... + 1/K on average, including its own 10 ms: a logarithm.")


def reducer(rows):
    at_32 = {row["training"]: row for row in rows if row["ranks"] == 32}
    return (f"32 GPUs with passes of random length: {ms(at_32['ddp']):.0f} ms with a ring, {ms(at_32['parameter_server']):.0f} with one "
            f"server. With the server, {at_32['parameter_server']['split_us']['exposed_communication'] / 1000:.0f} ms of the step are exposed "
            f"communication; with the ring, {at_32['ddp']['split_us']['exposed_communication'] / 1000:.0f}.")


def busy_server(rows):
    on_time, late = (server_row(rows, 200_000_000, slow, None) for slow in ([], SLOW))
    return (f"Not always: a rank that is half as fast costs nothing if the server is busy with the other workers during its delay. "
            f"4 workers, 200 MB: "
            f"{ms(on_time):.3f} ms with equal ranks, {ms(late):.3f} with a slow one.")


def model_parallel(rows):
    def shares(parts):
        return ", ".join(f"{per_cent(row['efficiency'])} with {row['ranks']}" for row in rows
                         if row["point"]["training.regime.microbatches"] == parts and row["ranks"] > 1)
    last = the(rows, ranks=8, microbatches=1)
    waits = (last["split_us"]["waiting_for_others"] + last["split_us"]["exposed_communication"] + last["split_us"]["idle"]) / 1000
    return (f"ResNet-50, 32 images per GPU. With whole batches, one after the other, the GPUs reach {shares(1)} GPUs of their separate "
            f"throughput, because each waits until the others are done; rank 0 of 8 computes {last['split_us']['compute'] / 1000:.1f} ms and "
            f"waits {waits:.1f}. With 32 microbatches per batch (GPipe): {shares(32)}. The rest is idle time at the beginning and the "
            "end, when not all GPUs have work, and imbalance of layers that do not divide evenly.")


def one_machine(rows):
    one, other = rows
    return (f"8 GPUs on one switch: {ms(one):.1f} ms with DataParallel, {ms(other):.1f} with DistributedDataParallel and the same "
            f"model, batch and ports.")


def gpudirect(rows):
    with_it, without = rows
    return (f"All GPUs of two DGX A100 send to the other node at once, 256 MiB each: {with_it['busbw_GBps']:.1f} GB/s per GPU with "
            f"GPUDirect RDMA, {without['busbw_GBps']:.1f} without. The limit is then {without['bottleneck']['link']}, because the GPUs of one "
            "CPU share its memory.")


def copies(rows):
    with_it, without = rows
    return (f"One pair of DGX A100 GPUs, 256 MiB: {ms(with_it):.2f} ms directly from GPU memory, {ms(without):.2f} through host "
            f"memory. The two copies overlap; the additional time is spent on {without['bottleneck']['link']}, which both cross.")


def hyperplane(rows):
    by = {row["point"]["transport.gpudirect"]: row for row in rows if row["bytes"] == 2**30}
    return (f"NCCL's all-reduce over two such nodes, 1 GiB: {by[True]['busbw_GBps']:.1f} GB/s predicted with GPUDirect "
            f"({per_cent(by[True]['busbw_GBps'] / 50)} of the cables), {by[False]['busbw_GBps']:.1f} without. The prediction is below the "
            "cables' 50 because of PCIe gen3 x16 (48 GB/s) and the rate at which adapters read V100 memory.")


def big_models(rows):
    alone = {row["workload"]: row["samples_per_s"] for row in rows if row["training"] == "single"}
    gains = [f"{row['workload']} {row['samples_per_s'] / alone[row['workload']]:.1f} times"
             for row in rows if row["ranks"] == 64]
    return (f"Samples per second of 64 A100 in eight nodes, compared with one A100 that computes at 14 % of its peak: {', '.join(gains)}.")


def centralized(rows):
    one, many = (the(rows, regime={"name": "parameter_server", "servers": servers}) for servers in (1, 16))
    return (f"VGG-16 on 16 GPUs: {ms(one):.0f} ms with one separate server, {ms(many):.0f} with 16 servers that each have a part of the "
            f"model, for {one['split_us']['compute'] / 1000:.0f} ms of computation.")


def decentralized(rows):
    ddp_row, *averaged = rows
    every = {row["point"]["training.regime"]["every"]: row for row in averaged}
    return (f"BERT-large, 16 GPUs, ports of 10 Gb/s: {ms(every[1]):.0f} ms with an average after every step, {ms(every[4]):.0f} with one "
            f"every 4 steps, {ms(every[64]):.0f} with one every 64: on a slow network the gain is large. Averaging after every step is slower "
            f"than DistributedDataParallel ({ms(ddp_row):.0f} ms), which sends during the backward pass.")


def seven(rows):
    one, by_cpu, node, server, asynchronous, sharded, nodes = rows
    return (f"ResNet-50, 128 images per V100. One GPU: {ms(one):.1f} ms. The 8 GPUs of a node whose CPU adds up the gradients: "
            f"{ms(by_cpu):.1f}, because {by_cpu['bottleneck']['link']} carries all copies of one half. The same GPUs with an all-reduce over "
            f"NVLink: {ms(node):.1f}. On two nodes: an asynchronous server, {ms(asynchronous):.1f} per step of a worker, with weights "
            f"{asynchronous['staleness_mean']:.0f} updates old; a synchronous server, {ms(server):.1f}; four synchronous servers that each have "
            f"a part of the model, {ms(sharded):.1f}; an all-reduce, {ms(nodes):.1f}. [regimes](regimes.md) says for each what is sent and where "
            "computation happens, with a picture.")


def server_that_trains(rows):
    apart, among, apart_busy, among_busy = (
        the(rows, regime=regime, time=time) for time in ("0 us", "4 ms")
        for regime in ({"name": "parameter_server", "mode": "async", "servers": 1}, {"name": "parameter_server", "mode": "async"}))
    return (f"4 V100, ResNet-50, asynchronous: {ms(among):.2f} ms per step of a worker if one of the four is also the server, and "
            f"{ms(apart):.2f} with a separate server, because the gradients of the master are not sent. If an update takes 4 ms, "
            f"{ms(among_busy):.2f} and {ms(apart_busy):.2f}, because the master's GPU makes all updates between its own kernels.")


def without_averaging(rows):
    all_together, gossip, meanwhile = rows[:3]
    return (f"8 GPUs with passes of random length: {ms(all_together):.1f} ms if all average after every step, {ms(gossip):.1f} if each "
            f"averages with its two neighbors, {ms(meanwhile):.1f} if it does so during the next step.")


def on_workers(rows):
    server, ring, _ = (row for row in rows if row["ranks"] == 64)
    return (f"ResNet-50 on 64 GPUs: {ms(ring):.1f} ms with a ring of workers, {ms(server):.1f} with a server; a GPU computes for "
            f"{ring['split_us']['compute'] / 1000:.1f} of these.")


def server_in_parts(rows):
    parts = {row["job"]: row for row in rows}
    server = rows_of([*SERVER_IN_PARTS, "--set", "jobs=null", "--set",
                      'collective={"op":"all_reduce","algorithm":"parameter_server","bytes":"256 MiB"}'])[0]
    both = parts["gradients"]["time_us"] + parts["model"]["time_us"]
    if abs(both - server["time_us"]) > 1e-6:
        sys.exit(f"expected reduce and broadcast to take a server's {server['time_us']} us, found {both}")
    return (f"The exchange of a step is reduce and broadcast: {ms(parts['gradients']):.3f} and {ms(parts['model']):.3f} ms. Their sum is "
            f"the time of `parameter_server` for as many bytes, {ms(server):.3f}, to the picosecond. A scatter comes first only if the "
            f"server also hands out the samples: {ms(parts['main']):.3f} ms here, {ms(parts['all']):.3f} in all.")


def last_step(_):
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        ringsim([*HALVING, "--trace", str(trace)])
        steps = [each["dur"] / 1000 for each in json.loads(trace.read_text())["traceEvents"] if each.get("cat") == "link"]
    return (f"8 GPUs, 1 GiB: the six steps of the critical path take {', '.join(f'{each:.1f}' for each in steps)} ms. The first and the "
            f"last each carry half of the buffer and take {per_cent(steps[-1] / sum(steps))} of the time.")


def thirteen(rows):
    eight, many = rows[0], rows[2]
    return (f"64 MiB: {ms(many):.2f} ms with 13 GPUs, {ms(eight):.2f} with 8. The five extra GPUs, which send everything before and "
            f"receive everything after, account for {per_cent(1 - ms(eight) / ms(many))} of the time.")


def long_ring(rows):
    small, large = ({(row["algorithm"], row["ranks"]): ms(row) for row in rows if row["bytes"] == size} for size in (2**10, 2**30))
    return (f"1 GiB on 64 GPUs: {large['ring', 64]:.1f} ms with a ring, {large['halving_doubling', 64]:.1f} with halving-doubling; on 4096 "
            f"{large['ring', 4096]:.1f} and {large['halving_doubling', 4096]:.1f}. 1 KiB on 4096: {small['ring', 4096]:.2f} ms and "
            f"{small['halving_doubling', 4096]:.3f}, a factor of {small['ring', 4096] / small['halving_doubling', 4096]:.0f}: a ring has "
            "2(K-1) latencies, halving-doubling 2 log2(K).")


def collectives(rows):
    by = {(row["collective"], row["ranks"]): row for row in rows if row["point"]["topology.kind"] == "ring"}
    whole, first, second = (ms(by[op, 8]) for op in ("all_reduce", "reduce_scatter", "all_gather"))
    return (f"On a ring of 8, 8 MiB: the {first:.4f} ms of reduce-scatter and the {second:.4f} of all-gather sum to all-reduce, {whole:.4f}. "
            "`ringsim schedule picture` draws each, step by step.")


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
        Claim("The loop of training: forward pass, loss, backward pass, update.", "Quantified",
              [f"{TRAINING}/dgx-a100.json", "--set", "topology.nodes=1", "--set", 'training.regime="single"', "--set",
               'training.workload={"model":"resnet50","batch":32,"compute":{"flops":"156 TFLOP/s","efficiency":"14%"}}'], loop),
        Claim("DataParallel: the master scatters the batch, broadcasts the model, gathers outputs, scatters their losses, gathers the "
              "gradients and updates.", "Quantified", [DP, "--set", "topology.ranks=8"], data_parallel_step),
        Claim("The master has more load.", "Quantified", [DP, "--set", "topology.ranks=8", "--explain"], data_parallel_master),
        Claim("One process drives all GPUs, with one CPU core.", "Quantified", [f"{TRAINING}/one-thread.json", "--explain"], one_thread),
        Claim("DistributedDataParallel is faster than DataParallel on one machine.", "Confirmed",
              [DP, "--set", "topology.ranks=8", "--set",
               'training.regime=[{"name":"data_parallel","loss":"1 ms"},{"name":"ddp","algorithm":"ring"}]'], one_machine),
        Claim("Model parallelism: parts of a model on different GPUs wait for each other, and scale poorly.", "Quantified",
              [f"{TRAINING}/model-parallel.json"], model_parallel),
    ],
    "Parameter server and ring": [
        Claim("A parameter server needs T = 2(K-1) p/b, which grows with K.", "Confirmed",
              star('"parameter_server"', "topology.ranks=[2,8,64]", 'collective.bytes="1 GiB"'), server_grows),
        Claim("A ring sends p/K in each of 2(K-1) steps: T = 2(K-1) p/(Kb), below 2p/b for any K.", "Corrected",
              star('"ring"', "topology.ranks=[2,8,64,4096]", 'collective.bytes="1 GiB"'), ring_stays),
        Claim("A parameter server is scatter, reduce and broadcast.", "Corrected", SERVER_IN_PARTS,
              server_in_parts),
        Claim("Workers that average among themselves need no server (PyTorch DDP, MultiWorkerMirroredStrategy).", "Quantified",
              [f"{TRAINING}/server-or-ring.json"], on_workers),
    ],
    "Synchronous and asynchronous": [
        Claim("There are seven ways: one GPU; GPUs and their CPU; a node with all-reduce; asynchronous, synchronous and sharded parameter "
              "servers; several nodes with all-reduce.", "Quantified", [f"{TRAINING}/seven-regimes.json"], seven),
        Claim("DistributedDataParallel: rank 0 broadcasts the model once; then every GPU has its own data, and gradients are "
              "all-reduced.", "Quantified", [f"{TRAINING}/buckets.json"], ddp),
        Claim("Data parallelism scales well.", "Quantified", [f"{TRAINING}/dgx-a100.json"], scales),
        Claim("A synchronous update waits for the slowest; an asynchronous one does not, and its gradients are stale.", "Quantified",
              [f"{TRAINING}/async-server.json"], stale),
        Claim("Asynchronous updates are faster.", "Corrected", [f"{TRAINING}/async-server.json"], no_faster),
        Claim("The barrel effect: the more GPUs, the longer all wait for the slowest.", "Quantified", [f"{TRAINING}/stragglers.json"],
              barrel),
        Claim("The reducer is a bottleneck.", "Quantified", [f"{TRAINING}/stragglers.json"], reducer),
        Claim("A straggler costs its delay.", "Corrected", [f"{TRAINING}/async-server.json"], busy_server),
    ],
    "Centralized and decentralized": [
        Claim("Centralized: gradients go to a server, are averaged once all are there, and new weights come back.", "Quantified",
              [f"{TRAINING}/parameter-server.json"], centralized),
        Claim("The server can be one of the workers.", "Quantified", [f"{TRAINING}/async-master.json"], server_that_trains),
        Claim("Decentralized: each trains several steps, then weights are averaged; a bit faster, because machines communicate less.", "Quantified",
              [f"{TRAINING}/local-sgd.json"], decentralized),
        Claim("Decentralized, without waiting for all.", "Quantified", [f"{TRAINING}/gossip.json"], without_averaging),
    ],
    "What machines need": [
        Claim("Full speed needs NVLink, InfiniBand and GPUDirect RDMA.", "Quantified",
              [f"{EXAMPLES}/machines/gpudirect-all.json", "--set", 'topology.node="dgx-a100"'], gpudirect),
        Claim("Without RDMA data is copied twice: from GPU to CPU, from CPU to adapter.", "Quantified",
              [f"{EXAMPLES}/machines/gpudirect-pair.json", "--set", 'topology.node="dgx-a100"'], copies),
        Claim("Hyperplane V100: of 4 x 100 Gb/s, 50 GB/s, 42 GB/s were measured between nodes.", "Quantified",
              [f"{EXAMPLES}/library/hyperplane-v100.json"], hyperplane),
        Claim("Such training is useful for NasNet, BERT and GPT-2.", "Quantified",
              [f"{TRAINING}/dgx-a100.json", "--set", "topology.nodes=[1,8]", "--set", f"training.workload={json.dumps(BIG)}", "--set",
               'training.regime=["single",{"name":"ddp","algorithm":"hierarchical"}]'], big_models),
    ],
    "Collectives": [
        Claim("All-reduce is reduce-scatter and all-gather.", "Confirmed", [f"{EXAMPLES}/collectives/ring-collectives.json"], collectives),
        Claim("Halving-doubling has no single bottleneck and uses both directions; the last step sends much data.", "Quantified",
              HALVING, last_step),
        Claim("13 servers: the five beyond eight send everything before and receive everything after; their share of the time is huge.",
              "Quantified", [f"{EXAMPLES}/algorithms/thirteen-ranks.json"], thirteen),
        Claim("A ring has full bandwidth at medium scale; long rings lose.", "Quantified",
              star('["ring","halving_doubling"]', "topology.ranks=[64,4096]", 'collective.bytes=["1 KiB","1 GiB"]'), long_ring),
    ],
}


def entry(claim):
    text = f"### {claim.says}\n\n"
    text += f"**{claim.verdict}.** {claim.shows(rows_of(claim.arguments))}\n"
    return text + f"\n    ringsim run {shlex.join(claim.arguments)}\n"


def text():
    sections = "\n".join(f"## {title}\n\n" + "\n".join(entry(claim) for claim in claims) for title, claims in CLAIMS.items())
    return f"""# Common claims, and what ringsim shows

ringsim started from public texts that explain data parallelism, parameter servers, ring all-reduce, halving-doubling,
DistributedDataParallel and GPUDirect RDMA. This page lists their claims, each with a run that confirms it, quantifies it or
corrects it. The script `docs/results/make/claims.py build/tools/ringsim` writes this page; a test compares them.

{sections}"""


if __name__ == "__main__":
    page.write_or_check(ROOT / "docs/results/claims.md", text, __doc__)
