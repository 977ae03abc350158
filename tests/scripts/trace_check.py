#!/usr/bin/env python3
"""trace_check.py RINGSIM SCENARIO... : traces of runs keep the rules of their formats, and all formats tell the same.

Rules: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Chrome's trace events) and
perfetto.dev/docs/reference/synthetic-track-event: slices of a track nest, each flow has both ends, each at the begin
of a slice, times are in order, all tracks are described, counters of shares lie within 0 and 100.
"""
import collections
import copy
import decimal
import gzip
import json
import pathlib
import struct
import subprocess
import sys
import tempfile


class Broken(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Broken(text)


def check_nesting(track, slices):
    """`slices`: (begin, end, name) in the order in which they open."""
    open_ends = []
    for begin, end, name in slices:
        require(begin <= end, f"{track}: {name} ends before it begins")
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        require(not open_ends or end <= open_ends[-1], f"{track}: {name} does not lie within the slice around it")
        open_ends.append(end)


def check_chrome(document):
    """Returns slices (process, track, name, begin, end) and samples (process, track, time, value); times in ps."""
    processes, threads, slices, samples = {}, {}, collections.defaultdict(list), []
    flows, begins = collections.defaultdict(list), set()
    last = 0
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            names = {"process_name": processes, "thread_name": threads}.get(event["name"])
            if names is not None:
                key = event["pid"] if names is processes else (event["pid"], event["tid"])
                require(key not in names, f"{event} describes a track again")
                names[key] = event["args"]["name"]
            continue
        now = int(event["ts"] * 1000000)
        require(now >= last, f"{event} comes before what is earlier")
        last = now
        require(event["pid"] in processes, f"{event} is of no process")
        if event["ph"] == "C":
            (value,) = event["args"].values()
            samples.append((processes[event["pid"]], event["name"], now, float(value)))
            continue
        place = (event["pid"], event["tid"])
        require(place in threads, f"{event} is of no thread")
        if event["ph"] == "X":
            slices[place].append((now, now + int(event["dur"] * 1000000), event["name"]))
            begins.add((place, now))
        elif event["ph"] in "sf":
            require(event["ph"] == "s" or event.get("bp") == "e", f"{event} would end at the next slice")
            flows[event["id"]].append((event["ph"], place, now))
        else:
            raise Broken(f"{event} is of no kind that ringsim writes")
    for place, each in slices.items():
        check_nesting(threads[place], each)
    for number, ends in flows.items():
        require(sorted(end[0] for end in ends) == ["f", "s"], f"flow {number} has not both ends: {ends}")
        for _, place, now in ends:
            require((place, now) in begins, f"flow {number} has an end at no slice")
        require(len({end[2] for end in ends}) == 1, f"flow {number} is one message, which starts once")
    told = [(processes[place[0]], threads[place], name, begin, end)
            for place, each in slices.items() for begin, end, name in each]
    return told, samples, len(flows)


def fields(data):
    """The fields of a protobuf message: (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            at += 8
            yield key >> 3, data[at - 8:at]
        elif key & 7 == 2:
            size = varint()
            require(at + size <= len(data), "a field is longer than its message")
            at += size
            yield key >> 3, data[at - size:at]
        else:
            raise Broken(f"wire type {key & 7}")


def check_perfetto(data):
    processes, tracks, counters = {}, {}, {}
    open_slices, slices, samples = collections.defaultdict(list), [], []
    flows = collections.defaultdict(list)
    last, is_first = 0, True
    for number, packet in fields(data):
        require(number == 1, "a trace consists of packets")
        of = dict(fields(packet))
        require(of.get(10) == 1, "a packet has no trusted_packet_sequence_id")
        require((of.get(13) == 1) == is_first, "the first packet, and no other, clears the incremental state")
        is_first = False
        if 60 in of:
            track = dict(fields(of[60]))
            if 3 in track:
                processes[track[1]] = dict(fields(track[3]))[6].decode()
            else:
                require(track[5] in processes, "a track is of no process")
                name = track[2] if 8 in track else dict(fields(track[4]))[5]
                (counters if 8 in track else tracks)[track[1]] = (processes[track[5]], name.decode())
            continue
        now = of.get(8)
        require(now is not None and now >= last, "a packet comes before what is earlier")
        last = now
        event = collections.defaultdict(list)
        for key, value in fields(of[11]):
            event[key].append(value)
        (kind,), (uuid,) = event[9], event[11]
        if kind == 4:
            samples.append((*counters[uuid], now, struct.unpack("<d", event[44][0])[0]))
            continue
        require(uuid in tracks, "a slice is on no track")
        if kind == 1:
            open_slices[uuid].append((event[23][0].decode(), now))
            for key in (47, 48):
                for flow in event[key]:
                    flows[struct.unpack("<Q", flow)[0]].append(key)
        else:
            require(kind == 2 and open_slices[uuid], "an end without a begin")
            name, begin = open_slices[uuid].pop()
            slices.append((*tracks[uuid], name, begin, now))
    for uuid, left in open_slices.items():
        require(not left, f"{tracks[uuid]}: {left} never ends")
    for number, ends in flows.items():
        require(sorted(ends) == [47, 48], f"flow {number} has not both ends")
    return slices, samples, len(flows)


def check_same(chrome, perfetto):
    (told, samples, n_flows), (other, other_samples, other_flows) = chrome, perfetto
    in_ns = collections.Counter((*each[:3], each[3] // 1000, each[4] // 1000) for each in told)
    difference = in_ns - collections.Counter(other) + (collections.Counter(other) - in_ns)
    require(not difference, f"the formats differ: {list(difference)[:3]}")
    require(n_flows == other_flows, f"{n_flows} flows in JSON, {other_flows} in Perfetto's format")
    require(len(samples) == len(other_samples), "the formats differ in their counters")
    for here, there in zip(sorted(samples), sorted(other_samples)):
        require(here[:2] == there[:2] and here[2] // 1000 == there[2], f"the formats differ: {here}, {there}")
        require(abs(here[3] - there[3]) <= 1e-5 * abs(there[3]), f"the formats differ: {here}, {there}")
        require(0 <= here[3] <= 100.0001, f"a link carries more than it can: {here}")


def check_is_strict(document):
    """Traces that are broken on purpose are refused: else the checks above would hold for anything."""
    def broken(change):
        damaged = copy.deepcopy(document)
        change(damaged["traceEvents"])
        try:
            check_chrome(damaged)
        except Broken:
            return
        sys.exit("trace_check: a broken trace was accepted")

    def first(events, kind):
        return next(i for i, event in enumerate(events) if event["ph"] == kind)

    broken(lambda events: events.pop(first(events, "f")))
    broken(lambda events: events.pop(first(events, "M")))
    broken(lambda events: events.insert(len(events), events[first(events, "X")]))
    try:
        check_nesting("a track", [(0, 10, "a"), (5, 15, "b")])
        sys.exit("trace_check: slices that overlap were accepted")
    except Broken:
        pass


def main():
    command, scenarios = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        def traced(scenario, suffix, *more):
            file = pathlib.Path(folder) / f"trace{suffix}"
            subprocess.run([command, "run", scenario, "--trace", file, *more],
                           check=True, stdout=subprocess.DEVNULL)
            data = file.read_bytes()
            if suffix == ".pftrace":
                return data
            text = gzip.decompress(data) if suffix == ".json.gz" else data
            return json.loads(text, parse_float=decimal.Decimal)

        for scenario in scenarios:
            document = traced(scenario, ".json")
            require(document == traced(scenario, ".json.gz"), f"{scenario}: compressed, the trace is another")
            whole = check_chrome(document)
            check_same(whole, check_perfetto(traced(scenario, ".pftrace")))
            require(whole[2] > 0, f"{scenario}: no message")
            path = sorted((begin, end) for process, _, _, begin, end in whole[0] if process == "critical path")
            require(path[0][0] == 0 and all(a[1] == b[0] for a, b in zip(path, path[1:])),
                    f"{scenario}: the critical path has a gap")
            check_is_strict(document)
            # A part: of rank 1, in the first half.
            half = path[-1][1] // 2
            part = ["--trace-rank", "1", "--trace-to", f"{half} ps"]
            some = check_chrome(traced(scenario, ".json", *part))
            check_same(some, check_perfetto(traced(scenario, ".pftrace", *part)))
            ranks = {each[0] for each in some[0]} - {"critical path"}
            require(0 < some[2] < whole[2], f"{scenario}: {some[2]} of {whole[2]} messages were chosen")
            for process, track, name, begin, end in some[0]:
                require(begin <= half, f"{scenario}: {name} begins after --trace-to")
                if process in ranks and not process.startswith("rank 1 ") and track.startswith(("sends", "receives")):
                    require(name.endswith(" rank 1"), f"{scenario}: {name} is neither from nor to rank 1")
            print(f"{scenario}: {len(whole[0])} slices, {whole[2]} messages, {len(whole[1])} samples")


if __name__ == "__main__":
    try:
        main()
    except Broken as rule:
        sys.exit(f"trace_check: {rule}")
