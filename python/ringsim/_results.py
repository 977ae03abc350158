"""Result rows: access by column, tables for terminals and notebooks, and conversion to pandas."""
from __future__ import annotations

import copy
import difflib
import functools
import html
import json
import os
import pathlib
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _command
from ._command import Path
from ._pictures import Picture


class Row(Mapping[str, Any]):
    """A result row. Access its columns by name, row["bottleneck.link"], or as attributes, row.bottleneck.link.

    Iterating over a row yields its column names, as listed by `ringsim list columns`. A group of columns, such as
    row["bottleneck"], is also a Row. Values that varied are in row.point, by path: row.point["collective.bytes"].
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = dict(data)
        self._flat = dict(_columns(data))

    def __getitem__(self, name: str) -> Any:
        if name in self._flat:
            return _shown(self._flat[name])
        inner: Any = self._data
        for part in ([name] if name in self._data else name.split(".")):
            if inner is None:  # for example "closed_form.formula" if closed_form is null
                return None
            if not isinstance(inner, dict) or part not in inner:
                near = difflib.get_close_matches(name, self._flat, n=1)
                raise KeyError(f"{name}: this row has no such column; " + (f"did you mean {near[0]}?" if near else "list(row) has all"))
            inner = inner[part]
        return _shown(inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._flat)

    def __len__(self) -> int:
        return len(self._flat)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *(name for name in self._data if name.isidentifier())]

    def __repr__(self) -> str:
        return "Row(" + ", ".join(f"{name}={value!r}" for name, value in self._flat.items()) + ")"

    def to_dict(self) -> Dict[str, Any]:
        """Returns the row as the command wrote it, with groups as dictionaries."""
        return copy.deepcopy(self._data)


def _columns(data: Mapping[str, Any], before: str = "") -> Iterator[Tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, dict) and before != "point.":  # a value that varied may be an object
            yield from _columns(value, f"{before}{name}.")
        else:
            yield before + name, value


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return Row(value)
    return [_shown(each) for each in value] if isinstance(value, list) else value


class Results(Sequence[Row]):
    """Rows in the order of the command's output. results[0] is a row, results[1:] a slice, and results["time_us"] a column as a list."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = (), command: Optional[Path] = None) -> None:
        self._rows = [row if isinstance(row, Row) else Row(row) for row in rows]
        self.notes = list(notes)  # notes about the input, such as the scenario for a machine's name
        self._command = command

    @overload
    def __getitem__(self, which: int) -> Row: ...
    @overload
    def __getitem__(self, which: slice) -> "Results": ...
    @overload
    def __getitem__(self, which: str) -> List[Any]: ...

    def __getitem__(self, which: Union[int, slice, str]) -> Any:
        if isinstance(which, slice):
            return Results(self._rows[which], self.notes, self._command)
        if isinstance(which, str):
            if not any(_has(row, which) for row in self._rows):
                near = difflib.get_close_matches(which, self.columns, n=1)
                raise KeyError(f"{which}: no row has this column; " + (f"did you mean {near[0]}?" if near else "columns lists all"))
            return [row[which] if _has(row, which) else None for row in self._rows]
        return self._rows[which]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> List[str]:
        """The names of all columns that occur in at least one row."""
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        groups = {name[:at] for name in names for at, letter in enumerate(name) if letter == "."}
        return [name for name in names if name not in groups]  # closed_form is null in one row and a group in another

    @property
    def failed(self) -> "Results":
        """The rows of points that could not be simulated, with error.where, error.message and error.hint."""
        return Results([row for row in self._rows if isinstance(row.get("error"), Row)], self.notes, self._command)

    def to_dict(self) -> Dict[str, List[Any]]:
        """Returns the columns as lists, a format that pandas, polars and pyarrow accept. Missing values are None."""
        flat = [row._flat for row in self._rows]
        return {name: [row.get(name) for row in flat] for name in self.columns}

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame. Only this method requires pandas."""
        import pandas  # type: ignore
        return pandas.DataFrame(self.to_dict())

    def to_jsonl(self) -> str:
        """Returns the rows as JSON lines, which `ringsim plot` and `ringsim merge` can read."""
        return "".join(json.dumps(row._data, separators=(",", ":")) + "\n" for row in self._rows)

    def plot(self, x: Optional[str] = None, y: Optional[str] = None, by: Optional[str] = None, title: Optional[str] = None) -> Picture:
        """Draws a picture with `ringsim plot`, which notebooks display. x, y and by are column names."""
        options = [word for name, value in (("x", x), ("y", y), ("by", by), ("title", title)) if value is not None
                   for word in (f"--{name}", value)]
        with tempfile.TemporaryDirectory() as folder:
            stored, drawn = os.path.join(folder, "results.jsonl"), os.path.join(folder, "plot.svg")
            pathlib.Path(stored).write_text(self.to_jsonl(), encoding="utf-8")
            _command.run(["plot", stored, "-o", drawn, *options], command=self._command)
            return Picture(pathlib.Path(drawn).read_text(encoding="utf-8"))

    def __str__(self) -> str:
        head, names, cells = _table(self)
        if not cells:
            return "no rows"
        widths = [max(len(line[i]) for line in [names, *cells]) for i in range(len(names))]
        right = [all(_is_number(line[i]) for line in cells) for i in range(len(names))]
        lines = ["  ".join(text.rjust(width) if to_right else text.ljust(width)
                           for text, width, to_right in zip(line, widths, right)).rstrip() for line in [names, *cells]]
        return "\n".join([head, *lines] if head else lines)

    def __repr__(self) -> str:
        return f"<ringsim.Results: {len(self)} rows>\n{self}"

    def _repr_html_(self) -> str:
        head, names, cells = _table(self)
        rows = "".join("<tr>" + "".join(f'<td style="text-align:{"right" if _is_number(text) else "left"}">{html.escape(text)}</td>'
                                        for text in line) + "</tr>" for line in cells)
        titles = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        return f"<p>{html.escape(head)}</p><table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def _has(row: Row, name: str) -> bool:
    try:
        row[name]
        return True
    except KeyError:
        return False


def _is_number(text: str) -> bool:
    """True if a cell is empty or begins with a number: 12.5, 1 MiB, 98.4 %, -3."""
    return text[:1].isdigit() or text[:2].lstrip("-+.")[:1].isdigit() or text == ""


# Columns that describe a run, and columns that a run computes. The former are shown in the heading if all rows have the same value.
_GIVEN = ["job", "collective", "training", "workload", "library_algorithm", "algorithm", "library", "channels", "protocol", "model",
          "ranks", "bytes", "phase", "tp", "pp", "dp", "ep", "buckets", "batch", "context"]
_FOUND = ["time_us", "measured_us", "algbw_GBps", "busbw_GBps", "samples_per_s", "tokens_per_s_per_gpu", "communication_share",
          "efficiency", "bound_us", "of_bound",
          "bottleneck.link", "bottleneck.busy", "error", "error.message"]


def _table(results: Results) -> Tuple[str, List[str], List[List[str]]]:
    """Returns the heading, the column names and the cells."""
    columns = results.to_dict()
    if "busbw_GBps" not in columns and "error.message" not in columns:  # not results of a run: show every column that fits into a cell
        names = [name for name, values in columns.items() if not any(isinstance(value, (list, Row)) for value in values)]
        return "", names, [[_cell(name, row) for name in names] for row in results]
    if set(columns.get("training", [])) - {None} == {"parallel"}:
        return _plans_table(results, columns)
    hidden = {"algorithm"} if "library_algorithm" in columns else set()
    if not any(columns.get("buckets", [])):
        hidden.add("buckets")
    if "training" in columns or "phase" in columns:  # steps have no bandwidth
        hidden |= {"algbw_GBps", "busbw_GBps"}
    given = [name for name in _GIVEN if name in columns and name not in hidden]
    times = [time for time in columns.get("time_us", []) if isinstance(time, float) and time > 0]
    unit, size = _time_unit(min(times, default=0))
    cells = {name: [_time_cell(name, row, size) for row in results] for name in [*given, *_FOUND, *columns]}
    same = [name for name in given if len(set(cells[name])) == 1 and (name != "bytes" or len(results) == 1)]
    failed = "error.message" in columns  # some rows contain only their point and the error
    varied = [name for name in columns if name.startswith("point.") and (failed or name.split(".")[-1] not in given)]
    shown = [*varied, *(name for name in given if name not in same), *(name for name in _FOUND if name in columns and name not in hidden)]
    head = [_in_head(name, cells[name][0]) for name in same if cells[name][0] and (name, cells[name][0]) != ("protocol", "none")]
    forms = {f"{row['closed_form.ratio']:.4f}" if row.get("closed_form.holds") else "" for row in results}
    if len(forms) == 1 and "" not in forms:
        head.append(f"closed form x {forms.pop()}")
    return "  ".join(head), [_title(name, unit) for name in shown], [[cells[name][i] for name in shown] for i in range(len(results))]


# The short words of `ringsim plan` for keys that vary, and the columns of the parts of a step that are not forward and backward passes.
_SHORT = {"tensor": "tp", "pipeline": "pp", "virtual_pipeline": "vp", "context": "cp", "expert": "ep", "expert_tensor": "etp",
          "micro_batch_size": "mbs", "sequence_parallel": "sp"}
_LOSSES = {"bubble": "bubble_us", "tensor": "exposed_tensor_us", "data": "exposed_data_us", "recompute": "recompute_us",
           "pipeline": "exposed_pipeline_us", "context": "exposed_context_us", "expert": "exposed_expert_us", "optimizer": "optimizer_us"}
_SIZES = ("tp", "pp", "vp", "cp", "ep", "dp")  # columns of every plan, if it has several such ranks
# Keys that usually follow from the other keys of a plan.
_FOLLOWING = ("overlap", "sequence_parallel", "account_for_embedding", "account_for_loss")


def _plans_table(results: Results, columns: Mapping[str, List[Any]]) -> Tuple[str, List[str], List[List[str]]]:
    """Returns the heading, the column names and the cells for plans, with the columns of the table that `ringsim plan` prints."""
    algorithm = "library_algorithm" if "library_algorithm" in columns else "algorithm"
    about = {name: [_cell(name, row) for row in results]
             for name in ("workload", algorithm, "library", "model", "ranks", "batch") if name in columns}
    paths = [name[len("point."):] for name in columns if name.startswith("point.")]
    last = [path.split(".")[-1] for path in paths]
    points = {path if last.count(key) > 1 else key: [_cell(f"point.{path}", row) for row in results] for path, key in zip(paths, last)}
    varied = {_SHORT.get(key, key): cells for key, cells in points.items() if key not in _FOLLOWING}
    keys: Dict[str, List[str]] = {}  # cells by title
    for name in dict.fromkeys(["tp", "pp", "vp", "cp", "ep", *varied, "dp"]):
        if name in _SIZES and name in columns:  # the row of an error has only its point
            keys[name] = [_cell(name, row) or point for row, point in zip(results, varied.get(name, [""] * len(results)))]
        elif name in varied:
            keys[name] = varied[name]
    for key in _FOLLOWING:
        if key in points and len(set(zip(*keys.values(), points[key]))) > len(set(zip(*keys.values()))):
            keys[_SHORT.get(key, key)] = points[key]
    same = [title for title, cells in keys.items() if len(set(filter(None, cells))) == 1 and (title not in varied or all(cells))]
    head = [_in_head(name, next(filter(None, cells))) for name, cells in about.items() if len(set(filter(None, cells))) == 1]
    head += [f"{title} {next(filter(None, keys[title]))}" for title in same]
    table = {name: cells for name, cells in about.items() if name != algorithm and len(set(filter(None, cells))) > 1}
    table.update({title: [cell or "-" for cell in cells] for title, cells in keys.items() if title not in same})

    times = [row.get("time_us") for row in results]
    unit, size = _time_unit(min((time for time in times if time), default=0))
    table["memory GB"] = [f"{row['memory_bytes'] / 1e9:.2f}" if row.get("memory_bytes") else "" for row in results]
    table[f"step {unit}"] = [_time_cell("time_us", row, size) for row in results]
    table["tokens/s/GPU"] = [f"{row['tokens_per_s'] / row['ranks']:.1f}" if row.get("tokens_per_s") else "" for row in results]
    table["MFU"] = [f"{100 * row['mfu']:.1f} %" if row.get("mfu") else "" for row in results]
    table["largest losses"] = [_losses(row) for row in results]
    for name in ("error", "error.message"):
        if name in columns:
            table[name] = [_cell(name, row) for row in results]
    shown = [title for title, cells in table.items() if any(cells)]
    return "  ".join(head), shown, [[table[title][i] for title in shown] for i in range(len(results))]


def _losses(row: Row) -> str:
    """The largest three parts of a plan's step that are not forward and backward passes, as `ringsim plan` lists them."""
    if not row.get("time_us"):
        return ""
    shares = [(name, (row.get(column) or 0) / row["time_us"]) for name, column in _LOSSES.items()]
    largest = sorted(shares, key=lambda each: -each[1])[:3]
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in largest if share >= 0.001)


def _in_head(name: str, text: str) -> str:
    if name in ("ranks", "channels", "buckets"):
        return f"{text} {name}"
    return f"{name} {text}" if name in ("protocol", "tp", "pp", "dp", "ep", "batch", "context") else text


def _time_unit(us: float) -> Tuple[str, float]:
    """Returns the time unit for a table whose shortest time is `us`, and the length of this unit in us, as in the command's tables."""
    return ("us", 1.0) if us < 1e4 else ("ms", 1e3) if us < 1e7 else ("s", 1e6)


def _time_cell(name: str, row: Row, unit: float) -> str:
    value = row._flat.get(name)
    return _figure(value / unit) if name.endswith("_us") and isinstance(value, float) else _cell(name, row)


def _figure(value: float) -> str:
    """Formats a number with five digits, at most three of them after the decimal point, as in the command's tables."""
    size = abs(value)
    return f"{value:.{3 if size < 100 else 2 if size < 1000 else 1 if size < 10000 else 0}f}"


def _title(name: str, time_unit: str) -> str:
    for ending, unit in (("_us", f" {time_unit}"), ("_GBps", " GB/s"), ("_per_s", " per s")):
        if name.endswith(ending):
            return name[:-len(ending)] + unit
    return {"bottleneck.link": "bottleneck", "bottleneck.busy": "busy", "library_algorithm": "algorithm"}.get(
        name, name[6:] if name.startswith("point.") else name)


def _cell(name: str, row: Row) -> str:
    value = row._flat.get(name)
    if value is None:
        return ""
    if name == "algorithm" and isinstance(row.get("parameters"), Row):
        return " ".join([value, *(f"{key}={_plain(each)}" for key, each in row["parameters"].items())])
    if name == "protocol" and row.get("library"):
        return ", ".join(each.title() if each == "simple" else each.upper() for each in value.split(", "))  # as NCCL spells them
    if name in ("efficiency", "of_bound", "bottleneck.busy", "communication_share", "error") and isinstance(value, (int, float)):
        return f"{100 * value:{'+' if name == 'error' else ''}.1f} %"
    return size_text(value) if name == "bytes" and isinstance(value, int) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return _figure(value)
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def size_text(count: int) -> str:
    """Formats a number of bytes in the largest unit that shows it exactly: 1 MiB, 102.4 MB, 1500 B."""
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (10**9, "GB"), (10**6, "MB")):
        if count >= size and (count % size == 0 if unit[1] == "i" else 10 * count % size == 0):
            if count < 1024 * size or unit[0] == "G":
                return f"{count / size:g} {unit}"
    return f"{count} B"


class Document(Mapping[str, Any]):
    """The output of a command as data: document["rows"] or document.rows. Printing it shows the command's text.

    When the text is first used, the command runs a second time to produce it.
    """

    def __init__(self, data: Mapping[str, Any], text: Callable[[], str], notes: Sequence[str] = ()) -> None:
        self._data = dict(data)
        self._text = text
        self._printed: Optional[str] = None
        self.notes = list(notes)

    def __getitem__(self, name: str) -> Any:
        value = self._data[name]
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            return Results(value)
        return _shown(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._data:
            raise AttributeError(f"{name}: expected one of {', '.join(self._data)}" if not name.startswith("_") else name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._data]

    @property
    def text(self) -> str:
        """The text that the command prints."""
        if self._printed is None:
            self._printed = self._text()
        return self._printed

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<ringsim.Document: {', '.join(self._data)}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"

    def to_dict(self) -> Dict[str, Any]:
        """Returns the data as the command wrote it."""
        return copy.deepcopy(self._data)
