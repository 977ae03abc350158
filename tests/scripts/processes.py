"""Processes of a test: which there are, and when they are at work."""
import os
import pathlib
import sys
import time


def children(pid):
    """Those of all its threads, which may have ended meanwhile."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            pass
    return found


def processor_seconds(pid):
    """What it has used so far; 0 if it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime: proc(5), fields 14 and 15


def wait_until(condition, what, seconds=60):
    """Ends the test if it does not come true."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > until:
            sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: FAILED: not within {seconds} s: {what}")
        time.sleep(0.01)
    return found


def are_at_work(pids, seconds=0.15):
    """True if each has used so much of a processor, which is more than a start takes: so it is in the middle of its work,
    however slow the machine is."""
    return all(processor_seconds(pid) >= seconds for pid in pids)


def wait_until_at_work(pids, seconds=0.15):
    """Until they are_at_work()."""
    wait_until(lambda: are_at_work(pids, seconds), f"{seconds} s of a processor each")
