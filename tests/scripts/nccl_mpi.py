#!/usr/bin/env python3
"""ringsim replay --backend nccl by processes that MPI starts, on fake GPUs and a fake NCCL.

Usage: tests/scripts/nccl_mpi.py RINGSIM_ON_FAKE_GPU

The fake NCCL of a process does not meet that of another: two of them wait in vain, and must not wait forever.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from processes import wait_until_at_work

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]


def fail(what):
    sys.exit(f"nccl_mpi: FAILED: {what}")


class Test:
    def __init__(self, ringsim, folder):
        self.ringsim, self.scenario, self.before = ringsim, folder / "star.json", []
        self.scenario.write_text(json.dumps({
            "version": 1, "topology": {"kind": "star", "ranks": 2, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
            "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 KiB"}}))

    def replay(self, processes, *arguments, code, says, **told):
        """What the command wrote; fails unless it ends with `code` and says each of `says`."""
        command = [*MPIRUN, str(processes), *self.before, self.ringsim, "replay", str(self.scenario), "--backend", "nccl",
                   *arguments]
        done = subprocess.run(command, text=True, capture_output=True, timeout=100, env={**os.environ, **told})
        for each in says:
            if each not in done.stderr:
                fail(f"{' '.join(command)}: {each!r} is not in\n{done.stderr}")
        if done.returncode != code:
            fail(f"{' '.join(command)}: exit code {done.returncode}, expected {code}\n{done.stderr}")
        return done

    def one_process(self):
        one = ["--set", 'collective.ranks=["gpu0"]', "--format", "json"]
        for how in ([], ["--library"], ["--library", "--streams"]):
            # More processes than ranks: those that are left over wait, and say nothing.
            for processes in (1, 2):
                done = self.replay(processes, *one, *how, code=0,
                                   says=[f"measured on a fake GPU, a fake NCCL, {processes} processes\n"])
                (row,) = json.loads(done.stdout)["results"]
                if row["wrong"] != 0 or row["measured_us"] is None:
                    fail(f"{how}: {row}")

    def interrupted(self):
        command = [self.ringsim, "replay", str(self.scenario), "--backend", "nccl", "--timeout", "90s"]
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, "FAKE_GPUS": "2", "FAKE_GPU_FAULT": "stall"})
        wait_until_at_work([process.pid])
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
        if process.returncode != 130 or "stopped while" not in said:
            fail(f"Ctrl-C: exit code {process.returncode}\n{said}")

    def endings(self):
        self.replay(1, code=3, says=["expected 2 processes or more, found 1\n", "mpirun -n 2"])
        for processes in (2, 3):
            done = self.replay(processes, "--library", "--set", "collective.algorithm=pairwise", "--set",
                               "collective.op=all_to_all", code=3, says=["all_to_all"])
            if done.stderr.count("ringsim: error") != 1:
                fail(f"{processes} processes refuse, and one says it, found\n{done.stderr}")
        self.replay(2, code=5, says=["looking for GPUs: no GPU is faked\n"], FAKE_GPU_FAULT="absent")
        begin = time.monotonic()
        # Each has a GPU of its own, and process 0 tells where they meet.
        done = self.replay(2, "--timeout", "1s", code=5, FAKE_GPUS="2", says=[
            "not finished within 1000 ms\n", "rank 0 on GPU 0 meets", "rank 1 on GPU 1 meets"])
        points = re.findall(r"meets at process (\d+)\n", done.stderr)
        if len(points) != 2 or points[0] != points[1]:
            fail(f"they meet at {points}")
        if time.monotonic() - begin > 30:  # a second, and what MPI takes to begin and to end
            fail(f"two that wait in vain took {time.monotonic() - begin:.1f} s")
        # One alone fails, before it joins: the other is ended, long before it gives up by itself.
        self.before = ["sh", "-c", '[ $OMPI_COMM_WORLD_RANK = 0 ] || export FAKE_GPU_FAULT=memory; exec "$0" "$@"']
        begin = time.monotonic()
        self.replay(2, "--timeout", "90s", code=5, says=["allocating 64 KiB in GPU 0 for rank 1: the fake GPU is full\n"])
        if time.monotonic() - begin > 30:
            fail(f"one that waits for one that failed took {time.monotonic() - begin:.1f} s")


with tempfile.TemporaryDirectory() as folder:
    test = Test(sys.argv[1], pathlib.Path(folder))
    test.one_process()
    test.interrupted()
    test.endings()
print("nccl_mpi: all is well")
