#!/usr/bin/env python3
"""Makes the page that compares what ringsim assumes about the passes of a training step with measured ones.

Usage: docs/results/make/one_gpu.py RINGSIM [--check]

Reads validate/measured/training/*.csv and writes docs/results/one-gpu.md; with --check compares, exit code 1 where it differs.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import page

ROOT = pathlib.Path(__file__).resolve().parents[3]
MEASURED = ROOT / "validate/measured/training"
PEAK = {  # FLOP/s of an H100 SXM without sparsity: NVIDIA H100 Tensor Core GPU datasheet
    "bfloat16": 989.4e12, "TF32": 494.7e12, "float32": 66.9e12}
FAST = {"kind": "star", "ranks": 2, "link": {"bandwidth": "1000 TB/s", "latency": "0 ps"}}  # exchanges take no time
PORTS = {"kind": "star", "ranks": 16, "link": {"bandwidth": "12.5 GB/s", "latency": "1 us"}}


class Measured:
    def __init__(self, path):
        lines = path.read_text().splitlines()
        self.facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
        self.rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))  # in the order of the backward pass
        self.model, self.batch = self.facts["model"], int(self.facts["batch"])

    def us(self, key):
        return float(self.facts[key])

    def unit(self):
        """The kind of number that most multiply-adds are done in."""
        if "bfloat16" in self.facts["precision"]:
            return "bfloat16"
        convolutions = self.model in ("resnet50", "vgg16")
        return "TF32" if self.facts["tf32_convolutions" if convolutions else "tf32_products"] == "True" else "float32"

    def title(self):
        return f"{self.model}, {self.batch}, {self.unit()}"

    def bytes_per_parameter(self):
        return 2 if self.facts["precision"] == "torch.bfloat16" else 4

    def workload(self, layers):
        common = {"batch": self.batch, "bytes_per_parameter": self.bytes_per_parameter()}
        if not layers:
            return {"model": self.model, "compute": {"step": f"{self.us('step_us')} us"}, **common}
        return {"layers": [{"name": row["tensor"], "parameters": int(row["parameters"]), "forward": f"{row['forward_us']} us",
                            "backward": f"{row['backward_us']} us"} for row in reversed(self.rows)], **common}

    def scenario(self, topology, layers):
        return {"version": 1, "topology": topology, "training": {
            "workload": self.workload(layers), "regime": {"name": "ddp", "algorithm": "ring"},
            "optimizer": {"time": f"{self.us('update_us')} us"}}}


def ringsim(scenario, *more):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(scenario, file)
        file.flush()
        done = subprocess.run([sys.argv[1], "run", file.name, *more], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def step_us(scenario):
    return next(csv.DictReader(ringsim(scenario, "--format", "csv").splitlines()))


def ready_us(scenario):
    """When each bucket's gradients are there, from the trace of a step whose exchanges take no time."""
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        ringsim(scenario, "--trace", str(trace), "--trace-rank", "0")
        times = {}
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event.get("cat") == "task" and event["name"].startswith("bucket "):
                times.setdefault(int(event["name"].split()[1]), event["ts"])
    return [times[bucket] for bucket in sorted(times)]


def macs(model):
    """Multiply-adds of a sample, forward: ringsim counts them. A step is 6 operations each, here at 1e9 a us."""
    workload = {"model": model, "batch": 1, "compute": {"flops": "1 PFLOP/s", "efficiency": "100%"}}
    step = step_us({"version": 1, "topology": {**FAST, "ranks": 1}, "training": {"workload": workload, "regime": "single"}})
    return float(step["time_us"]) * 1e9 / 6


def passes(each):
    forward, backward = each.us("forward_us"), each.us("backward_us")
    share = 6 * macs(each.model) * each.batch / ((forward + backward) * 1e-6) / PEAK[each.unit()]
    ddp = each.facts.get("ddp_step_us")
    cells = [each.title(), f"{forward / 1000:.2f}", f"{backward / 1000:.2f}", f"{backward / forward:.2f}", f"{each.us('update_us') / 1000:.2f}",
             f"{each.us('step_us') / 1000:.2f}", f"{100 * share:.0f} %", f"{each.us('issue_us') / each.us('step_us'):.2f}",
             *((f"{100 * (float(each.facts['ddp_backward_us']) / backward - 1):+.1f} %", f"{100 * (float(ddp) / each.us('step_us') - 1):+.1f} %")
               if ddp else ("", ""))]
    return f"| {' | '.join(cells)} |"


def assumed(each):
    by_macs, by_layer = ready_us(each.scenario(FAST, False)), ready_us(each.scenario(FAST, True))
    step = each.us("step_us")
    differences = [100 * (a - b) / step for a, b in zip(by_macs, by_layer)]
    worst = max(differences, key=abs)
    a, b = step_us(each.scenario(PORTS, False)), step_us(each.scenario(PORTS, True))
    same = len(by_macs) == len(by_layer)
    cells = [each.title(), f"{len(by_macs)}", f"{len(by_layer)}", f"{worst:+.1f} %" if same else "other buckets",
             f"{float(a['time_us']) / 1000:.2f}", f"{float(b['time_us']) / 1000:.2f}", f"{100 * (float(a['time_us']) / float(b['time_us']) - 1):+.2f} %"]
    return f"| {' | '.join(cells)} |"


def buckets(each):
    by_macs, by_layer = ready_us(each.scenario(FAST, False)), ready_us(each.scenario(FAST, True))
    return "\n".join(f"| {number} | {a / 1000:.2f} | {b / 1000:.2f} |" for number, (a, b) in enumerate(zip(by_macs, by_layer)))


def text():
    every = [Measured(path) for path in sorted(MEASURED.glob("*.csv"))]
    facts = every[0].facts
    shown = next(each for each in every if each.model == "resnet50")
    return f"""# One GPU: assumed and measured passes

ringsim divides a measured step time among the layers by their multiply-adds, and assumes that the backward pass takes twice as long as the
forward pass ([assumptions](../guide/training.md#what-is-assumed)). This page shows how accurate that is. `tools/torch-step.py` measured
the steps of five models on one {facts['gpu']} with PyTorch {facts['pytorch'].split('+')[0]} on {facts['date']}, including the passes and the time at which
each gradient was ready. All values are medians of {facts['repeats']} steps with random weights. The samples are in
[validate/measured/training](../../validate/measured/training/resnet50-b64-float32.csv). `docs/results/make/one_gpu.py build/tools/ringsim`
generates this page, and a test checks that it is up to date.

## The passes

Times are in ms. *Peak* is the share of the GPU's peak that the two passes reach together, counted as three times the multiply-adds of the
forward pass. *Host* is the time that the host needs to issue a step, divided by the step time. If it is close to 1, the host is the
bottleneck, and the speed of the GPU matters little. The last two columns are for DistributedDataParallel (DDP) with a single process,
which does not communicate. They show how much longer the backward pass takes because of hooks and copies into buckets, and how much
longer the whole step takes.

| model, batch, precision | forward | backward | ratio | update | step | peak | host | DDP: backward | DDP: step |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(passes(each) for each in every)}

No single share of the peak fits all models. The assumed ratio of 2 is too high for most of them, so state `compute.backward` if you
know it. With DDP, the whole step also includes the preparation that the wrapper does before the forward pass. If the host is slow, this
preparation takes longer than the copies.

## Times at which gradients are ready

The table compares two predictions for PyTorch's buckets. *By multiply-adds* uses only the times of the whole step and its update. *Measured*
uses the measured time of each tensor. *Largest error* is the largest error of any bucket, as a percentage of the step time. It is positive if
the bucket is predicted too late. The last three columns show the effect on the predicted time, in ms, of a DDP step on 16 of these GPUs with
12.5 GB/s ports.

| model, batch, precision | buckets, by multiply-adds | buckets, measured | largest error | step, by multiply-adds | step, measured | difference |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(assumed(each) for each in every)}

For {shown.title()}, the buckets are ready at the following times, in ms from the start of the step.

| bucket | by multiply-adds | measured |
| ---: | ---: | ---: |
{buckets(shown)}

To measure your own model on your own GPU, run the following command and put its output under `training.workload`:

    tools/torch-step.py my_model.py:make --batch 32 --amp -o measured
"""


page.write_or_check(ROOT / "docs/results/one-gpu.md", text, __doc__)
