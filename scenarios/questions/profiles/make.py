#!/usr/bin/env python3
"""Makes rank0.json.gz to rank3.json.gz, profiles of a job that is made up: four GPUs of a DGX A100, ten steps of

- an all-reduce of 64 MiB, for which rank 2 arrives some 0.9 ms late,
- an all-reduce of 16 MiB, whose transfer takes twice as long as it should,
- an all-gather of 64 MiB, as it should be.

Times without a cause are those that ringsim predicts for NCCL 2.21.5. Usage: scenarios/questions/profiles/make.py
"""
import gzip
import json
import pathlib
import random

FOLDER = pathlib.Path(__file__).parent
RANKS = 4
PREDICTED = {"allreduce 64": 536.0, "allreduce 16": 195.0, "_allgather_base 64": 298.0}  # us


def job():
    chance = random.Random(33)
    kernels = [[] for _ in range(RANKS)]
    now = 1000.0
    for step in range(10):
        for number, (name, predicted) in enumerate(PREDICTED.items()):
            op, mib = name.split()
            late = 900 + chance.uniform(-100, 100) if number == 0 else 0
            transfer = predicted * (2 if number == 1 else 1) * chance.uniform(1.0, 1.06)
            arrivals = [now + chance.uniform(0, 8) + (late if rank == 2 else 0) for rank in range(RANKS)]
            end = max(arrivals) + transfer
            out = int(mib) * 2**20 // 4
            into = out // RANKS if op == "_allgather_base" else out
            for rank in range(RANKS):
                finish = end - chance.uniform(0, 3)
                kernels[rank].append({
                    "ph": "X", "cat": "kernel", "name": "ncclDevKernel_Ring_Simple", "pid": rank, "tid": 20,
                    "ts": round(arrivals[rank], 3), "dur": round(finish - arrivals[rank], 3),
                    "args": {"External id": len(kernels[rank]) + 1, "stream": 20, "correlation": len(kernels[rank]) + 1,
                             "grid": [24, 1, 1], "block": [544, 1, 1], "Collective name": op, "In msg nelems": into,
                             "Out msg nelems": out, "Group size": RANKS, "dtype": "Float", "Process Group Name": "0",
                             "Process Group Ranks": str(list(range(RANKS))), "Seq": 3 * step + number}})
            now = end + 400
    return kernels


def main():
    for rank, events in enumerate(job()):
        trace = {"schemaVersion": 1,
                 "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS, "nccl_version": "2.21.5"},
                 "traceEvents": events}
        with open(FOLDER / f"rank{rank}.json.gz", "wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
            packed.write(json.dumps(trace).encode())


if __name__ == "__main__":
    main()
