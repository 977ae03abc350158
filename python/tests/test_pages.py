"""Runs every Python block of the guide, the README and the notebook, and checks their asserts."""
import contextlib
import io
import json
import os
import re
import unittest
import warnings

from support import PACKAGE, ROOT, Case, ringsim

GUIDE = ROOT / "docs/guide/python.md"
NOTEBOOK = PACKAGE / "examples/claims.ipynb"


def blocks_of(page):
    """Returns the Python blocks on a Markdown page as [(line, code)]."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start()) + 2, found.group(1)) for found in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)]


@contextlib.contextmanager
def in_folder(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as printed:
            warnings.simplefilter("error")  # examples must not cause warnings
            yield printed
    finally:
        os.chdir(before)


def execute(code, name, line, names):
    """Runs code as if it started at line `line` of the file `name`, so that errors show this file and line."""
    exec(compile("\n" * (line - 1) + code, str(name), "exec"), names)


class Guide(Case):
    def test_every_block_runs_by_itself(self):
        blocks = blocks_of(GUIDE)
        self.assertGreaterEqual(len(blocks), 10)
        for line, code in blocks:
            with self.subTest(line=line), in_folder(ROOT):
                execute(code, GUIDE, line, {"__name__": "page"})

    def test_recipes_are_short(self):
        for line, code in blocks_of(GUIDE):
            lines = [each for each in code.splitlines() if each.strip() and not each.startswith(("import ", "from "))]
            self.assertLessEqual(len(lines), 13, f"{GUIDE}:{line}")

    def test_the_first_table_is_what_the_first_block_prints(self):
        line, code = blocks_of(GUIDE)[0]
        with in_folder(ROOT) as printed:
            execute(code, GUIDE, line, {"__name__": "page"})
        shown = "".join(f"    {each}\n" for each in printed.getvalue().splitlines())
        self.assertIn(f"```\n\n{shown}\n", GUIDE.read_text(encoding="utf-8"))

    def test_functions_that_pages_name_exist(self):
        for page in (GUIDE, PACKAGE / "README.md"):
            for name in re.findall(r"\bringsim\.([A-Za-z_]+)\(", page.read_text(encoding="utf-8")):
                self.assertTrue(hasattr(ringsim, name), f"{page}: ringsim.{name}")

    def test_every_public_function_is_on_the_page_and_has_a_docstring(self):
        page = GUIDE.read_text(encoding="utf-8")
        for name in ringsim.__all__:
            if name not in ("Scenario", "Settings"):  # these are types, and comments describe them
                self.assertTrue(getattr(ringsim, name).__doc__, name)
            if name.islower():
                self.assertRegex(page, rf"\b{name}\b")


class Notebook(Case):
    def test_its_claims_hold(self):
        notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
        self.assertEqual(notebook["nbformat"], 4)
        code = [(number, "".join(cell["source"])) for number, cell in enumerate(notebook["cells"], 1) if cell["cell_type"] == "code"]
        self.assertGreaterEqual(sum(source.count("assert ") for _, source in code), 10)
        names = {"__name__": "__main__"}
        for number, source in code:
            with in_folder(NOTEBOOK.parent):
                execute(source, f"{NOTEBOOK}, cell {number}", 1, names)

    def test_it_has_no_output_that_could_be_out_of_date(self):
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
            self.assertEqual(cell.get("outputs", []), [])
            self.assertIsNone(cell.get("execution_count"))

    def test_an_assert_of_a_cell_that_fails_is_seen(self):
        with self.assertRaises(AssertionError), in_folder(NOTEBOOK.parent):
            execute("assert 1 > 2", "cell", 1, {})


if __name__ == "__main__":
    unittest.main()
