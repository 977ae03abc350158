#!/usr/bin/env python3
"""Draws the pictures of docs/pictures that ringsim makes itself: a topology, a schedule, plots, plans and training steps.

Usage: docs/results/make/pictures.py path/to/ringsim [--check | --reports]

--check compares, exit code 1 where one differs. --reports draws the parts of reports (PNG) instead: by hand, as it needs
a Chromium; look at each.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[3]
scenarios = root / "scenarios"
training = scenarios / "examples/training"
compared = [scenarios / "examples/library/nccl-two-dgx-a100.json",
            root / "validate/measured/tables/sophia-dgxa100-2n8g-all_reduce-gdrpxb.csv"]


def step(scenario, ranks, regime):
    return ["run", training / scenario, "--set", f"topology.ranks={ranks}", "--set", f"training.regime={regime}", "--picture"]


pictures = {
    "nccl-two-dgx-a100.svg": ["plot", "-", "--title", "NCCL all-reduce on two DGX A100 (16 GPUs): predicted and measured", "-o"],
    "two-dgx-1v.svg": ["topology", "picture", scenarios / "examples/machines/two-node-server.json", "-o"],
    "ring-of-four.svg": ["schedule", "picture", scenarios / "star.json", "--set", "topology.ranks=4",
                         "--set", "collective.algorithm=ring", "-o"],
    "exposed-bucket.svg": ["run", scenarios / "examples/explain/exposed-bucket.json", "--picture"],
    "server-or-ring.svg": ["plot", training / "server-or-ring.csv", "--x", "ranks", "--y", "communication_us", "--by", "algorithm",
                           "--title", "102 MB of gradients on ports of 100 Gb/s", "-o"],
    "decode-llama3-70b.svg": ["plot", scenarios / "examples/inference/llama3-70b-decode.csv", "--x", "time_per_token_us",
                              "--y", "tokens_per_s_per_gpu", "--by", "tp",
                              "--title", "Llama 3 70B in fp8 on 2, 4 and 8 H100: batches of 1 to 256", "-o"],
    "strong-scaling.svg": ["plot", scenarios / "questions/38-strong-scaling.csv", "--x", "ranks", "--y", "time_us", "--ideal",
                           "--title", "A step of Llama 3 8B, 16 sequences, on 8 to 64 H100, by the bandwidth of a NIC", "-o"],
    "fsdp-or-tp-pp.svg": ["plan", scenarios / "questions/35-fsdp-or-tp-pp.json", "--within", "50%", "--picture"],
    "regime-single.svg": step("buckets.json", 1, '"single"'),
    "regime-data_parallel.svg": step("data-parallel.json", 4, '{"name": "data_parallel", "algorithm": "direct", "loss": "1 ms"}'),
    "regime-parameter_server.svg": step("parameter-server.json", 4, '{"name": "parameter_server", "servers": 1}'),
    "regime-ddp.svg": step("buckets.json", 4, '{"name": "ddp", "algorithm": "ring", "buckets": {"size": "12.8 MB", "first": "12.8 MB"}}'),
    "regime-local_sgd.svg": step("local-sgd.json", 4, '{"name": "local_sgd", "algorithm": "ring", "every": 4}'),
    "regime-gossip.svg": step("gossip.json", 8, '{"name": "gossip"}'),
    "regime-model_parallel.svg": step("model-parallel.json", 4, '{"name": "model_parallel", "microbatches": 8}'),
}

hung = sorted((root / "tests/data/profiles").glob("hung-rank-*.json"))
# Of each report the commands, of which the last one writes it, and the headings of the parts that are shown; "": its top.
reports = {
    "report-step.png": ([["run", scenarios / "examples/explain/exposed-bucket.json"]],
                        ["Links over time", "The critical rank over time"]),
    "report-why.png": ([["run", scenarios / "examples/explain/degraded-nic.json"]], ["", "What if"]),
    "report-job.png": ([["trace", "export", training / "llama3-8b.json", "step.rank{rank}.json.gz", "--set",
                         'training.slow=[{"rank": 3, "factor": 1.05}]'],
                        ["trace", "show", *(f"step.rank{rank}.json.gz" for rank in range(8))]], ["", "Ranks over time"]),
    "report-hang.png": ([["trace", "show", *hung]],
                        ["", "Findings, causes first", "Ranks in the groups that do not make progress"]),
}
KEEP_PARTS = """(parts => {
  let part = ''
  for (const each of [...document.body.children]) {
    if (each.tagName === 'H2') part = each.textContent
    if (!parts.includes(part)) each.remove()
  }
  return document.documentElement.scrollHeight
})"""


def draw_reports(ringsim):
    sys.path.insert(0, str(root / "tests/scripts"))
    from browser import Browser, find_chromium
    with Browser(find_chromium() or sys.exit("expected a Chromium (Debian: chromium-headless-shell), found none")) as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=1012, height=100, deviceScaleFactor=1, mobile=False)
        for name, (commands, parts) in reports.items():
            with tempfile.TemporaryDirectory() as folder:
                for words in [*commands[:-1], [*commands[-1], "--report", "page.html"]]:
                    subprocess.run([ringsim, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
                browser.open(pathlib.Path(folder, "page.html").as_uri())
                height = browser.evaluate(f"{KEEP_PARTS}({json.dumps(parts)})")
                (root / "docs/pictures" / name).write_bytes(browser.picture([0, 0, 1012, height]))


if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"], ["--reports"]):
    sys.exit(__doc__)
if sys.argv[2:] == ["--reports"]:
    draw_reports(os.path.abspath(sys.argv[1]))
    sys.exit()
differ = []
for name, words in pictures.items():
    with tempfile.TemporaryDirectory() as folder:
        drawn = pathlib.Path(folder) / name
        if "-" in words:  # measured rows next to predicted ones, as `ringsim compare` writes them
            rows = pathlib.Path(folder) / "rows.jsonl"
            subprocess.run([sys.argv[1], "compare", *compared, "--format", "jsonl", "-o", rows], check=True)
            words = [rows if word == "-" else word for word in words]
        subprocess.run([sys.argv[1], *words, drawn], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = drawn.read_text()
    path = root / "docs/pictures" / name
    if sys.argv[2:] == []:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        differ.append(f"docs/pictures/{name}")
if differ:
    sys.exit(f"{', '.join(differ)}: not what {sys.argv[0]} draws now; run it again and look at the pictures")
