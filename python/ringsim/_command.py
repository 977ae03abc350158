"""Finds and runs the ringsim command, and converts its errors to exceptions."""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import warnings
from typing import Any, List, NamedTuple, Optional, Sequence, Union

Path = Union[str, "os.PathLike[str]"]

#: The command in a wheel that was built with RINGSIM_BINARY.
INSIDE = pathlib.Path(__file__).resolve().parent / "bin" / "ringsim"

# Exit codes of the command, as listed in `ringsim help` and tools/exit.hpp.
CHECK_FAILED = 1
BAD_INPUT = 3
LACKING = 5
INTERRUPTED = 130


class RingsimWarning(UserWarning):
    """A warning from the command, for example about a setting without effect, an omitted row or suspicious input."""
    __module__ = "ringsim"


class Error(Exception):
    """Raised if the command rejects its input, if a check fails, or if the command is missing.

    `where` is the location of the error, such as "scenario: /topology/link/bandwidth", or None. `expected` and `found` are the
    two parts of a message of the form "expected ..., found ...", otherwise None. `hint` says how to fix the error, or is None.
    `exit_code` is 1 if a check failed, 2 for an invalid command line, 3 for invalid input, 4 for a bug in ringsim, 5 if the
    machine lacks something, 130 if the command was interrupted, and -N if signal N killed it. `results` contains the rows of a
    sweep or comparison in which a check failed, otherwise None.
    """
    __module__ = "ringsim"

    def __init__(self, message: str, *, where: Optional[str] = None, hint: Optional[str] = None, exit_code: int = BAD_INPUT,
                 results: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.exit_code = exit_code
        self.results = results
        halves = re.fullmatch(r"expected (.*), found (.*)", message, flags=re.DOTALL)
        self.expected = halves.group(1) if halves else None
        self.found = halves.group(2) if halves else None

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return place + self.message + (f"\n  hint: {self.hint}" if self.hint else "")


class Ended(NamedTuple):
    """The output and exit code of a command."""
    stdout: str
    exit_code: int
    notes: List[str]  # notes about the input, such as the scenario for a machine's name
    other: str  # lines on stderr without a prefix, such as which checks failed


def find(command: Optional[Path] = None) -> str:
    """Returns the path of the command. Tries `command`, the environment variable RINGSIM, the wheel and PATH, in this order.

    If `command` or RINGSIM names a program that does not exist, raises Error and does not search any further.
    """
    for source, name in (("command=", command), ("the variable RINGSIM", os.environ.get("RINGSIM"))):
        if name is not None and os.fspath(name) != "":
            found = shutil.which(os.fspath(name))
            if found:
                return found
            raise Error(f"expected a program, found none of the name {os.fspath(name)}", where=source, exit_code=LACKING,
                        hint="give the path of the ringsim command, such as build/tools/ringsim")
    if INSIDE.exists():
        return str(INSIDE)
    found = shutil.which("ringsim")
    if found:
        return found
    raise Error("expected the ringsim command, found none: searched command=, the variable RINGSIM (not set), "
                f"{INSIDE} (the wheel does not contain the command) and PATH", exit_code=LACKING,
                hint="build it (tools/build.sh) and set RINGSIM=build/tools/ringsim, or install a wheel that contains it")


def run(arguments: Sequence[str], *, stdin: Optional[str] = None, stdin_name: str = "scenario", command: Optional[Path] = None,
        accept: Sequence[int] = (0,)) -> Ended:
    """Runs the command with `stdin` as its standard input. Error messages call this input `stdin_name`.

    Converts warnings to Python warnings. Raises Error if the exit code is not in `accept`. Ctrl-C first stops the command and
    then raises KeyboardInterrupt as usual.
    """
    program = find(command)
    try:
        child = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    except OSError as error:
        raise Error(f"expected a program that can be started, found: {error.strerror}", where=program, exit_code=LACKING) from error
    try:
        stdout, stderr = child.communicate(stdin)
    except BaseException:
        _stop(child)
        raise
    stderr = stderr.replace("<stdin>", stdin_name)
    said = _said(stderr)
    for kind, text in said:
        if kind == "warning":
            warn(text)
    ended = Ended(stdout, child.returncode, [text for kind, text in said if kind == "note"],
                  "".join(text for kind, text in said if kind == ""))
    if child.returncode not in accept:
        raise _error(child.returncode, said, [stdin_name, *arguments])
    return ended


def _stop(child: "subprocess.Popen[str]") -> None:
    """Stops a running command. After SIGTERM, a sweep can finish its file, even if the terminal has already sent SIGINT."""
    child.terminate()
    try:
        child.wait(timeout=5)
    except BaseException:  # a second Ctrl-C, or five seconds have passed
        child.kill()
        child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe:
            try:
                pipe.close()
            except OSError:
                pass


def _said(stderr: str) -> List[List[str]]:
    """Splits stderr into messages [kind, text]. The kind is "" for text without a prefix and "after 20 s" for progress messages."""
    said: List[List[str]] = []
    for line in stderr.splitlines(keepends=True):
        head = re.match(r"ringsim: (note|warning|error|interrupted|after [^:]*|the simulation is wrong, not your input|"
                        r"internal error, not caused by your input): ", line)
        if head:
            said.append([head.group(1), line[head.end():]])
        elif said and line.startswith("  "):
            said[-1][1] += line
        else:
            said.append(["", re.sub(r"^ringsim: ", "", line)])
    return [[kind, text if kind == "" else text.rstrip("\n")] for kind, text in said]


def _error(exit_code: int, said: List[List[str]], places: Sequence[str]) -> Error:
    own = [[kind, text] for kind, text in said if kind not in ("", "note", "warning") and not kind.startswith("after ")]
    if exit_code < 0:
        name = signal.Signals(-exit_code).name
        hint = "SIGKILL usually comes from a machine that is out of memory" if name == "SIGKILL" else None
        return Error(f"the ringsim command was ended by {name}", hint=hint, exit_code=exit_code)
    if not own:
        text = "".join(text for kind, text in said if kind == "").strip()
        library = re.search(r"error while loading shared libraries: ([^\s:]+)", text)
        if library and exit_code == 127:  # from the dynamic linker
            return Error(text, exit_code=LACKING, hint=f"install the package that contains {library.group(1)}, or use a wheel with all "
                         "libraries, which tools/package.sh wheel builds")
        return Error(text or f"the ringsim command ended with exit code {exit_code} and no message", exit_code=exit_code)
    kind, text = own[-1]
    text, _, hint = text.partition("\n  hint: ")
    where, message = _split(text, places)
    if kind != "error":
        message = f"{kind}: {message}"
    return Error(message, where=where, hint=hint or None, exit_code=exit_code)


def _split(text: str, places: Sequence[str]) -> "tuple[Optional[str], str]":
    """Splits "PLACE: PLACE: message". A place is a command argument, an option, FILE:LINE or a JSON pointer."""
    parts = text.split(": ")
    n = 0
    while n + 1 < len(parts) and (parts[n] in places or re.fullmatch(r"--\S.*|(/[^/\s]+)+|\S+:\d+(:\d+)?", parts[n])):
        n += 1
    return ": ".join(parts[:n]) or None, ": ".join(parts[n:])


def warn(text: str) -> None:
    """Issues a warning that points to the first caller outside this package."""
    here = os.path.dirname(__file__)
    depth, frame = 1, sys._getframe()
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == here:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, RingsimWarning, stacklevel=depth)
