#!/usr/bin/env python3
"""Checks the JSON Schema of a scenario: schema_check.py SCHEMA.json GOOD_DIR BAD_DIR

The schema must be valid draft-07, take every *.json of GOOD_DIR and refuse every *.json of BAD_DIR. Comments
are dropped before a file is read. Needs python3-jsonschema. Exit code 1 where something does not hold.
"""
import json
import pathlib
import re
import sys

import jsonschema


def read(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda found: found.group(1) or "", text, flags=re.S))


def main(schema_path, good_dir, bad_dir):
    schema = json.loads(pathlib.Path(schema_path).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    wrong = 0
    for folder, is_good in ((good_dir, True), (bad_dir, False)):
        files = sorted(pathlib.Path(folder).glob("*.json"))
        if not files:
            print(f"{folder}: no *.json")
            wrong += 1
        for path in files:
            error = next(iter(validator.iter_errors(read(path))), None)
            if is_good and error is not None:
                print(f"{path}: refused: /{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
                wrong += 1
            if not is_good and error is None:
                print(f"{path}: accepted, but it is a bad scenario")
                wrong += 1
        print(f"{folder}: {len(files)} files, {'taken' if is_good else 'refused'} as they should be" if not wrong
              else f"{folder}: {len(files)} files")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
