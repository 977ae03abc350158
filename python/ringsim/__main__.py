"""`python3 -m ringsim ...` runs the ringsim command that the package finds."""
import os
import sys

from ringsim import Error, find

try:
    program = find()
except Error as error:
    print(f"ringsim: error: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
os.execv(program, [program, *sys.argv[1:]])
