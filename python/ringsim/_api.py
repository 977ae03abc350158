"""The functions of the package. Each runs one ringsim command."""
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
from ._command import Error, Path
from ._results import Document, Results
from .schedule import Schedule

#: A scenario as a dictionary, the path of a scenario file, or the name of a machine (`machines()`).
Scenario = Union[Mapping[str, Any], Path]
#: New values by path: {"collective.bytes": ["1 MiB", "1 GiB"], "topology.nodes": range(2, 9)}. A list defines a sweep, and None
#: removes the key.
Settings = Mapping[str, Any]


class Version(NamedTuple):
    """The version of the command. `model` increases when predicted times change."""
    version: str
    model: int


class _Input(NamedTuple):
    arguments: List[str]  # the scenario, and --set
    stdin: Optional[str]


def _json(value: Any, folder: str) -> str:
    """Converts `value` to JSON. Writes schedules to files in `folder`, and converts NumPy and PyTorch values to plain numbers and lists."""
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
        raise TypeError(f"expected a value that JSON can represent, or a Schedule, found {type(other).__name__}")
    try:
        return json.dumps(value, default=plain, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise Error(str(error), where="scenario", hint="quantities are strings with a unit: \"1 GiB\", \"400 Gb/s\"") from error


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
    """Converts keyword arguments to options. None and False are omitted, True becomes a flag, and a list repeats the option."""
    words: List[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            for each in ([value] if isinstance(value, (str, int, float, os.PathLike)) else value):
                words += [option, os.fspath(each) if isinstance(each, os.PathLike) else str(each)]
    return words


def _one_number(nodes: Any) -> None:
    if nodes is not None and (isinstance(nodes, bool) or not hasattr(nodes, "__index__")):
        raise Error(f"expected one number of machines, found {nodes!r}", where="nodes",
                    hint="sweep() varies it: set={\"topology.nodes\": [1, 2, 4], \"topology.fabric\": {...}}")


def _nodes(nodes: Optional[int], fabric: Optional[str]) -> List[str]:
    """Converts the arguments that join several machines to options."""
    _one_number(nodes)
    if isinstance(fabric, Mapping):
        raise Error(f"expected a fabric in a word, found {type(fabric).__name__}", where="fabric",
                    hint="such as \"leaf_spine:2\"; set={\"topology.fabric\": {...}} takes a dictionary")
    return _options(nodes=nodes, fabric=fabric)


def _listed(one_or_more: Union[str, Path, Iterable[Any]]) -> List[str]:
    each = [one_or_more] if isinstance(one_or_more, (str, os.PathLike)) else list(one_or_more)
    return [os.fspath(one) for one in each]


def _rows(text: str) -> List[Any]:
    return [json.loads(line) for line in text.splitlines() if line]


def run(scenario: Scenario, *, nodes: Optional[int] = None, fabric: Optional[str] = None, set: Optional[Settings] = None,
        explain: bool = False, phases: bool = False, bound: bool = False, jobs: Optional[int] = None,
        command: Optional[Path] = None) -> Results:
    """Simulates every point of a scenario and returns one row per point.

    If `scenario` is the name of a machine, `nodes` is the number of these machines and `fabric` connects them, as in
    `ringsim run`: "star" (the default), "leaf_spine:2" ...

    `explain` adds the data that the links carried, `phases` adds a breakdown of the time, and `bound` adds the shortest time that
    the machine allows.
    """
    with _given(scenario, set) as given:
        ended = _command.run(["run", *given.arguments, "--format", "jsonl",
                              *_nodes(nodes, fabric), *_options(explain=explain, phases=phases, bound=bound, jobs=jobs)],
                             stdin=given.stdin, command=command)
    return Results(_rows(ended.stdout), ended.notes, command)


def sweep(scenario: Scenario, *, set: Optional[Settings] = None, output: Optional[Path] = None, resume: bool = False,
          workers: Optional[int] = None, require: Union[str, Sequence[str]] = (), baseline: Optional[Path] = None,
          tolerance: Optional[str] = None, bound: bool = False, command: Optional[Path] = None) -> Results:
    """Simulates many points in parallel. If a point cannot be simulated, its row has the column `error`, and a warning is issued.

    `output` is a file to which each row is written as a JSON line when it is complete. After Ctrl-C or a crash, `resume=True`
    simulates the points that are missing from the file. `require` contains conditions such as
    "busbw_GBps > 40 where bytes >= 64 MiB". If a condition fails, or if a time differs from `baseline` by more than `tolerance`,
    the function raises Error with the rows in `results`.

    To vary the number of machines of a name, set "topology.nodes" and "topology.fabric".
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
        _command.warn(ended.other.strip())
    return results


def plan(scenario: Scenario, *, node: Optional[str] = None, nodes: Optional[int] = None, fabric: Optional[str] = None,
         batch: Optional[int] = None, sequence: Optional[int] = None, set: Optional[Settings] = None, free: bool = False,
         top: Optional[int] = None, within: Optional[str] = None, messages: Optional[int] = None, jobs: Optional[int] = None,
         command: Optional[Path] = None) -> Results:
    """Finds the fastest plans that `training.parallel` allows. Returns a row per simulated plan, fastest first.

    With `node`, the name of a machine, `scenario` is the name of a model, such as "llama2_7b". `nodes`, `fabric`, `batch` and
    `sequence` are then those of `ringsim plan`.

    `free` also searches the keys that the scenario sets. The result is empty if no plan fits into GPU memory. `within="10%"`
    simulates all plans that can be at most 10 % slower than the fastest. Plans for which more than `messages` messages would have
    to be simulated individually are omitted.
    """
    with _given(scenario, set) as given:
        options = [*_nodes(nodes, fabric), *_options(node=node, batch=batch, sequence=sequence, free=free, top=top, within=within,
                                                     messages=messages, jobs=jobs)]
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


def explain(scenario: Scenario, *, nodes: Optional[int] = None, fabric: Optional[str] = None, set: Optional[Settings] = None,
            whatif: Union[str, Sequence[str]] = (), jobs: Optional[int] = None, command: Optional[Path] = None) -> Document:
    """Explains the time of one point and shows which changes would affect it. Printing the Document shows the command's text.

    `nodes` and `fabric` are those of `run`. `whatif` contains changes to try, such as "topology.nodes=4".
    """
    options = [*_nodes(nodes, fabric), *_options(whatif=whatif, jobs=jobs)]
    return _document(["explain"], scenario, set, options, "text", command)


def bound(scenario: Scenario, *, nodes: Optional[int] = None, fabric: Optional[str] = None, set: Optional[Settings] = None,
          all_links: bool = False, command: Optional[Path] = None) -> Document:
    """Computes the shortest time that a machine allows for each collective, and the links that determine it: `.bounds`.

    `nodes` and `fabric` are those of `run`.
    """
    options = [*_nodes(nodes, fabric), *_options(all_links=all_links)]
    return _document(["bound"], scenario, set, options, "table", command)


def compare(scenario: Scenario, measured: Union[Path, Sequence[Mapping[str, Any]]], *, nodes: Optional[int] = None,
            fabric: Optional[str] = None, set: Optional[Settings] = None, collective: Optional[str] = None,
            run: Optional[int] = None, launch_from: Optional[Path] = None, max_error: Optional[str] = None, bound: bool = False,
            jobs: Optional[int] = None, command: Optional[Path] = None) -> Results:
    """Compares predictions with measurements. Adds the columns measured_us and error (predicted / measured - 1).

    `measured` is an nccl-tests log, another file that `ringsim compare` can read, or a list of rows such as
    [{"bytes": 1048576, "time_us": 85.0}, ...]. If the rows do not name the collective, pass `collective`. `launch_from` is a file
    whose smallest rows determine the launch time; these rows are omitted from the result if both are the same file. `nodes` and
    `fabric` are those of the function `run`.
    """
    options = [*_nodes(nodes, fabric), *_options(collective=collective, run=run, launch_from=launch_from, max_error=max_error,
                                                 bound=bound, jobs=jobs)]
    with _given(scenario, set) as given, _measured(measured) as file:
        ended = _command.run(["compare", *given.arguments[:1], file, *given.arguments[1:], *options, "--format", "jsonl"],
                             stdin=given.stdin, command=command, accept=(0, _command.CHECK_FAILED))
    results = Results(_rows(ended.stdout), ended.notes, command)
    if ended.exit_code == _command.CHECK_FAILED:
        raise Error(ended.other.strip(), exit_code=ended.exit_code, results=results)
    return results


def compare_explain(scenario: Scenario, measured: Union[Path, Sequence[Mapping[str, Any]]], *, nodes: Optional[int] = None,
                    fabric: Optional[str] = None, set: Optional[Settings] = None, collective: Optional[str] = None,
                    run: Optional[int] = None, launch_from: Optional[Path] = None, jobs: Optional[int] = None,
                    command: Optional[Path] = None) -> Document:
    """Shows what limits each row, where measurements and predictions differ, and which change would explain it (`--explain`)."""
    options = [*_nodes(nodes, fabric), *_options(collective=collective, run=run, launch_from=launch_from, jobs=jobs), "--explain"]
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
    """Analyzes the collectives in profiles of a real job: waiting, transfer, late ranks. See `.rows`, `.ranks`, `.findings`."""
    words = ["trace", "show", *_listed(files), *_options(rank=rank, group=group, ranks_per_host=ranks_per_host)]
    ended = _command.run([*words, "--format", "json"], command=command)
    return Document(json.loads(ended.stdout), lambda: _command.run(words, command=command).stdout, ended.notes)


def trace_compare(scenario: Scenario, files: Union[Path, Sequence[Path]], *, nodes: Optional[int] = None,
                  fabric: Optional[str] = None, set: Optional[Settings] = None, rank: Union[str, Sequence[str]] = (),
                  group: Optional[str] = None, ranks_per_host: Optional[int] = None, nccl: Optional[str] = None,
                  jobs: Optional[int] = None, command: Optional[Path] = None) -> Document:
    """Compares each collective of a job with NCCL's predicted time on the scenario's machine, with a verdict per row: `.rows`.

    `nodes` and `fabric` are those of `run`.
    """
    options = [*_nodes(nodes, fabric), *_options(rank=rank, group=group, ranks_per_host=ranks_per_host, nccl=nccl, jobs=jobs)]
    return _document(["trace", "compare"], scenario, set, [*_listed(files), *options], "table", command)


@overload
def predict(op: str, bytes: Union[int, str], machine: Union[str, Mapping[str, Any]], *, nodes: int = 1,
            fabric: Union[None, str, Mapping[str, Any]] = None, gpus: Optional[int] = None, like: Optional[str] = None,
            library: Any = "nccl", set: Optional[Settings] = None, command: Optional[Path] = None) -> float: ...
@overload
def predict(op: str, bytes: Union[Iterable[int], List[str]], machine: Union[str, Mapping[str, Any]], *, nodes: int = 1,
            fabric: Union[None, str, Mapping[str, Any]] = None, gpus: Optional[int] = None, like: Optional[str] = None,
            library: Any = "nccl", set: Optional[Settings] = None, command: Optional[Path] = None) -> List[float]: ...


def predict(op: str, bytes: Any, machine: Union[str, Mapping[str, Any]], *, nodes: int = 1,
            fabric: Union[None, str, Mapping[str, Any]] = None, gpus: Optional[int] = None, like: Optional[str] = None,
            library: Any = "nccl", set: Optional[Settings] = None, command: Optional[Path] = None) -> Any:
    """Predicts the seconds that NCCL takes for one collective on all GPUs of `nodes` machines, or on the first `gpus` of each.

    Returns a list for a list of sizes.

    `bytes` follows the convention of nccl-tests: for all_gather and reduce_scatter, it is the size of the whole buffer, not of one
    rank's share. `fabric` connects the nodes. It is a dictionary such as
    {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}, or a name that `ringsim predict` accepts, such as
    "leaf_spine:2", which has cables as fast as the NICs. By default, machines given by name are connected to one non-blocking
    switch ("star").

    `machine` can also be a machine file, NCCL's topology XML or the output of `nvidia-smi topo -m`. `like` is then the name of the
    machine that supplies the speeds that the file lacks.
    """
    _one_number(nodes)
    try:
        many, sizes = False, [_size(bytes)]
    except TypeError:  # not one size
        try:
            many, sizes = True, [_size(each) for each in bytes]
        except TypeError:
            raise Error(f"expected bytes as an integer, a text such as '1 GiB' or a list of them, found {bytes!r}", where="bytes") from None
    is_file = isinstance(machine, str) and os.path.isfile(machine)
    if isinstance(fabric, str) or gpus is not None or is_file or (fabric is None and nodes > 1 and isinstance(machine, str)):
        results = _predicted_by_name(op, sizes, machine, nodes, fabric, gpus, like, {"library": library, **(set or {})}, command)
    else:
        topology = {"kind": "cluster", "node": machine, "nodes": nodes, **({} if fabric is None else {"fabric": fabric})}
        results = run({"version": 1, "topology": topology, "library": library, "collective": {"op": op, "bytes": sizes}}, set=set,
                      command=command)
    seconds = [row.time_us / 1e6 for row in results]
    if len(seconds) != len(sizes):
        raise Error(f"expected a time for each of {len(sizes)} sizes, found {len(seconds)}", where="set",
                    hint="predict() gives one number for each size; run() and sweep() take settings that vary")
    return seconds if many else seconds[0]


def _predicted_by_name(op: str, sizes: Sequence[str], machine: Any, nodes: int, fabric: Any, gpus: Optional[int],
                       like: Optional[str], settings: Settings, command: Optional[Path]) -> Results:
    if not isinstance(machine, str):
        raise Error(f"expected the name of a machine with gpus or a fabric in a word, found {type(machine).__name__}", where="machine")
    if fabric is not None and not isinstance(fabric, str):
        raise Error(f"expected a fabric in a word with gpus, found {type(fabric).__name__}", where="fabric",
                    hint="such as \"leaf_spine:2\"; run() takes any scenario, with collective.ranks")
    with _given(machine, settings) as given:
        words = _options(node=machine, nodes=nodes, fabric=fabric or ("star" if nodes > 1 else None), gpus=gpus,
                         like=like, bytes=",".join(sizes))
        ended = _command.run(["predict", op, *words, *given.arguments[1:], "--format", "jsonl"], command=command)
    for note in ended.notes:
        if f"{machine} is assumed to be" in note:  # `ringsim run` warns of it
            _command.warn(note)
    return Results(_rows(ended.stdout), ended.notes, command)


def _size(size: Any) -> str:
    """Converts a size to a scenario quantity. Accepts NumPy and PyTorch integers."""
    return size if isinstance(size, str) else f"{operator.index(size)} B"


def _of_list(what: str, command: Optional[Path]) -> Results:
    lists = json.loads(_command.run(["list", what, "--format", "json"], command=command).stdout)
    return Results(lists[what])


def machines(command: Optional[Path] = None) -> Results:
    """Lists the machines that can be used by name: name, summary, gpu, and alternative names in `also`."""
    return _of_list("nodes", command)


def columns(command: Optional[Path] = None) -> Results:
    """Lists all result columns: name, summary, unit."""
    return _of_list("columns", command)


def keys(command: Optional[Path] = None) -> Results:
    """Lists every scenario key by the path that `set` accepts: name, summary, expects, default, kinds."""
    return _of_list("keys", command)


def schema(command: Optional[Path] = None) -> Any:
    """Returns the JSON Schema of scenarios as a dictionary."""
    return json.loads(_command.run(["schema"], command=command).stdout)


def version(command: Optional[Path] = None) -> Version:
    """Returns the version of the command that `find` returns."""
    said = _command.run(["version"], command=command).stdout
    found = re.fullmatch(r"ringsim (\S+) \(model (\d+)\)\n", said)
    if not found:
        raise Error(f"expected \"ringsim VERSION (model N)\", found {said.strip()[:80]!r}", where=_command.find(command),
                    exit_code=_command.LACKING, hint="this program is not ringsim")
    return Version(found.group(1), int(found.group(2)))


def call(*arguments: Path, stdin: Optional[str] = None, command: Optional[Path] = None) -> str:
    """Runs any command and returns its output: ringsim.call("topology", "show", "dgx-h100")."""
    return _command.run([os.fspath(each) for each in arguments], stdin=stdin, stdin_name="<stdin>", command=command).stdout
