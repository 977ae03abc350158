"""A page of docs/ that a script writes, and that a test holds to what the script would write now."""
import difflib
import sys


def write_or_check(page, write_page, usage):
    """As the command line says: SCRIPT RINGSIM writes `page`; SCRIPT RINGSIM --check compares, exit code 1 where it differs."""
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
