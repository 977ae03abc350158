#!/usr/bin/env python3
"""Measures a training step of one GPU with PyTorch: how long its passes take, and when each gradient is ready.

    tools/torch-step.py MODEL --batch N [--amp] [--repeats 20] -o FOLDER

MODEL is a model of scenarios/workloads (resnet50 and vgg16 need torchvision; bert_large, gpt2_xl and llama2_7b need
transformers; weights are random, nothing is downloaded), or FILE.py:FUNCTION for one of your own: FUNCTION(batch) returns
(module, step), and step(module) returns the loss. Written into FOLDER, of MODEL, N and the precision:

    NAME.csv   a line per tensor in the order of the backward pass: name, parameters, its module's forward_us, and
               backward_us, the time since the gradient before it; "# key value" lines say what else was measured
    NAME.json  "workload" of a training scenario with these times, in the order of the forward pass

Times are medians of the GPU's own events over the repeats, after as many steps of warm-up. Events between the layers cost
time on the host, so the passes as a whole are timed without them, and the times of tensors are scaled to add up to that; the
scale is written down. The backward time of a tensor counts all that the GPU did since the gradient before it.
Exit codes: 2 command line, 5 no PyTorch, no GPU or not enough memory.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time


def fail(message, code):
    print(f"tools/torch-step.py: error: {message}", file=sys.stderr)
    sys.exit(code)


def image_model(make, batch):
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    model = make(weights=None)
    return model, lambda each: torch.nn.functional.cross_entropy(each(images), labels)


def resnet50(batch):
    import torchvision
    return image_model(torchvision.models.resnet50, batch)


def vgg16(batch):
    import torchvision
    return image_model(torchvision.models.vgg16, batch)


def bert_large(batch):
    from transformers import BertConfig, BertForPreTraining
    config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    words = torch.randint(0, config.vocab_size, (batch, 128), device="cuda")
    next_ones = torch.randint(0, 2, (batch,), device="cuda")
    return BertForPreTraining(config), lambda each: each(input_ids=words, labels=words, next_sentence_label=next_ones).loss


def gpt2_xl(batch):
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(n_embd=1600, n_layer=48, n_head=25)
    words = torch.randint(0, config.vocab_size, (batch, 1024), device="cuda")
    return GPT2LMHeadModel(config), lambda each: each(input_ids=words, labels=words).loss


def llama2_7b(batch):
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig()  # its defaults are Llama 2 7B
    words = torch.randint(0, config.vocab_size, (batch, 4096), device="cuda")
    torch.set_default_dtype(torch.bfloat16)  # weights in bfloat16: 80 GB do not hold them and their gradients in float32
    model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return model, lambda each: each(input_ids=words, labels=words).loss


BUILT_IN = {each.__name__: each for each in (resnet50, vgg16, bert_large, gpt2_xl, llama2_7b)}


def function_of(text):
    file, _, function = text.rpartition(":")
    if text in BUILT_IN:
        return text, BUILT_IN[text]
    spec = importlib.util.spec_from_file_location("own_model", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        fail(f"{file}: expected a function {function}, found none", 2)
    return function, getattr(module, function)


def event():
    made = torch.cuda.Event(enable_timing=True)
    made.record()
    return made


class Step:
    """A step: forward, backward, update, between events; with `between`, each module and each gradient has one as well."""

    def __init__(self, model, loss, optimizer, amp):
        self.model, self.loss, self.optimizer, self.amp = model, loss, optimizer, amp
        self.forward_ends, self.ready = [], []

    def run(self):
        self.forward_ends, self.ready = [], []
        began = time.perf_counter()
        marks = [event()]
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.amp):
            loss = self.loss(self.model)
        marks.append(event())
        loss.backward()
        marks.append(event())
        self.optimizer.step()
        self.optimizer.zero_grad()
        marks.append(event())
        issued = time.perf_counter() - began
        torch.cuda.synchronize()
        parts = [1000 * a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
        inner = ([1000 * marks[0].elapsed_time(end) for _, end in self.forward_ends],
                 [1000 * marks[1].elapsed_time(end) for _, end in self.ready])
        return {"forward_us": parts[0], "backward_us": parts[1], "update_us": parts[2], "step_us": sum(parts),
                "issue_us": 1e6 * issued, "inner": inner}

    def watch(self):
        """From now on every module that has tensors of its own marks its forward's end, every tensor its gradient."""
        handles = []
        for name, module in self.model.named_modules():
            if any(True for _ in module.parameters(recurse=False)):
                handles.append(module.register_forward_hook(
                    lambda _module, _inputs, _output, name=name: self.forward_ends.append((name, event()))))
        for name, tensor in self.model.named_parameters():
            handles.append(tensor.register_post_accumulate_grad_hook(
                lambda _tensor, name=name: self.ready.append((name, event()))))
        return handles


def medians(rows, key):
    return statistics.median(row[key] for row in rows)


def steps(step, repeats):
    for _ in range(repeats):
        step.run()
    return [step.run() for _ in range(repeats)]


def differences(times):
    return [max(0.0, b - a) for a, b in zip([0.0, *times], times)]


def inner_times(step, repeats, which, whole):
    """[(name, us)]: medians of the times between marks, scaled to `whole`; and the scale. What comes after the last mark
    (a loss in the forward pass) belongs to the last."""
    for _ in range(3):
        step.run()
    rows = []
    for _ in range(repeats):
        times = step.run()["inner"][which]
        rows.append(differences(times))
    names = [name for name, _ in (step.forward_ends, step.ready)[which]]
    each = [statistics.median(column) for column in zip(*rows)]
    scale = whole / sum(each)
    return [(name, scale * us) for name, us in zip(names, each)], scale


def distributed(model, loss, optimizer, amp, repeats):
    """The step in DistributedDataParallel of one process: its hooks, and its copies into buckets, with nobody to talk to."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    result = steps(Step(wrapped, loss, optimizer, amp), repeats)
    torch.distributed.destroy_process_group()
    return result


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model", metavar="MODEL")
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--amp", action="store_true", help="autocast to bfloat16; else PyTorch's defaults")
parser.add_argument("--repeats", type=int, default=20)
parser.add_argument("--no-ddp", action="store_true", help="leave out the step in DistributedDataParallel")
parser.add_argument("-o", dest="folder", required=True)
arguments = parser.parse_args()
if arguments.batch < 1 or arguments.repeats < 1:
    fail("--batch and --repeats: expected 1 or more", 2)
file = arguments.model.rpartition(":")[0]
if arguments.model not in BUILT_IN and not (file.endswith(".py") and pathlib.Path(file).is_file()):
    fail(f"{arguments.model}: expected one of {', '.join(BUILT_IN)}, or FILE.py:FUNCTION with a file that exists", 2)
try:
    import torch
except ImportError:
    fail("there is no PyTorch: pip install torch", 5)
if not torch.cuda.is_available():
    fail("PyTorch finds no GPU", 5)

torch.manual_seed(1)
kind, make = function_of(arguments.model)
try:
    with torch.device("cuda"):
        model, loss = make(arguments.batch)
    model.cuda().train()
    precision = next(model.parameters()).dtype
    momentum = kind in ("resnet50", "vgg16")
    large = sum(tensor.numel() for tensor in model.parameters()) > 3e9  # two more copies of it would not fit
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9) if momentum else \
        torch.optim.SGD(model.parameters(), lr=1e-6) if large else torch.optim.AdamW(model.parameters(), lr=1e-6)
    step = Step(model, loss, optimizer, arguments.amp)
    plain = steps(step, arguments.repeats)
    whole = {key: medians(plain, key) for key in ("forward_us", "backward_us", "update_us", "step_us", "issue_us")}
    slowest = max(row["step_us"] for row in plain)
    handles = step.watch()
    forward, forward_scale = inner_times(step, arguments.repeats, 0, whole["forward_us"])
    backward, backward_scale = inner_times(step, arguments.repeats, 1, whole["backward_us"])
    for handle in handles:
        handle.remove()
    with_ddp = None if arguments.no_ddp else distributed(model, loss, optimizer, arguments.amp, arguments.repeats)
except torch.OutOfMemoryError:
    fail(f"a batch of {arguments.batch} does not fit into the memory of {torch.cuda.get_device_name()}: take a smaller one", 5)

sizes = {name: tensor.numel() for name, tensor in model.named_parameters()}
of_module = {}
for name, us in forward:  # a module that is called more than once takes the sum
    of_module[name] = of_module.get(name, 0.0) + us
rows = []
for name, us in reversed(backward):  # a module's forward time goes to its first tensor
    rows.append((name, sizes[name], of_module.pop(name.rpartition(".")[0], 0.0), us))
lost = sum(of_module.values())  # modules whose tensors are another's, as tied heads: to the last layer
if lost > 0:
    name, count, us, back = rows[-1]
    rows[-1] = (name, count, us + lost, back)
label = f"{kind}-b{arguments.batch}-{'amp' if arguments.amp else str(precision).rpartition('.')[2]}"
folder = pathlib.Path(arguments.folder)
folder.mkdir(parents=True, exist_ok=True)
facts = {
    "model": kind, "batch": arguments.batch, "precision": "autocast to bfloat16" if arguments.amp else str(precision),
    "gpu": torch.cuda.get_device_name(), "pytorch": torch.__version__, "date": time.strftime("%F"),
    "tf32_convolutions": torch.backends.cudnn.allow_tf32, "tf32_products": torch.backends.cuda.matmul.allow_tf32,
    "parameters": sum(sizes.values()), "repeats": arguments.repeats, "optimizer": type(optimizer).__name__,
    **{key: round(value, 1) for key, value in whole.items()}, "slowest_step_us": round(slowest, 1),
    "forward_scale": round(forward_scale, 4), "backward_scale": round(backward_scale, 4)}
if with_ddp:
    facts["ddp_step_us"] = round(medians(with_ddp, "step_us"), 1)
    facts["ddp_backward_us"] = round(medians(with_ddp, "backward_us"), 1)
with open(folder / f"{label}.csv", "w") as file:
    for key, value in facts.items():
        print(f"# {key} {value}", file=file)
    print("tensor,parameters,forward_us,backward_us", file=file)
    for name, count, ahead, back in reversed(rows):
        print(f"{name},{count},{ahead:.1f},{back:.1f}", file=file)
layers = [{"name": name, "parameters": count, "forward": f"{ahead:.1f} us", "backward": f"{back:.1f} us"} for name, count, ahead, back in rows]
(folder / f"{label}.json").write_text("{\"batch\": %d, \"layers\": [\n  %s]}\n" % (arguments.batch, ",\n  ".join(json.dumps(each) for each in layers)))
print(label, json.dumps({key: facts[key] for key in facts if key.endswith("_us") or key.endswith("scale")}))
