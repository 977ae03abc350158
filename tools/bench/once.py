"""Runs ringsim_once for the scripts of this folder: one case, one process, one dictionary of figures."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def stop(message, status):
    print(f"{pathlib.Path(sys.argv[0]).name}: error: {message}", file=sys.stderr)
    sys.exit(status)


def program(build, name="ringsim_once"):
    path = pathlib.Path(build) / "tools" / "bench" / name
    if not path.exists():
        stop(f"{path} is missing\n  hint: cmake -S {ROOT} -B {build} -DRINGSIM_BENCH=ON && cmake --build {build} --target {name}", 5)
    return path


def names(path, slow):
    lines = subprocess.run([path, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split()[0] for line in lines if slow or not line.endswith(" slow")]


def run(path, case, times):
    done = subprocess.run([path, case, str(times)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        stop(f"{path} {case} failed with status {done.returncode}", 4)
    return json.loads(done.stdout)
