#!/usr/bin/env python3
"""Measures what compute takes on a GPU, and what copies next to it cost both: the shares of the peak that a scenario's compute needs.

    tools/torch-compute.py [--quick] [-o FILE.csv]        PyTorch with CUDA, and Triton; 80 seconds on an H200

Each row is a kernel, or one of two kernels that run at once. Columns: kind (gemm, attention, memory, copy, together), what,
shape, time_us (median of the repeats), min_us, flop and bytes (counted as below), tflops, gbps, next_to (what runs next
to it), alone_us (the same kernel alone), slowdown (time_us / alone_us).

FLOP: a product of m x k by k x n has 2 m n k. Attention has two products, of which the causal half counts; its backward pass
2.5 times as many, as FlashAttention counts (recomputation is one product of five). Bytes: each operand once,
read or written; a kernel that reads one twice, or finds it in the cache, has another share of the memory's rate.
Products, attention and what memory holds up begin with an L2 cache that has nothing of theirs.

A copy kernel of n blocks of 512 threads stands for the channels of a collective, which on one GPU moves nothing between ranks:
it copies 64 MiB within the GPU's memory, or adds (reduce: reads twice, writes once). It has a stream of higher priority, so it
gets the next SM that is free; until then it waits, and so does every repeat of it. What of a collective waits for its
peers or its links is not in this.
Exit codes: 2 command line, 5 no GPU that PyTorch can use.
"""

import argparse
import csv
import datetime
import statistics
import sys

import torch
import triton
import triton.language as tl

BF16 = torch.bfloat16
BLOCK = 8192  # elements of int32 that a block copies at a time: 512 threads with 4 loads of 16 bytes
COLUMNS = ["kind", "what", "shape", "time_us", "min_us", "flop", "bytes", "tflops", "gbps", "next_to", "alone_us", "slowdown"]

# Hidden size, heads, heads of keys and values, head size, inner size of the MLP (gated: two matrices up), of published model cards.
CARDS = {
    "gpt3_175b": (12288, 96, 96, 128, 49152, False),
    "llama2_7b": (4096, 32, 32, 128, 11008, True),
    "llama3_70b": (8192, 64, 8, 128, 28672, True),
    "llama3_405b": (16384, 128, 8, 128, 53248, True),
}


@triton.jit
def copy_kernel(source, target, n, rounds, BLOCK: tl.constexpr, REDUCE: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    step = tl.num_programs(0) * BLOCK
    for _ in range(rounds):
        for start in range(first, n, step):
            at = start + tl.arange(0, BLOCK)
            value = tl.load(source + at)
            if REDUCE:
                value += tl.load(target + at)
            tl.store(target + at, value)


class Report:
    def __init__(self, file):
        self.file = file
        self.rows = csv.DictWriter(file, COLUMNS)
        self.rows.writeheader()

    def add(self, kind, what, shape, times, flop=0, moved=0, next_to="", alone=0.0):
        time = statistics.median(times)
        self.rows.writerow({
            "kind": kind, "what": what, "shape": shape, "time_us": f"{time:.3f}", "min_us": f"{min(times):.3f}", "flop": flop,
            "bytes": moved, "tflops": f"{flop / time / 1e6:.2f}", "gbps": f"{moved / time / 1e3:.2f}", "next_to": next_to,
            "alone_us": f"{alone:.3f}" if alone else "", "slowdown": f"{time / alone:.4f}" if alone else ""})
        self.file.flush()


def measure(run, repeats, flush=None):
    """Times of `run` in us, each between two events; `flush` runs before each, and empties the L2 cache."""
    for _ in range(3):
        run()
    pairs = []
    for _ in range(repeats):
        if flush is not None:
            flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e3 for start, end in pairs]


def gemms(report, repeats, flush, quick):
    for model, (hidden, heads, kv, size, inner, gated) in CARDS.items():
        for tensor in (1, 8) if quick else (1, 2, 4, 8):
            layers = {
                "qkv": (hidden, (heads + 2 * kv) * size // tensor),
                "projection": (heads * size // tensor, hidden),
                "mlp_up": (hidden, (2 if gated else 1) * inner // tensor),
                "mlp_down": (inner // tensor, hidden),
            }
            for tokens in (4096,) if quick else (1024, 2048, 4096, 8192, 16384):
                for what, (k, n) in layers.items():
                    x = torch.randn(tokens, k, device="cuda", dtype=BF16)
                    w = torch.randn(n, k, device="cuda", dtype=BF16)
                    y = torch.randn(tokens, n, device="cuda", dtype=BF16)
                    shape = f"{model} tensor={tensor} m={tokens} k={k} n={n}"
                    flop, moved = 2 * tokens * k * n, 2 * (tokens * k + k * n + tokens * n)
                    ways = {"forward": lambda: x @ w.t(), "dgrad": lambda: y @ w, "wgrad": lambda: y.t() @ x}
                    for way, run in ways.items():
                        report.add("gemm", f"{what} {way}", shape, measure(run, repeats, flush), flop, moved)


def attention(report, repeats, flush, quick):
    backends = torch.nn.attention.SDPBackend
    for name, backend in (("flash", backends.FLASH_ATTENTION), ("cudnn", backends.CUDNN_ATTENTION)):
        for heads in (4, 16, 32):
            for length in (2048, 8192) if quick else (1024, 2048, 4096, 8192, 16384, 32768):
                batch = max(1, 8192 // length)
                q, k, v = (torch.randn(batch, heads, length, 128, device="cuda", dtype=BF16, requires_grad=True) for _ in range(3))
                gradient = torch.randn_like(q)
                flop = 4 * batch * heads * length * length * 128 // 2
                moved = 4 * 2 * batch * heads * length * 128
                shape = f"batch={batch} heads={heads} sequence={length} head=128"
                forward = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                try:
                    with torch.nn.attention.sdpa_kernel([backend]):
                        report.add("attention", f"{name} forward", shape, measure(forward, repeats, flush), flop, moved)
                        out = forward()
                    back = lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)
                    report.add("attention", f"{name} backward", shape, measure(back, repeats, flush), flop * 5 // 2, moved * 2)
                except RuntimeError as error:
                    print(f"torch-compute.py: {name}, {shape}: {str(error).splitlines()[0]}", file=sys.stderr)


def memory(report, repeats, flush, quick):
    for hidden in (4096, 12288):
        for tokens in (4096,) if quick else (1024, 4096, 16384):
            n = tokens * hidden
            x, y, out = (torch.randn(tokens, hidden, device="cuda", dtype=BF16) for _ in range(3))
            weight = torch.ones(hidden, device="cuda", dtype=BF16)
            shape = f"tokens={tokens} hidden={hidden}"
            nn = torch.nn.functional
            kernels = {
                "copy": (lambda: out.copy_(x), 4 * n),
                "residual add": (lambda: torch.add(x, y, out=out), 6 * n),
                "gelu": (lambda: nn.gelu(x), 4 * n),
                "silu": (lambda: nn.silu(x), 4 * n),
                "layer_norm": (lambda: nn.layer_norm(x, (hidden,), weight, weight), 4 * n),
                "rms_norm": (lambda: nn.rms_norm(x, (hidden,), weight), 4 * n),
                "softmax": (lambda: torch.softmax(x, -1), 4 * n),
                "dropout": (lambda: nn.dropout(x, 0.1), 5 * n),
            }
            for what, (run, moved) in kernels.items():
                report.add("memory", what, shape, measure(run, repeats, flush), 0, moved)
    # Adam: weight, gradient and both moments are read, all but the gradient written: 28 bytes a float32 parameter.
    for parameters in (1 << 24, 1 << 28):
        weight = torch.zeros(parameters, device="cuda", requires_grad=True)
        weight.grad = torch.ones_like(weight)
        adam = torch.optim.AdamW([weight], fused=True)
        report.add("memory", "adamw fused", f"parameters={parameters} float32", measure(adam.step, repeats, flush), 0, 28 * parameters)
        del weight, adam
    vocabulary, tokens = 128256, 4096
    logits = torch.randn(tokens, vocabulary, device="cuda", dtype=BF16, requires_grad=True)
    labels = torch.randint(vocabulary, (tokens,), device="cuda")
    loss = lambda: torch.nn.functional.cross_entropy(logits, labels)
    report.add("memory", "cross_entropy forward", f"tokens={tokens} vocabulary={vocabulary}", measure(loss, repeats, flush), 0, 2 * tokens * vocabulary)


def together(report, repeats, quick):
    """Two streams at once: one is timed, several runs between two events; the other is queued for longer than that."""
    compute_stream, copy_stream = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)  # so copies get the next free SM
    elements = 16 << 20
    source, target = (torch.zeros(elements, device="cuda", dtype=torch.int32) for _ in range(2))
    pinned = torch.zeros(elements, dtype=torch.int32, pin_memory=True)
    size = 4 * elements

    def kernel(blocks, reduces):
        return lambda: copy_kernel[(blocks,)](source, target, elements, 1, BLOCK, reduces, num_warps=16)

    copies = {}
    for blocks in (4, 16) if quick else (1, 2, 4, 8, 16, 24, 32):
        copies[f"copy kernel of {blocks} blocks"] = (kernel(blocks, False), 2 * size)
        copies[f"reduce kernel of {blocks} blocks"] = (kernel(blocks, True), 3 * size)
    copies["copy engine, device to device"] = (lambda: target.copy_(source, non_blocking=True), 2 * size)
    copies["copy engine, host to device"] = (lambda: target.copy_(pinned, non_blocking=True), size)
    copies["copy engine, device to host"] = (lambda: pinned.copy_(source, non_blocking=True), size)

    computes = {}
    for m, n, k in ((8192, 8192, 8192), (4096, 6144, 8192), (4096, 3584, 8192), (2048, 8192, 1024)):
        a = torch.randn(m, k, device="cuda", dtype=BF16)
        b = torch.randn(n, k, device="cuda", dtype=BF16)
        c = torch.empty(m, n, device="cuda", dtype=BF16)
        computes[f"gemm m={m} n={n} k={k}"] = (lambda a=a, b=b, c=c: torch.mm(a, b.t(), out=c), 2 * m * n * k, 2 * (m * k + n * k + m * n))
    q = torch.randn(1, 32, 8192, 128, device="cuda", dtype=BF16)
    computes["flash attention heads=32 sequence=8192"] = (
        lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True), 4 * 32 * 8192 * 8192 * 128 // 2, 4 * q.nbytes)
    x, y = (torch.randn(64 << 20, device="cuda", dtype=BF16) for _ in range(2))
    out = torch.empty_like(x)
    computes["residual add of 64 Mi elements"] = (lambda: torch.add(x, y, out=out), 0, 3 * x.nbytes)

    def batch_of(time):
        return max(1, min(8, int(2000 / time) + 1))  # some 2 ms, so that few hundred launches of the other outlast it

    def timed_alone(run, timed=compute_stream):
        with torch.cuda.stream(timed):
            run()
            torch.cuda.synchronize()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            torch.cuda.synchronize()
        batch = batch_of(start.elapsed_time(end) * 1e3)
        times = []
        with torch.cuda.stream(timed):
            for _ in range(3):
                run()
            for _ in range(repeats):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                for _ in range(batch):
                    run()
                end.record()
                torch.cuda.synchronize()
                times.append(start.elapsed_time(end) * 1e3 / batch)
        return times

    def timed_together(run, run_time, next_to, next_time, timed, other):
        """`next_to` begins first and is queued for six times as long as `run` takes alone; a run it did not outlast is dropped."""
        batch = batch_of(run_time)
        queued = min(900, int(6 * batch * run_time / next_time) + 6)  # a stream takes some 1,000 launches at once
        times = []
        for _ in range(repeats):
            begun, last = torch.cuda.Event(), torch.cuda.Event(enable_timing=True)
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            with torch.cuda.stream(other):
                begun.record()
                for _ in range(queued):
                    next_to()
                last.record()
            with torch.cuda.stream(timed):
                timed.wait_event(begun)
                torch.cuda._sleep(20000)  # cycles: the other stream's first kernel is on the GPU by then
                start.record()
                for _ in range(batch):
                    run()
                end.record()
            torch.cuda.synchronize()
            if end.elapsed_time(last) > 0:
                times.append(start.elapsed_time(end) * 1e3 / batch)
        return times

    alone = {}
    for what, (run, moved) in copies.items():
        times = timed_alone(run)
        alone[what] = statistics.median(times)
        report.add("copy", what, f"bytes={size}", times, 0, moved)
    for what, (run, flop, moved) in computes.items():
        times = timed_alone(run)
        alone[what] = statistics.median(times)
        report.add("together", what, "alone", times, flop, moved)
    for what, (run, flop, moved) in computes.items():
        for copy, (copies_it, copied) in copies.items():
            for name, timed_run, one_flop, one_moved, other_run, other_name, streams in (
                    (what, run, flop, moved, copies_it, copy, (compute_stream, copy_stream)),
                    (copy, copies_it, 0, copied, run, what, (copy_stream, compute_stream))):
                times = timed_together(timed_run, alone[name], other_run, alone[other_name], *streams)
                if times:
                    report.add("together", name, f"bytes={size}" if name == copy else "", times, one_flop, one_moved, other_name, alone[name])
                else:
                    print(f"torch-compute.py: {name} next to {other_name}: outlasted what ran next to it in all {repeats}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="compute.csv", help="the CSV to write (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and repeats")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch-compute.py: expected a GPU that PyTorch can use, found none", file=sys.stderr)
        sys.exit(5)
    repeats = 5 if arguments.quick else 20
    device = torch.cuda.get_device_properties(0)
    with open(arguments.output, "w", newline="", encoding="utf-8") as file:
        print(f"# {device.name}, {device.multi_processor_count} SMs, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
              f"Triton {triton.__version__}", file=file)
        print(f"# {datetime.date.today()}, tools/torch-compute.py{' --quick' if arguments.quick else ''}", file=file)
        report = Report(file)
        flush = torch.empty(256 << 20, device="cuda", dtype=torch.int8)  # more than any L2: 50 MB on an H100
        with torch.no_grad():
            gemms(report, repeats // 2, flush, arguments.quick)
        print("torch-compute.py: products are done", file=sys.stderr)
        memory(report, repeats, flush, arguments.quick)
        attention(report, repeats, flush, arguments.quick)
        print("torch-compute.py: attention and what memory holds up are done", file=sys.stderr)
        with torch.no_grad():
            together(report, max(3, repeats // 4), arguments.quick)
    print(f"torch-compute.py: {arguments.output}", file=sys.stderr)


main()
