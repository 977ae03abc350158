"""The functions of the package: a command of ringsim each."""
from __future__ import annotations

import contextlib
import csv
import json
import operator
import os
import pathlib
import re
import tempfile
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union, overload

from . import _command
from ._command import Error, Path, _warn
from ._results import Document, Results
from .schedule import Schedule

#: A scenario as a dictionary, the path of its file, or the name of a machine (`machines()`).
Scenario = Union[Mapping[str, Any], Path]
#: New values by their paths: {"collective.bytes": ["1 MiB", "1 GiB"], "topology.nodes": range(2, 9)}. A list is a sweep; None
#: removes the key.
Settings = Mapping[str, Any]


class Version(NamedTuple):
    """Of the command; `model` rises when its predictions change."""
    version: str
    model: int


class _Input(NamedTuple):
    arguments: List[str]  # the scenario, and --set
    stdin: Optional[str]


def _json(value: Any, folder: str) -> str:
    """`value` as JSON. Schedules are written into `folder`; numbers and arrays of numpy and torch are plain ones."""
    def plain(other: Any) -> Any:
        if isinstance(other, Schedule):
            path = os.path.join(folder, f"{len(os.listdir(folder))}.json")
            pathlib.Path(path).write_text(other.to_json(), encoding="utf-8")
            return {"file": path}
        if isinstance(other, (range, tuple)):
            return list(other)
        if isinstance(other, Mapping):
            return dict(other)
        if isinstance(other, os.PathLike):
            return os.fspath(other)
        if hasattr(other, "tolist"):
            return other.tolist()
        raise TypeError(f"expected what JSON has, or a Schedule, found {type(other).__name__}")
    try:
        return json.dumps(value, default=plain, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise Error(str(error), where="scenario", hint="quantities are text with a unit: \"1 GiB\", \"400 Gb/s\"") from error


@contextlib.contextmanager
def _given(scenario: Scenario, settings: Optional[Settings]) -> Iterator[_Input]:
    with tempfile.TemporaryDirectory(prefix="ringsim-") as folder:
        words = [word for path, value in (settings or {}).items() for word in ("--set", f"{path}={_json(value, folder)}")]
        if isinstance(scenario, Mapping):
            yield _Input(["-", *words], _json({"name": "scenario", **scenario}, folder))
        elif isinstance(scenario, (str, os.PathLike)):
            name = os.fspath(scenario)
            yield _Input([f"./{name}" if name.startswith("-") else name, *words], None)
        else:
            raise Error(f"expected a dictionary, a path or the name of a machine, found {type(scenario).__name__}", where="scenario")


def _options(**options: Any) -> List[str]:
    """None and False are left out; True is a flag, a list an option that is repeated."""
    words: List[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            for each in ([value] if isinstance(value, (str, int, float, os.PathLike)) else value):
                words += [option, os.fspath(each) if isinstance(each, os.PathLike) else str(each)]
    return words


def _listed(one_or_more: Union[str, Path, Iterable[Any]]) -> List[str]:
    each = [one_or_more] if isinstance(one_or_more, (str, os.PathLike)) else list(one_or_more)
    return [os.fspath(one) for one in each]


def _rows(text: str) -> List[Any]:
    return [json.loads(line) for line in text.splitlines() if line]


def run(scenario: Scenario, *, set: Optional[Settings] = None, explain: bool = False, phases: bool = False, bound: bool = False,
        jobs: Optional[int] = None, command: Optional[Path] = None) -> Results:
    """Simulates every point of a scenario: a row each.

    `explain` adds what the links carried, `phases` how the time divides, `bound` the least time that the machine allows.
    """
    with _given(scenario, set) as given:
        ended = _command.run(["run", *given.arguments, "--format", "jsonl",
                              *_options(explain=explain, phases=phases, bound=bound, jobs=jobs)],
                             stdin=given.stdin, command=command)
    return Results(_rows(ended.stdout), ended.notes, command)


def sweep(scenario: Scenario, *, set: Optional[Settings] = None, output: Optional[Path] = None, resume: bool = False,
          workers: Optional[int] = None, require: Union[str, Sequence[str]] = (), baseline: Optional[Path] = None,
          tolerance: Optional[str] = None, bound: bool = False, command: Optional[Path] = None) -> Results:
    """Simulates many points in parallel. A point that cannot be simulated is a row with `error`, and a warning.

    With `output`, a file of JSON lines, rows are kept as they come: after Ctrl-C or a crash `resume=True` simulates what the
    file lacks. `require` has conditions, "busbw_GBps > 40 where bytes >= 64 MiB"; if one does not hold, or a time differs
    from `baseline` by more than `tolerance`, Error is thrown, with the rows in its `results`.
    """
    words = _options(jobs=workers, resume=resume, baseline=baseline, tolerance=tolerance, bound=bound)
    words += _options(**{"assert": require})
    with _given(scenario, set) as given:
        ended = _command.run(["sweep", *given.arguments, *words, "-o", "-" if output is None else os.fspath(output)],
                             stdin=given.stdin, command=command, accept=(0, _command.CHECK_FAILED))
    text = ended.stdout if output is None else pathlib.Path(output).read_text(encoding="utf-8")
    results = Results(_rows(text), ended.notes, command)
    if ended.exit_code == _command.CHECK_FAILED:
        if require or baseline is not None or not results.failed:
            raise Error(ended.other.strip(), exit_code=ended.exit_code, results=results)
        _warn(ended.other.strip())
    return results


def plan(scenario: Scenario, *, set: Optional[Settings] = None, free: bool = False, top: Optional[int] = None,
         within: Optional[str] = None, messages: Optional[int] = None, jobs: Optional[int] = None,
         command: Optional[Path] = None) -> Results:
    """The fastest plans that `training.parallel` leaves open: a row for each that was simulated, the fastest first.

    `free` also searches the keys that the scenario states. No row: no plan fits the memory of the GPUs. `within`: "10%" simulates
    all that may take at most so much longer than the fastest. Plans that must simulate more than `messages` one by one are no rows.
    """
    with _given(scenario, set) as given:
        options = _options(free=free, top=top, within=within, messages=messages, jobs=jobs)
        ended = _command.run(["plan", *given.arguments, "--format", "jsonl", *options],
                             stdin=given.stdin, command=command, accept=(0, _command.CHECK_FAILED))
    return Results(_rows(ended.stdout), ended.notes, command)


def _document(command_words: Sequence[str], scenario: Scenario, settings: Optional[Settings], more: Sequence[str], plain: str,
              command: Optional[Path]) -> Document:
    def once(form: str) -> _command.Ended:
        with _given(scenario, settings) as given:
            return _command.run([*command_words, *given.arguments[:1], *more, *given.arguments[1:], "--format", form],
                                stdin=given.stdin, command=command)
    ended = once("json")
    return Document(json.loads(ended.stdout), lambda: once(plain).stdout, ended.notes)


def explain(scenario: Scenario, *, set: Optional[Settings] = None, whatif: Union[str, Sequence[str]] = (),
            jobs: Optional[int] = None, command: Optional[Path] = None) -> Document:
    """Why one point takes its time, and what would change it. Printed, it is the command's text.

    `whatif`: changes to try, "topology.nodes=4".
    """
    return _document(["explain"], scenario, set, _options(whatif=whatif, jobs=jobs), "text", command)


def bound(scenario: Scenario, *, set: Optional[Settings] = None, all_links: bool = False, command: Optional[Path] = None) -> Document:
    """What a machine allows at best, and the links that set it: `.bounds`."""
    return _document(["bound"], scenario, set, _options(all_links=all_links), "table", command)


def compare(scenario: Scenario, measured: Union[Path, Sequence[Mapping[str, Any]]], *, set: Optional[Settings] = None,
            collective: Optional[str] = None, run: Optional[int] = None, launch_from: Optional[Path] = None,
            max_error: Optional[str] = None, bound: bool = False, jobs: Optional[int] = None,
            command: Optional[Path] = None) -> Results:
    """Predictions next to measurements: columns measured_us and error (predicted / measured - 1).

    `measured`: an nccl-tests log or another file that `ringsim compare` reads, or rows of your own:
    [{"bytes": 1048576, "time_us": 85.0}, ...], which need `collective`. `launch_from`: a file whose smallest rows give the
    launch; of `measured` these rows are left out.
    """
    options = _options(collective=collective, run=run, launch_from=launch_from, max_error=max_error, bound=bound, jobs=jobs)
    with _given(scenario, set) as given, _measured(measured) as file:
        ended = _command.run(["compare", *given.arguments[:1], file, *given.arguments[1:], *options, "--format", "jsonl"],
                             stdin=given.stdin, command=command, accept=(0, _command.CHECK_FAILED))
    results = Results(_rows(ended.stdout), ended.notes, command)
    if ended.exit_code == _command.CHECK_FAILED:
        raise Error(ended.other.strip(), exit_code=ended.exit_code, results=results)
    return results


def compare_explain(scenario: Scenario, measured: Union[Path, Sequence[Mapping[str, Any]]], *, set: Optional[Settings] = None,
                    collective: Optional[str] = None, run: Optional[int] = None, launch_from: Optional[Path] = None,
                    jobs: Optional[int] = None, command: Optional[Path] = None) -> Document:
    """Row by row what limits it, where measured and predicted differ, and the change that explains it (`--explain`)."""
    options = [*_options(collective=collective, run=run, launch_from=launch_from, jobs=jobs), "--explain"]
    kept = measured if isinstance(measured, (str, os.PathLike)) else [dict(row) for row in measured]

    def once(form: str) -> _command.Ended:
        with _given(scenario, set) as given, _measured(kept) as file:
            return _command.run(["compare", *given.arguments[:1], file, *given.arguments[1:], *options, "--format", form],
                                stdin=given.stdin, command=command)
    ended = once("json")
    return Document(json.loads(ended.stdout), lambda: once("table").stdout, ended.notes)


@contextlib.contextmanager
def _measured(measured: Union[Path, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    if isinstance(measured, (str, os.PathLike)):
        yield os.fspath(measured)
        return
    with tempfile.TemporaryDirectory(prefix="ringsim-") as folder:
        path = os.path.join(folder, "measured.csv")
        names = list(dict.fromkeys(name for row in measured for name in row))
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(measured)
        yield path


def trace_show(files: Union[Path, Sequence[Path]], *, rank: Union[str, Sequence[str]] = (), group: Optional[str] = None,
               ranks_per_host: Optional[int] = None, command: Optional[Path] = None) -> Document:
    """The collectives of a real job from its profiles: waiting, transfer, late ranks. `.rows`, `.ranks`, `.findings`."""
    words = ["trace", "show", *_listed(files), *_options(rank=rank, group=group, ranks_per_host=ranks_per_host)]
    ended = _command.run([*words, "--format", "json"], command=command)
    return Document(json.loads(ended.stdout), lambda: _command.run(words, command=command).stdout, ended.notes)


def trace_compare(scenario: Scenario, files: Union[Path, Sequence[Path]], *, set: Optional[Settings] = None,
                  rank: Union[str, Sequence[str]] = (), group: Optional[str] = None, ranks_per_host: Optional[int] = None,
                  nccl: Optional[str] = None, jobs: Optional[int] = None, command: Optional[Path] = None) -> Document:
    """Each collective of a job next to what NCCL should take on the scenario's machine, with a verdict: `.rows`."""
    options = _options(rank=rank, group=group, ranks_per_host=ranks_per_host, nccl=nccl, jobs=jobs)
    return _document(["trace", "compare"], scenario, set, [*_listed(files), *options], "table", command)


@overload
def predict(op: str, bytes: Union[int, str], machine: Union[str, Mapping[str, Any]], *, nodes: int = 1,
            fabric: Union[None, str, Mapping[str, Any]] = None, library: Any = "nccl", set: Optional[Settings] = None,
            command: Optional[Path] = None) -> float: ...
@overload
def predict(op: str, bytes: Union[Iterable[int], List[str]], machine: Union[str, Mapping[str, Any]], *, nodes: int = 1,
            fabric: Union[None, str, Mapping[str, Any]] = None, library: Any = "nccl", set: Optional[Settings] = None,
            command: Optional[Path] = None) -> List[float]: ...


def predict(op: str, bytes: Any, machine: Union[str, Mapping[str, Any]], *, nodes: int = 1,
            fabric: Union[None, str, Mapping[str, Any]] = None, library: Any = "nccl", set: Optional[Settings] = None,
            command: Optional[Path] = None) -> Any:
    """Seconds that NCCL takes for one collective over all GPUs of `nodes` machines; a list of them for a list of sizes.

    `bytes` counts as nccl-tests does: for all_gather and reduce_scatter the whole buffer, not a rank's share. `fabric` joins
    the nodes: {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}, or a word of `ringsim predict`, whose cables
    are as fast as the NICs: "leaf_spine:2". Without it named machines are on one non-blocking switch, "star".
    """
    try:
        many, sizes = False, [_size(bytes)]
    except TypeError:  # not one size
        try:
            many, sizes = True, [_size(each) for each in bytes]
        except TypeError:
            raise Error(f"expected bytes as an integer, a text such as '1 GiB' or a list of them, found {bytes!r}", where="bytes") from None
    if isinstance(fabric, str) or (fabric is None and nodes > 1 and isinstance(machine, str)):
        results = _predicted_by_name(op, sizes, machine, nodes, fabric or "star", {"library": library, **(set or {})}, command)
    else:
        topology = {"kind": "cluster", "node": machine, "nodes": nodes, **({} if fabric is None else {"fabric": fabric})}
        results = run({"version": 1, "topology": topology, "library": library, "collective": {"op": op, "bytes": sizes}}, set=set,
                      command=command)
    seconds = [row.time_us / 1e6 for row in results]
    if len(seconds) != len(sizes):
        raise Error(f"expected a time for each of {len(sizes)} sizes, found {len(seconds)}", where="set",
                    hint="predict() gives one number for each size; run() and sweep() take settings that vary")
    return seconds if many else seconds[0]


def _predicted_by_name(op: str, sizes: Sequence[str], machine: Any, nodes: int, fabric: str, settings: Settings,
                       command: Optional[Path]) -> Results:
    if not isinstance(machine, str):
        raise Error(f"expected the name of a machine with a fabric in a word, found {type(machine).__name__}", where="machine")
    with _given(machine, settings) as given:
        words = _options(node=machine, nodes=nodes, fabric=fabric, bytes=",".join(sizes))
        ended = _command.run(["predict", op, *words, *given.arguments[1:], "--format", "jsonl"], command=command)
    return Results(_rows(ended.stdout), ended.notes, command)


def _size(size: Any) -> str:
    """Bytes as a scenario has them; integers of numpy and torch are integers."""
    return size if isinstance(size, str) else f"{operator.index(size)} B"


def _of_list(what: str, command: Optional[Path]) -> Results:
    lists = json.loads(_command.run(["list", what, "--format", "json"], command=command).stdout)
    return Results(lists[what])


def machines(command: Optional[Path] = None) -> Results:
    """The machines that ringsim knows by name: name, summary, gpu, and other names in `also`."""
    return _of_list("nodes", command)


def columns(command: Optional[Path] = None) -> Results:
    """What each column of a result means: name, summary, unit."""
    return _of_list("columns", command)


def keys(command: Optional[Path] = None) -> Results:
    """Every key that a scenario may have, by the path that `set` takes: name, summary, expects, default, kinds."""
    return _of_list("keys", command)


def schema(command: Optional[Path] = None) -> Any:
    """The JSON Schema of scenarios, as a dictionary."""
    return json.loads(_command.run(["schema"], command=command).stdout)


def version(command: Optional[Path] = None) -> Version:
    """Of the command that is found."""
    said = _command.run(["version"], command=command).stdout
    found = re.fullmatch(r"ringsim (\S+) \(model (\d+)\)\n", said)
    if not found:
        raise Error(f"expected \"ringsim VERSION (model N)\", found {said.strip()[:80]!r}", where=_command.find(command),
                    exit_code=_command.LACKING, hint="this program is not ringsim")
    return Version(found.group(1), int(found.group(2)))


def call(*arguments: Path, stdin: Optional[str] = None, command: Optional[Path] = None) -> str:
    """Runs any command, ringsim.call("topology", "show", "dgx-h100"), and returns what it prints."""
    return _command.run([os.fspath(each) for each in arguments], stdin=stdin, stdin_name="<stdin>", command=command).stdout
