"""Shared by all tests: imports the package in this folder and finds the command that the environment variable RINGSIM names."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
ROOT = PACKAGE.parent
sys.path.insert(0, str(PACKAGE))
if "RINGSIM" not in os.environ:
    sys.exit("expected the variable RINGSIM, such as RINGSIM=build/tools/ringsim, found none")
os.environ["RINGSIM"] = str(pathlib.Path(os.environ["RINGSIM"]).resolve())

import ringsim  # noqa: E402

# Four ranks, each with a 10 GB/s port. A message crosses two links of 1 us each, so a = 2 us.
STAR = {"version": 1, "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
        "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 KiB"}}


def ring_us(ranks, size, latency_us=2.0, rate=10e9):
    """Time of a ring all-reduce: 2(K-1)(a + p/(Kb))."""
    return 2 * (ranks - 1) * (latency_us + size / ranks / rate * 1e6)


class Case(unittest.TestCase):
    maxDiff = None

    def refused(self, function, *arguments, **options):
        """Returns the Error that the call must raise."""
        with self.assertRaises(ringsim.Error) as caught:
            function(*arguments, **options)
        return caught.exception
