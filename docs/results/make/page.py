"""What the scripts share that write pages of docs/: a page that a test holds to what its script would write now; quantiles; scorecards."""
import csv
import difflib
import io
import subprocess
import sys


def write_or_check(page, write_page, usage):
    """As the command line says: SCRIPT RINGSIM writes `page`; SCRIPT RINGSIM --check compares, exit code 1 if it differs."""
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(usage)
    text = write_page()
    if sys.argv[2:] == []:
        page.write_text(text)
        return
    found = page.read_text() if page.exists() else ""
    if found != text:
        name = f"docs/{page.parent.name}/{page.name}"
        sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), text.splitlines(True), name, "now"))
        sys.exit(f"{name} is not what {sys.argv[0]} writes now; run it again and read the difference")


def quantile(values, share):
    """Quantile of a list that is not empty, interpolated between two values, so that share 0.5 is the median."""
    values = sorted(values)
    at = share * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (at - below)


def library_rows(ringsim, sets, folder=None):
    """Rows of `ringsim scorecard --only-library` that the library predicts, with options of --set; of the published tables, or a folder's."""
    words = [word for each in sets for word in ("--set", each)]
    command = [ringsim, "scorecard", *([folder] if folder else []), "--only-library", "--format", "csv", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{sys.argv[0]}: {' '.join(sets)}: exit {done.returncode}\n{done.stderr}")
    return [row for row in csv.DictReader(io.StringIO(done.stdout)) if row["library_us"]]
