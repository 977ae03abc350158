#!/usr/bin/env python3
"""Writes the execution traces of scenarios/examples/trace: a made-up step of four ranks with two layers, whose gradients are
reduced in two buckets; rank 2 computes longer.

Usage: tests/scripts/make_trace_example.py [FOLDER]
"""
import pathlib
import sys

COMPUTE, COLLECTIVE = 4, 7
ALL_REDUCE = 0


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(content):
    return varint(len(content)) + content


class Rank:
    """A trace: a CPU thread launches kernels of one stream, 6 us each; a second stream reduces."""

    def __init__(self, ends):
        self.reduced = ends  # when reductions end, by number; of those beyond, 150 us after this rank has come
        self.n_reduced = 0
        self.bytes = message(field(1, "0.0.4"))
        self.id = 0
        self.ends = {}  # of streams
        self.done = {}  # of nodes

    def node(self, name, kind, stream, duration, data=(), on_cpu=False, attributes=b""):
        start = max([self.ends.get((on_cpu, stream), 1000)] + [self.done[each] for each in data])
        self.id += 1
        content = field(1, self.id) + field(2, name) + field(3, kind)
        if data:
            content += field(5, b"".join(map(varint, data)))
        content += field(6, start) + field(7, duration)
        content += field(10, field(1, "is_cpu_op") + field(27, int(on_cpu)))
        content += field(10, field(1, "tid" if on_cpu else "stream") + field(9, stream)) + attributes
        self.bytes += message(content)
        self.ends[on_cpu, stream] = self.done[self.id] = start + duration
        return self.id

    def kernel(self, name, duration, data=()):
        launch = self.node("launch " + name, COMPUTE, 1, 6, on_cpu=True)
        return self.node(name, COMPUTE, 7, duration, [launch, *data])

    def reduce(self, size, data):
        start = max(self.ends.get((False, 20), 0), self.done[data])
        if self.n_reduced == len(self.reduced):
            self.reduced.append(start + 150)
        duration = self.reduced[self.n_reduced] - start
        self.n_reduced += 1
        said = field(10, field(1, "comm_type") + field(9, ALL_REDUCE)) + field(10, field(1, "comm_size") + field(9, size))
        return self.node("ncclDevKernel_AllReduce", COLLECTIVE, 20, duration, [data], attributes=said)


def step(slower, ends):
    rank = Rank(ends)
    for layer in range(2):
        rank.kernel(f"forward {layer}", 40 * slower // 10)
    buckets = []
    for layer in reversed(range(2)):
        buckets.append(rank.reduce(8 << 20, rank.kernel(f"backward {layer}", 80 * slower // 10)))
    rank.kernel("adam", 25, buckets)
    return rank.bytes


def main(folder):
    ends = []
    for number in (2, 0, 1, 3):  # the last one first: its reductions end when it has come
        (folder / f"ddp.{number}.et").write_bytes(step(13 if number == 2 else 10, ends))


if __name__ == "__main__":
    root = pathlib.Path(__file__).resolve().parents[2]
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "scenarios/examples/trace")
