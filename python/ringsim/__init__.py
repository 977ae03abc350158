"""Predicts how long collectives and training steps take on a cluster of GPUs, and explains why.

    import ringsim
    print(ringsim.run("dgx-h100", set={"collective.bytes": ["1 MiB", "1 GiB"]}))

The package runs the `ringsim` command (see `find`), so a crash or Ctrl-C ends the command but never the interpreter.
docs/guide/python.md contains recipes.
"""
from ._api import (Scenario, Settings, Version, bound, call, columns, compare, compare_explain, explain, keys, machines, plan, predict, run,
                   schema, sweep, trace_compare, trace_show, version)
from ._command import Error, RingsimWarning, find
from ._pictures import Picture
from ._results import Document, Results, Row
from .schedule import Schedule

__version__ = "0.9.0"

__all__ = ["Document", "Error", "Picture", "Results", "RingsimWarning", "Row", "Scenario", "Schedule", "Settings", "Version", "bound",
           "call", "columns", "compare", "compare_explain", "explain", "find", "keys", "machines", "plan", "predict", "run", "schema",
           "sweep", "trace_compare", "trace_show", "version"]
