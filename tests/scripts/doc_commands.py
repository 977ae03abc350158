#!/usr/bin/env python3
"""Runs the commands of README.md and docs/guide: each must end as its page says, and print the lines that the page quotes.

Usage: tests/scripts/doc_commands.py RINGSIM [--slow] [--list] [PAGE...]     exit code 1, and the reasons, if one does not
  --slow   runs the slow ones too
  --list   prints each command with what becomes of it: run, slow or not run

A command is a line of a code block that starts with ringsim or build/tools/ringsim, after "$ ", sudo or mpirun if need be; a backslash at its end continues it.
A block that starts with #!/bin/sh is a script, which runs as one command.
Behind "$ " the lines that follow are quoted output: they must be printed in that order. Others may be left out between them; "..." stands for
any part of a line, or for any lines. The commands of a page run in one folder, in turn, so one may read what another wrote.
Files that a reader would have, such as a.json, are stand-ins listed below.

Comments right above a block, each on a line of its own, say what does not hold for it, or for its commands that start with what stands after the last colon:
  <!-- not run: needs a GPU -->   <!-- slow: 20 s -->   <!-- exit 1 -->   <!-- not run: needs root: sudo -->
Each comment must still be needed: one that fits no command is an error.
"""
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parents[2]
# Pages whose commands a test of their own runs.
elsewhere = {"docs/guide/questions.md": "questions_page"}
examples = "scenarios/examples"
two_nodes = f"{examples}/library/nccl-two-dgx-a100.json"
# The reader's own files: a file that is copied in their place; after "$ " the command that makes them; after "= " their text.
stand_ins = {
    "scenario.json": two_nodes,
    "cluster.json": """= {"version": 1, "name": "a cluster",
      "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
                   "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
      "collective": {"op": "all_reduce", "bytes": ["64 KiB", "256 MiB"],
                     "algorithm": [{"name": "double_binary_tree", "segments": 8}, {"name": "hierarchical", "inner": "ring", "outer": "ring"}]}}""",
    "big.json": two_nodes,
    "s.json": f"{examples}/explain/oversubscribed-leaf.json",
    "a.json": f"{examples}/explain/degraded-nic.json",
    "b.json": f"{examples}/explain/degraded-nic.json",
    "A.json": f"{examples}/explain/degraded-nic.json",
    "B.json": f"{examples}/explain/degraded-nic.json",
    "all_reduce_perf.log": "validate/measured/tables/sophia-dgxa100-2n8g-all_reduce-gdrpxb.csv",
    "before.csv": "scenarios/star.csv",
    "after.csv": "scenarios/star.csv",
    "training.csv": f"{examples}/training/stragglers.csv",
    "all.jsonl": "$ ringsim sweep scenarios/star.json --bound -o all.jsonl",
    "baseline.jsonl": "$ ringsim sweep cluster.json -o baseline.jsonl",
    "shard-1.jsonl": "$ ringsim sweep cluster.json --shard 1/2 -o shard-1.jsonl",
    "shard-2.jsonl": "$ ringsim sweep cluster.json --shard 2/2 -o shard-2.jsonl",
    "topo.xml": "scenarios/questions/machines/h200-host.xml",
    "rank*.json.gz": "scenarios/questions/profiles/rank*.json.gz",
    "network.yml": "= topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n",
    "system.json": '= {"scheduling-policy": "LIFO", "endpoint-delay": 0, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}\n',
}


class Command:
    def __init__(self, page, number, text, is_quoting):
        self.page, self.number, self.text, self.is_quoting = page, number, text, is_quoting
        self.quoted, self.state, self.why, self.code = [], "run", "", 0

    def place(self):
        return f"{self.page}:{self.number}: {self.text.splitlines()[0]}"


def blocks_of(page):
    """[line number, text of a code block, comments right above it], both kinds of blocks: fenced and indented."""
    lines = (root / page).read_text(encoding="utf-8").splitlines()
    comments, at = [], 0
    while at < len(lines):
        start, block = at, []
        if lines[at].startswith("```"):
            at += 1
            while at < len(lines) and not lines[at].startswith("```"):
                block.append(lines[at])
                at += 1
            start += 1
            at += 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip() or lines[at - 1].startswith("<!--")):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                block.append(lines[at][4:])
                at += 1
        else:
            if lines[at].startswith("<!-- "):
                comments.append((at + 1, lines[at]))
            elif lines[at].strip():
                comments = []
            at += 1
            continue
        yield start + 1, block, comments
        comments = []


def commands_of(page, wrong):
    """The commands of a page, with what its comments say of them."""
    found = []
    for number, block, comments in blocks_of(page):
        own, marks = [], []
        for line, comment in comments:
            mark = re.fullmatch(r"<!-- (not run|slow|exit):? (.*?)(?:: ((?:ringsim|build/tools/ringsim|sudo|mpirun) ?.*))? -->", comment)
            if mark:
                marks.append([line, mark[1], mark[2], mark[3] or "", False])
        at = 0
        if block and block[0] == "#!/bin/sh":
            own.append(Command(page, number, "\n".join(block).rstrip(), False))
            at = len(block)
        while at < len(block):
            text, start = block[at], number + at
            if re.match(r"(\$ )?(sudo |mpirun .*)?(build/tools/)?ringsim\s", text):
                while text.endswith("\\") and at + 1 < len(block):
                    at += 1
                    text += "\n" + block[at].strip()
                own.append(Command(page, start, text.removeprefix("$ "), text.startswith("$ ")))
            elif text.startswith("$ "):
                own.append(Command(page, start, "", False))  # of another program: its output is not checked
            elif own and own[-1].is_quoting and text.strip():
                own[-1].quoted.append(text.rstrip())
            at += 1
        own = [command for command in own if command.text]
        for command in own:
            for mark in marks:
                _, kind, reason, prefix, _ = mark
                if not command.text.startswith(prefix):
                    continue
                mark[4] = True
                if kind == "exit":
                    command.code = int(reason)
                else:
                    command.state, command.why = kind, reason
        wrong += [f"{page}:{line}: {kind} {reason}: no command of the block below starts so\n"
                  for line, kind, reason, _, used in marks if not used]
        found += own
    return found


def missing_line(quoted, printed):
    """The first quoted line that is not printed after the ones before it; None if all are."""
    at = 0
    for line in quoted:
        if line.strip() == "...":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.split("...")))
        while at < len(printed) and not pattern.fullmatch(printed[at].rstrip()):
            at += 1
        if at == len(printed):
            return line
        at += 1
    return None


def sandbox(ringsim):
    """A folder that looks like the repository, in which commands may write."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="doc_commands."))
    for name in ("validate", "tests", "topologies", "docs", "README.md", "tools"):
        (folder / name).symlink_to(root / name)
    shutil.copytree(root / "scenarios", folder / "scenarios", ignore=shutil.ignore_patterns("*.cpp", "*.hpp"))
    for place in ("build/tools", "bin"):
        (folder / place).mkdir(parents=True)
        (folder / place / "ringsim").symlink_to(ringsim)
    return folder


def stand_in(name, folder, environment):
    """Makes the file of that name if it is one of the reader's, and no command before has written it."""
    source = stand_ins.get(name)
    if source is None or any(folder.glob(name)):
        return
    if source.startswith("$ "):
        for word in source.split()[2:]:
            if word != name:
                stand_in(word, folder, environment)
        subprocess.run(["bash", "-c", source[2:]], cwd=folder, env=environment, capture_output=True, check=True)
    elif source.startswith("= "):
        (folder / name).write_text(source[2:], encoding="utf-8")
    else:
        for file in root.glob(source):
            shutil.copy(file, folder / (file.name if "*" in name else name))


def run_page(page, commands, ringsim, slow):
    """[what is wrong], and the CPU seconds of each command."""
    wrong, seconds = [], []
    folder = sandbox(ringsim)
    environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", NO_COLOR="1")
    for name in ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"):
        environment.pop(name, None)
    try:
        for command in commands:
            if command.state == "not run" or (command.state == "slow" and not slow):
                continue
            words = shlex.split(command.text.replace("\\\n", " "), comments=True)
            for i, word in enumerate(words):
                if words[i - 1] not in ("-o", "--output"):
                    stand_in(word, folder, environment)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(["bash", "-c", command.text], cwd=folder, env=environment, capture_output=True, text=True,
                                  timeout=280)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append((after.ru_utime - before.ru_utime, command))
            if done.returncode != command.code:
                wrong.append(f"{command.place()}\n  expected exit code {command.code}, found {done.returncode}\n"
                             + "".join(f"  | {line}\n" for line in (done.stderr or done.stdout).splitlines()[:6]))
            lost = missing_line(command.quoted, (done.stderr + done.stdout).splitlines())
            if lost is not None:
                wrong.append(f"{command.place()}\n  does not print the line that the page quotes: {lost}\n")
    finally:
        shutil.rmtree(folder)
    return wrong, seconds


def main(words):
    options = [word for word in words if word.startswith("--")]
    names = [word for word in words if not word.startswith("--")]
    if not names or set(options) - {"--slow", "--list"}:
        sys.exit(__doc__)
    ringsim = pathlib.Path(names[0]).resolve()
    pages = names[1:] or ["README.md", *sorted(str(path.relative_to(root)) for path in root.glob("docs/guide/*.md"))]
    wrong, seconds, counts = [], [], {"run": 0, "slow": 0, "not run": 0}
    for page in pages:
        commands = commands_of(page, wrong)
        for command in commands:
            if page in elsewhere:
                command.state, command.why = "slow", f"the test {elsewhere[page]} runs it"
            counts[command.state] += 1
            if "--list" in options:
                print(f"{command.state:8}{command.place()}" + (f"  ({command.why})" if command.why else ""))
        if "--list" not in options:
            faults, took = run_page(page, [] if page in elsewhere else commands, ringsim, "--slow" in options)
            wrong += faults
            seconds += took
    print("".join(wrong), end="")
    print(f"doc_commands: {counts['run']} run, {counts['slow']} slow, {counts['not run']} not run; {sum(s for s, _ in seconds):.1f} s")
    for took, command in sorted(seconds, key=lambda each: -each[0])[:3]:
        print(f"  {took:5.1f} s  {command.place()}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
