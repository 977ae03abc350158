#!/usr/bin/env python3
"""Replays over several machines among hostile peers: strangers and members of the replay that send nonsense to the process
that leads, and leaders that send nonsense to those that join. Nothing crashes; a stranger never ends a run; a member's
nonsense ends it with a message and exit code 5; nothing of a peer's control characters comes to the terminal.

Usage: replay_hostile.py RINGSIM [--only WORD]
"""
import argparse
import concurrent.futures
import contextlib
import hmac
import itertools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

from processes import children

SECRET = "between-the-processes-of-this-test"
PORT = 7117
RANKS = 3
LIMIT = 30  # seconds for a case, which takes 1 to 10
ADDRESSES = (f"127.77.{i // 250}.{i % 250 + 1}" for i in itertools.count())  # each case has its own
DIGITS = "0" * 64
DEEP = b'{"a":' + b"[" * 30000 + b"]" * 30000 + b"}\n"
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\nringsim: all is well"
RAW = re.compile(r"[^\n\t\x20-\x7e\xa0-\uffff]")


def proof(*words, secret=SECRET):
    text = "".join(f"{len(str(word))}:{word}\n" for word in words)
    return hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()


class Wrong(Exception):
    pass


class Wire:
    """A connection that sends lines, or anything else."""

    def __init__(self, connected):
        self.socket, self.read = connected, b""
        self.heard = b""
        connected.settimeout(10)

    def send(self, what):
        data = what if isinstance(what, bytes) else json.dumps(what).encode() + b"\n"
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # it hung up, as it should

    def line(self):
        while b"\n" not in self.read:
            try:
                more = self.socket.recv(65536)
            except OSError:
                more = b""
            if not more:
                return None
            self.read += more
            self.heard += more
        text, self.read = self.read.split(b"\n", 1)
        return json.loads(text)

    def hung_up(self):
        return self.line() is None

    def close(self):
        self.socket.close()


class Case:
    """One replay, at an address of its own."""

    def __init__(self, name, ringsim, folder):
        self.name, self.ringsim = name, ringsim
        self.address = next(ADDRESSES)
        self.folder = folder / re.sub(r"\W+", "-", name)
        self.folder.mkdir()
        self.hosts = self.file("hosts", f"{self.address}:{PORT}\n" + f"{self.address}\n" * (RANKS - 1))
        self.secret = self.file("secret", SECRET + "\n")
        self.processes, self.wires = [], []

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def start(self, rank, *more, scenario="scenario.json", secret=None):
        process = subprocess.Popen(
            [self.ringsim, "replay", self.folder.parent / scenario, "--backend", "tcp", "--hosts", self.hosts, "--rank",
             str(rank), "--secret-file", secret or self.secret, "--repeats", "2", "--warmups", "0", "--format", "jsonl", *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.processes.append(process)
        return process

    def end(self, process, code, *texts):
        """Its exit code, and what it says on stderr."""
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Wrong("is still running") from None
        err = err.decode(errors="replace")
        if process.returncode != code:
            raise Wrong(f"exit code {process.returncode}, expected {code}: {err}")
        for text in texts:
            if text not in err:
                raise Wrong(f"does not say \"{text}\": {err}")
        if raw := RAW.search(err + out.decode(errors="replace")):
            raise Wrong(f"prints {raw.group()!r}: {err!r}")
        if any(line.startswith("ringsim: all is well") for line in err.splitlines()):
            raise Wrong(f"lets a peer write lines of its own: {err}")
        return out, err

    def complete(self, leader, *others, strangers=True):
        """All end well, and the results are right."""
        for other in others:
            self.end(other, 0)
        out, err = self.end(leader, 0, *(["turned away"] if strangers else []))
        if b'"wrong":0' not in out:
            raise Wrong(f"no results, or wrong ones: {out}")
        return err

    def connect(self, port=PORT):
        until = time.monotonic() + 10
        while True:
            try:
                wire = Wire(socket.create_connection((self.address, port), timeout=10))
                self.wires.append(wire)
                return wire
            except OSError:
                if time.monotonic() > until:
                    raise Wrong("nobody listens") from None
                time.sleep(0.02)

    def join(self, wire, rank, port=1, changed={}):
        challenge, nonce = wire.line()["challenge"], "ab" * 32
        line = {"process": rank, "port": port, "key": KEY, "nonce": nonce,
                "proof": proof("join", challenge, nonce, rank, port, KEY)}
        wire.send({**line, **changed})
        answer = wire.line()
        if not changed and answer != {"welcome": proof("lead", nonce, challenge, rank)}:
            raise Wrong(f"a member with the secret is not welcome: {answer}")
        return answer

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for wire in self.wires:
            wire.close()


def listening(pids):
    """(address, port) of sockets at which these processes listen, from /proc."""
    inodes = set()
    for pid in pids:
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                if found := re.match(r"socket:\[(\d+)\]", os.readlink(fd)):
                    inodes.add(found.group(1))
    found = set()
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            address, port = fields[1].split(":")
            found.add((".".join(str(byte) for byte in reversed(bytes.fromhex(address))), int(port, 16)))
    return found


# Strangers: before they join. The run completes.

NONSENSE = {
    "hangs up at once": b"",
    "an empty line": b"\n",
    "no JSON": b"hello there\n",
    "bytes that are no UTF-8": b"\xff\xfe\x00\x80" * 40 + b"\n",
    "zeros": b"\0" * 900 + b"\n",
    "a request of HTTP": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a greeting of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x55" * 300,
    "an empty object": b"{}\n",
    "a list": b"[1, 2, 3]\n",
    "a text": b'"process"\n',
    "half a line": b'{"process": 1, "port',
    "a long line": b"a" * 5000 + b"\n",
    "a line of 10 MB without an end": b"a" * 10_000_000,
    "objects in objects": DEEP,
    "1000 lists in lists within 1 KiB": b'{"a":' + b"[" * 1000 + b"\n",
    "control characters": json.dumps({"failed": EVIL, "kind": EVIL}).encode() + b"\n",
    "fails before it joins": b'{"failed": "all", "kind": "invariant"}\n',
    "ready before it joins": b'{"ready": 0}\n',
    "times before it joins": b'{"times_ns": [1], "checked": 9, "wrong": 0, "first_wrong": ""}\n',
    "many lines at once": b'{"ready": 0}\n' * 70,
}

CHANGED = {
    "no proof": {"proof": None},
    "a proof of zeros": {"proof": DIGITS},
    "a short proof": {"proof": "ab"},
    "a proof that is a number": {"proof": 1},
    "a process that is a text": {"process": "1"},
    "a process below 0": {"process": -1},
    "a process that there is not": {"process": RANKS},
    "a process beyond 64 bits": {"process": 2**64},
    "a process that is a fraction": {"process": 1.5},
    "a process that is a list": {"process": [1]},
    "port 0": {"port": 0},
    "port 65536": {"port": 65536},
    "another port than it proved": {"port": 2},
    "a key that is an object": {"key": {}},
    "another key than it proved": {"key": "x"},
    "a nonce that is null": {"nonce": None},
    "one member too many": {"more": 1},
}


def stranger(case, data):
    leader = case.start(0)
    wire = case.connect()
    wire.send(data)
    if data.endswith(b"\n"):
        wire.line()  # the challenge
        if not wire.hung_up():
            raise Wrong("is not hung up on")
    wire.close()
    case.complete(leader, case.start(1), case.start(2))


def changed_join(case, change):
    leader = case.start(0)
    wire = case.connect()
    answer = case.join(wire, 1, changed=change)
    if answer not in (None, {"refused": "secret"}):
        raise Wrong(f"is answered {answer}")
    if not wire.hung_up():
        raise Wrong("is not hung up on")
    case.complete(leader, case.start(1), case.start(2))


def another_secret(case):
    leader = case.start(0)
    wire = case.connect()
    challenge = wire.line()["challenge"]
    wire.send({"process": 1, "port": 1, "key": KEY, "nonce": DIGITS,
               "proof": proof("join", challenge, DIGITS, 1, 1, KEY, secret="scenario")})
    if wire.line() != {"refused": "secret"} or not wire.hung_up():
        raise Wrong("is not refused")
    other = case.start(1, secret=case.file("other", "another secret of 16 bytes and more"))
    case.end(other, 5, "the secret of this process differs from that of process 0")
    err = case.complete(leader, case.start(1), case.start(2))
    if "2 connections were turned away: 2 with another secret" not in err:
        raise Wrong(f"does not count: {err}")


def a_proof_again(case):
    """What a process said to one that led is no proof to another."""
    with socket.create_server((case.address, PORT)) as server:
        joiner = case.start(1, "--timeout", "1s")
        seen = Wire(server.accept()[0])
        seen.send({"challenge": DIGITS})
        line = seen.line()
        seen.close()
        case.end(joiner, 5, "lost the process that leads the replay")
        server.shutdown(socket.SHUT_RDWR)  # at once, though a process that another case starts also has it until it runs
    if SECRET.encode() in seen.heard:
        raise Wrong("sends its secret")
    leader = case.start(0)
    wire = case.connect()
    challenge = wire.line()
    wire.send(line)
    if (answer := wire.line()) != {"refused": "secret"}:
        raise Wrong(f"is not refused after {challenge}, but answered {answer}")
    case.complete(leader, case.start(1), case.start(2))


def rank_twice(case):
    leader, first = case.start(0), case.start(1)
    until = time.monotonic() + 10
    while len(listening([leader.pid, first.pid])) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    case.end(case.start(1), 5, "another process already uses this --rank")
    err = case.complete(leader, case.start(2), first)
    if "1 with a --rank that is already in use" not in err:
        raise Wrong(f"does not count: {err}")


def another_scenario(case):
    leader = case.start(0)
    case.connect().close()
    case.end(case.start(1, scenario="other.json"), 5, "this process replays a different scenario")
    case.complete(leader, case.start(1), case.start(2))


def peak_kib(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def greedy(case, n, data):
    """Connections that hold on and send all that is taken. Memory is bounded, and the others come in."""
    leader = case.start(0)
    case.connect()
    before = peak_kib(leader.pid)
    wires = [case.connect() for _ in range(n)]

    def feed(wire):
        wire.socket.settimeout(0.5)
        wire.send(data)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(feed, wires))
    time.sleep(0.3)
    after = peak_kib(leader.pid)
    case.note = f"as expected: the most memory went from {before} to {after} KiB"
    if after - before > 4096:
        raise Wrong(f"takes {after - before} KiB for {n} connections")
    case.complete(leader, case.start(1), case.start(2))


def own_address_only(case):
    """Listens at the address of its own line, and no other; so do the ports for data."""
    leader, first = case.start(0), case.start(1)
    until = time.monotonic() + 10
    at = set()
    while len(at) < 3 and time.monotonic() < until:
        at = listening([leader.pid, first.pid, *children(leader.pid)])
        time.sleep(0.02)
    if len(at) < 3 or {address for address, _ in at} != {case.address}:
        raise Wrong(f"listens at {at}")
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=1).close()
        raise Wrong("listens at another address than its own")
    except OSError:
        pass
    case.complete(leader, case.start(2), first, strangers=False)


def strangers_at_the_data(case):
    """The ports for data are open until all are connected."""
    leader, first = case.start(0), case.start(1)
    until = time.monotonic() + 10
    at = set()
    while len(at) < 3 and time.monotonic() < until:
        at = listening([leader.pid, first.pid, *children(leader.pid)])
        time.sleep(0.02)
    for _, port in at - {(case.address, PORT)}:
        for data in (b"", b"\0" * 72, b"GET / HTTP/1.1\r\n\r\n" * 10, b"\xff" * 1000, b"\0\0\0\0" * 2 + DIGITS.encode(),
                     b"\2\0\0\0\0\0\1\0" + DIGITS.encode(), *[b"\0" * 10] * 30):
            case.connect(port).send(data)
    case.complete(leader, case.start(2), first, strangers=False)


# Members: they know the secret, and then say what no process says. The run ends, with a message.

class Member:
    """Rank 1 of three, in a ring: rank 0 sends to it, and it sends to rank 2."""

    def __init__(self, case):
        self.case = case
        self.leader = case.start(0)
        self.wire = case.connect()
        self.server = socket.create_server((case.address, 0))
        case.join(self.wire, 1, port=self.server.getsockname()[1])
        self.last = None

    def say(self, line):
        self.wire.send(line)

    def connect(self):
        self.last = self.case.start(2)
        told = self.wire.line()
        self.data = self.case.connect(told["ports"][2])
        words = proof("data", told["session"], 0, 1, 2, 0)
        self.data.send(b"\1\0\0\0\0\0\0\0" + words.encode())

    def begin(self):
        self.connect()
        self.say({"connected": True, "notes": []})
        self.say({"ready": 0})
        self.wire.line()

    def run(self):
        self.begin()
        self.say({"ready": 1})


JOINED = lambda member: None
CONNECTED = Member.connect
BEGUN = Member.begin
RUN = Member.run
GONE = "lost rank 1: it sent an invalid line: expected"
MEMBERS = {
    "nonsense": (JOINED, b"nonsense\n", GONE),
    "deep": (JOINED, DEEP, GONE),
    "a line of 10 MB": (JOINED, b"a" * 10_000_000, "lost rank 1: it sent a line of more than 65536 bytes"),
    "connected without notes": (CONNECTED, {"connected": True}, GONE),
    "notes that are numbers": (CONNECTED, {"connected": True, "notes": [1, 2]}, GONE),
    "1000 notes": (CONNECTED, {"connected": True, "notes": ["a"] * 1000}, GONE),
    "a long note": (CONNECTED, {"connected": True, "notes": ["a" * 5000]}, GONE),
    "ready for another run": (CONNECTED, b'{"connected":true,"notes":[]}\n{"ready":7}\n', GONE),
    "ready as a text": (CONNECTED, b'{"connected":true,"notes":[]}\n{"ready":"0"}\n', GONE),
    "joins again": (BEGUN, {"process": 1, "port": 1, "key": "", "nonce": DIGITS, "proof": DIGITS}, GONE),
    "times that are texts": (RUN, {"times_ns": ["1", "2"], "checked": 9, "wrong": 0, "first_wrong": ""}, GONE),
    "times below 0": (RUN, {"times_ns": [-1, 1], "checked": 9, "wrong": 0, "first_wrong": ""}, GONE),
    "times beyond 64 bits": (RUN, {"times_ns": [2**64, 1], "checked": 9, "wrong": 0, "first_wrong": ""}, GONE),
    "times whose sum is beyond 64 bits": (RUN, {"times_ns": [2**63 - 1, 2**63 - 1], "checked": 9, "wrong": 0, "first_wrong": ""}, GONE),
    "more times than runs": (RUN, {"times_ns": [1] * 3, "checked": 9, "wrong": 0, "first_wrong": ""}, GONE),
    "wrong as a list": (RUN, {"times_ns": [1, 1], "checked": 9, "wrong": [], "first_wrong": ""}, GONE),
    "less than 0 wrong": (RUN, {"times_ns": [1, 1], "checked": 9, "wrong": -1, "first_wrong": ""}, GONE),
    "no count of what was checked": (RUN, {"times_ns": [1, 1], "wrong": 0, "first_wrong": ""}, GONE),
    "more wrong than were checked": (RUN, {"times_ns": [1, 1], "checked": 9, "wrong": 10, "first_wrong": ""}, GONE),
    "checked beyond 64 bits": (RUN, {"times_ns": [1, 1], "checked": 2**64, "wrong": 0, "first_wrong": ""}, GONE),
    "the first wrong as a number": (RUN, {"times_ns": [1, 1], "checked": 9, "wrong": 1, "first_wrong": 1}, GONE),
    "fails with control characters": (BEGUN, {"failed": EVIL, "kind": "environment"}, "rank 1: "),
    "fails with a number": (BEGUN, {"failed": 1, "kind": "environment"}, GONE),
    "fails with a long text": (BEGUN, {"failed": "a" * 60000, "kind": "late"}, GONE),
    "says that this program is wrong": (BEGUN, {"failed": "all is lost", "kind": "invariant"}, "rank 1: all is lost"),
    "hangs up": (BEGUN, None, "lost rank 1: End of file"),
    "a note with control characters": (CONNECTED, b'{"connected":true,"notes":[' + json.dumps(EVIL).encode() + b']}\n{}\n', GONE),
}


def member(case, stage, line, text):
    one = Member(case)
    stage(one)
    if line is None:
        one.wire.close()
    else:
        one.say(line)
    case.end(one.leader, 5, text)
    if one.last:
        case.end(one.last, 5, "process 0 reports: ")


def data_of_another_size(case):
    one = Member(case)
    one.begin()
    one.data.send((1 << 60).to_bytes(8, "little") + b"\0" * 4096)
    case.end(one.leader, 5, "rank 1 sent a message of 1152921504606846976 bytes, expected ")
    case.end(one.last, 5, "rank 1 sent a message of ")


def silent_at_ctrl_c(case):
    """A member that says nothing does not keep a replay from ending."""
    one = Member(case)
    one.connect()
    one.say({"connected": True, "notes": []})
    one.leader.send_signal(2)
    case.end(one.leader, 130, "interrupted")
    case.end(one.last, 5, "process 0 reports: ")


# Leaders: those that join believe nobody, and believe one with the secret only what is possible.

LEAD = "lost the process that leads the replay: it sent an invalid line: expected"
SENT = "the process that leads the replay sent an invalid line: expected"
LEADERS = {  # before it has proved the secret: what it sends at once
    "hangs up at once": (None, "lost the process that leads the replay: "),
    "says nothing": (b"", "took longer than 1 s"),
    "no JSON": (b"nonsense\n", LEAD),
    "a greeting of SSH": (b"SSH-2.0-OpenSSH_9.2p1\r\n", LEAD),
    "an answer of HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", LEAD),
    "zeros": (b"\0" * 900 + b"\n", LEAD),
    "bytes that are no UTF-8": (b"\xff\xfe" * 40 + b"\n", LEAD),
    "a line of 10 MB": (b"a" * 10_000_000, "lost the process that leads the replay: it sent a line of more than 1024 bytes"),
    "deep": (b'{"a":' + b"[" * 1000 + b"\n", LEAD),
    "a list": (b"[]\n", LEAD),
    "an empty object": (b"{}\n", SENT),
    "a challenge that is a number": (b'{"challenge": 1}\n', SENT),
    "a short challenge": (b'{"challenge": "ab"}\n', SENT),
    "a challenge and more": ({"challenge": DIGITS, "more": 1}, SENT),
    "1000 challenges": (b'{"challenge": "' + DIGITS.encode() + b'"}\n' * 1000, ""),
    "an end before a challenge": ({"abort": EVIL}, SENT),
    "a begin before a challenge": ({"begin_ns": 0}, SENT),
    "a welcome before a challenge": ({"welcome": DIGITS}, SENT),
}
ANSWERS = {  # to the joiner's proof
    "a welcome of zeros": ({"welcome": DIGITS}, SENT + " a proof that it has the same secret"),
    "a welcome that is a number": ({"welcome": 1}, SENT),
    "a welcome that is the joiner's own proof": ("echo", SENT + " a proof that it has the same secret"),
    "no welcome, but ports": ({"session": DIGITS, "ports": [1, 1, 1]}, SENT),
    "refuses in words of its own": ({"refused": EVIL}, SENT),
    "refuses with a list": ({"refused": []}, SENT),
    "refuses for no reason that there is": ({"refused": "mood"}, SENT),
    "an end without a welcome": ({"abort": EVIL}, SENT),
    "hangs up instead of a welcome": (None, "lost the process that leads the replay: "),
}
LED = {  # of one that knows the secret
    "an end with control characters": ({"abort": EVIL}, "]0;owned"),
    "an end that is a number": ({"abort": 1}, LEAD),
    "an end that is long": ({"abort": "a" * 60000}, LEAD),
    "ports that are texts": ({"session": DIGITS, "ports": ["a", "b", "c"]}, SENT),
    "port 0": ({"session": DIGITS, "ports": [0, 1, 1]}, SENT),
    "port 65536": ({"session": DIGITS, "ports": [65536, 1, 1]}, SENT),
    "no ports": ({"session": DIGITS, "ports": []}, SENT),
    "more ports than processes": ({"session": DIGITS, "ports": [1] * 10000}, SENT),
    "ports that are an object": ({"session": DIGITS, "ports": {}}, SENT),
    "no session": ({"ports": [1, 1, 1]}, SENT),
    "deep": (DEEP, LEAD),
    "a line of 10 MB": (b"a" * 10_000_000, "it sent a line of more than 65536 bytes"),
    "10000 lines": (b'{"done": true}\n' * 10000, ""),
    "ports where nobody listens": ({"session": DIGITS, "ports": [1, 1, 1]}, "cannot connect to rank 2 at "),
    "nothing more": (b"", "took longer than 1 s"),
    "done at once": ({"done": True}, SENT),
}


def leader(case, talk, text):
    with socket.create_server((case.address, PORT)) as server:
        joiner = case.start(1, "--timeout", "1s")
        server.settimeout(10)
        wire = Wire(server.accept()[0])
        case.wires.append(wire)
        talk(wire)
        case.end(joiner, 5, text)
        if SECRET.encode() in wire.heard:
            raise Wrong("sends its secret")


def send_or_close(wire, what):
    if what is None:
        wire.close()
    else:
        wire.send(what)


def answering(what):
    def talk(wire):
        wire.send({"challenge": DIGITS})
        line = wire.line()
        send_or_close(wire, {"welcome": line["proof"]} if what == "echo" else what)
    return talk


def leading(what):
    def talk(wire):
        wire.send({"challenge": DIGITS})
        line = wire.line()
        wire.send({"welcome": proof("lead", line["nonce"], DIGITS, 1)})
        send_or_close(wire, what)
    return talk


def drips(wire):
    """A byte every 0.1 s: the time limit holds for all of it."""
    def drip():
        for byte in b'{"challenge": "' + b"0" * 200:
            wire.send(bytes([byte]))
            time.sleep(0.1)
    threading.Thread(target=drip, daemon=True).start()


def begins_when(ns):
    """Leads rank 1 as far as a begin, at an impossible time."""
    def talk(wire):
        wire.send({"challenge": DIGITS})
        line = wire.line()
        wire.send({"welcome": proof("lead", line["nonce"], DIGITS, 1)})
        here = wire.socket.getsockname()[0]
        sink = socket.create_server((here, 0))  # rank 2
        wire.send({"session": DIGITS, "ports": [1, 1, sink.getsockname()[1]]})
        to_it = Wire(socket.create_connection((here, line["port"])))
        to_it.send(b"\0" * 8 + proof("data", DIGITS, 0, 0, 1, 0).encode())
        if "connected" not in wire.line() or wire.line() != {"ready": 0}:
            raise Wrong("is not ready")
        wire.send({"begin_ns": ns})
        wire.keep = (sink, to_it)
    return talk


def cases():
    for what, data in NONSENSE.items():
        yield f"stranger: {what}", lambda case, data=data: stranger(case, data)
    for what, change in CHANGED.items():
        yield f"joiner: {what}", lambda case, change=change: changed_join(case, change)
    for what in (another_secret, a_proof_again, rank_twice, another_scenario, own_address_only, strangers_at_the_data,
                 data_of_another_size, silent_at_ctrl_c):
        yield f"joiner: {what.__name__.replace('_', ' ')}", what
    yield "stranger: 100 greedy connections", lambda case: greedy(case, 100, b"a" * 1_000_000)
    yield "stranger: 100 connections with half a line", lambda case: greedy(case, 100, b"a" * 1000)
    yield "stranger: 100 idle connections", lambda case: greedy(case, 100, b"")
    yield "stranger: 200 idle connections, more than there is room for", lambda case: greedy(case, 200, b"")
    for what, (stage, line, text) in MEMBERS.items():
        yield f"member: {what}", lambda case, a=(stage, line, text): member(case, *a)
    for what, (data, text) in LEADERS.items():
        yield f"leader: {what}", lambda case, d=data, t=text: leader(case, lambda wire: send_or_close(wire, d), t)
    for what, (data, text) in ANSWERS.items():
        yield f"leader: {what}", lambda case, d=data, t=text: leader(case, answering(d), t)
    for what, (data, text) in LED.items():
        yield f"leader with the secret: {what}", lambda case, d=data, t=text: leader(case, leading(d), t)
    yield "leader: drips", lambda case: leader(case, drips, "took longer than 1 s")
    for ns in (-1, 2**62, 2**64, 0.5, "now"):
        yield f"leader with the secret: begins at {ns}", lambda case, ns=ns: leader(case, begins_when(ns), SENT)


def key_of(ringsim, folder):
    """Which replay it is, as a process says it: no secret."""
    case = Case("key", ringsim, folder)
    with socket.create_server((case.address, PORT)) as server:
        case.start(1, "--timeout", "1s")
        wire = Wire(server.accept()[0])
        wire.send({"challenge": DIGITS})
        key = wire.line()["key"]
        wire.close()
    case.close()
    return key


def run(ringsim, folder, name, what):
    case = Case(name, ringsim, folder)
    case.note = ""
    began = time.monotonic()
    try:
        what(case)
        wrong = ""
    except Wrong as why:
        wrong = str(why)
    except Exception as why:  # of the test itself
        wrong = f"the test broke: {why!r}"
    finally:
        case.close()
    return name, wrong, case.note, time.monotonic() - began


def main():
    global KEY
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ringsim")
    parser.add_argument("--only", default="", help="only cases with this word")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ringsim-hostile-") as name:
        folder = pathlib.Path(name)
        scenario = {"version": 1, "name": "hostile", "topology": {"kind": "star", "ranks": RANKS, "link": {
            "bandwidth": "1 GB/s", "latency": "0 us"}}, "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "48 KiB"}}
        (folder / "scenario.json").write_text(json.dumps(scenario))
        scenario["collective"]["bytes"] = "96 KiB"
        (folder / "other.json").write_text(json.dumps(scenario))
        KEY = key_of(arguments.ringsim, folder)
        began, failed, n = time.monotonic(), [], 0
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            chosen = [(name, what) for name, what in cases() if arguments.only in name]
            for name, wrong, note, took in pool.map(lambda a: run(arguments.ringsim, folder, *a), chosen):
                n += 1
                print(f"{name}: {wrong or note or 'as expected'} ({took:.1f} s)", flush=True)
                if wrong:
                    failed.append(name)
    print(f"{n} cases in {time.monotonic() - began:.0f} s, {len(failed)} failed")
    if n == 0 or failed:
        sys.exit(f"replay_hostile: failed: {', '.join(failed) or 'there is no such case'}")


main()
