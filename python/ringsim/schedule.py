"""Schedules written in Python: the sends and receives of each rank, step by step. ringsim proves them before they run."""
from __future__ import annotations

import json
from typing import Callable, Iterable, List, Optional, Sequence, Union

from . import _command
from ._command import Path
from ._pictures import Picture

#: A chunk of the buffer `data`, several consecutive chunks, or any region in ringsim's notation: 3, range(4, 8), "input[4..7]".
Region = Union[int, range, str]

Step = Union[str, Sequence[str]]


def region(chunks: Region) -> str:
    """Converts chunks to ringsim's notation: 3 becomes "data[3]", and range(4, 8) becomes "data[4..7]"."""
    if isinstance(chunks, range):
        if chunks.step != 1 or len(chunks) == 0:
            raise ValueError(f"expected a range of consecutive chunks, found {chunks}")
        return f"data[{chunks.start}..{chunks.stop - 1}]" if len(chunks) > 1 else f"data[{chunks.start}]"
    return chunks if isinstance(chunks, str) else f"data[{chunks:d}]"


def _on(channel: int) -> str:
    return f" channel {channel:d}" if channel else ""


def send(chunks: Region, to: int, *, channel: int = 0) -> str:
    return f"send {region(chunks)} to {to:d}{_on(channel)}"


def receive(chunks: Region, sender: int, *, channel: int = 0) -> str:
    return f"receive {region(chunks)} from {sender:d}{_on(channel)}"


def receive_add(chunks: Region, sender: int, *, into: Optional[Region] = None, channel: int = 0) -> str:
    """Receives data and adds it to `chunks`, or writes the sum to `into` if it is given."""
    sum_to = "" if into is None else f" to {region(into)}"
    return f"receive_add {region(chunks)} from {sender:d}{sum_to}{_on(channel)}"


def copy(chunks: Region, to: Region) -> str:
    return f"copy {region(chunks)} to {region(to)}"


def add(chunks: Region, to: Region) -> str:
    return f"add {region(chunks)} to {region(to)}"


def after(steps: int, lane: int) -> str:
    """Waits until lane `lane` of the same rank has completed `steps` steps."""
    return f"after {steps:d} steps of lane {lane:d}"


class Schedule:
    """A collective written as a Python function and proved by ringsim.

    `steps(rank, ranks)` yields the steps of a rank. Each step is an operation such as `send(...)`, or a list of operations that run
    together. If `lanes` is greater than 1, ringsim calls steps(rank, ranks, lane), and the lanes of a rank run in parallel.
    `helpers` is the number of additional processes, such as servers, which are numbered after the last rank.

    The constructor proves that the schedule implements `collective`, and raises Error with the rank and the step if it does not.
    `proof` summarizes the result. Use the schedule as the algorithm of a scenario:

        ringsim.run({..., "collective": {"op": "all_reduce", "bytes": "1 GiB", "algorithm": Schedule(ring, 8)}})
    """

    def __init__(self, steps: Callable[..., Iterable[Step]], ranks: int, *, collective: str = "all_reduce",
                 chunks: Optional[int] = None, buffers: "Optional[dict[str, dict[str, int]]]" = None, placement: str = "in_place",
                 lanes: int = 1, helpers: int = 0, root: Optional[int] = None, name: Optional[str] = None,
                 command: Optional[Path] = None) -> None:
        self.name = name or getattr(steps, "__name__", "schedule")
        self.ranks = ranks
        self._command = command
        document = {"ringsim_schedule": 1, "name": self.name, "collective": collective, "placement": placement, "ranks": ranks}
        document.update({key: value for key, value in (("helpers", helpers), ("lanes", lanes), ("root", root))
                         if value != (1 if key == "lanes" else 0) and value is not None})
        document["buffers"] = buffers or {"data": {"chunks": chunks or ranks}}
        document["steps"] = [[_listed(steps(actor, ranks) if lanes == 1 else steps(actor, ranks, lane)) for lane in range(lanes)]
                             for actor in range(ranks + helpers)]
        self._text = json.dumps(document)
        self.proof = " ".join(self._asked("check").split())

    def _asked(self, *words: str) -> str:
        return _command.run(["schedule", *words[:1], "-", *words[1:]], stdin=self._text, stdin_name=f"schedule {self.name}",
                            command=self._command).stdout

    def to_json(self) -> str:
        """Returns the schedule in the format that `ringsim schedule` and the key collective.algorithm.file read."""
        return self._text

    def picture(self) -> Picture:
        """Draws the chunks that each rank sends, step by step."""
        return Picture(self._asked("picture", "-o", "-"))

    def _repr_svg_(self) -> str:
        return str(self.picture())

    def __repr__(self) -> str:
        return f"<ringsim.Schedule {self.proof}>"


def _listed(steps: Iterable[Step]) -> List[List[str]]:
    return [[step] if isinstance(step, str) else list(step) for step in steps]
