"""Tests of errors with location and hint, missing commands, warnings, and Ctrl-C."""
import contextlib
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from unittest import mock

from support import PACKAGE, STAR, Case, ringsim

from ringsim import _command


def facts(error):
    return {name: getattr(error, name) for name in ("where", "expected", "found", "hint", "exit_code")}


def script(folder, text):
    path = pathlib.Path(folder, "command")
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def end_all(program):
    """Ends a program and its children if a failed test left them running."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.communicate()


class Errors(Case):
    def test_a_mistake_in_a_dictionary_names_its_place_in_it(self):
        error = self.refused(ringsim.run, {**STAR, "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "100 Gbs"}}})
        self.assertEqual(facts(error), {
            "where": "scenario: /topology/link/bandwidth", "expected": 'a rate such as "25 GB/s" or "200 Gb/s"', "found": '"100 Gbs"',
            "hint": "Gb/s is bits, GB/s is bytes; G is 10^9, Gi is 2^30", "exit_code": 3})
        self.assertEqual(str(error), 'scenario: /topology/link/bandwidth: expected a rate such as "25 GB/s" or "200 Gb/s", '
                         'found "100 Gbs"\n  hint: Gb/s is bits, GB/s is bytes; G is 10^9, Gi is 2^30')

    def test_a_mistake_in_a_setting_names_the_setting(self):
        error = self.refused(ringsim.run, STAR, set={"collective.bytes": 1024})
        self.assertEqual(facts(error), {
            "where": "--set collective.bytes=1024: /collective/bytes", "expected": 'a size such as "64 MiB" or "1.5 GB"',
            "found": "1024", "hint": 'write the number with its unit as a string: "64 MiB"', "exit_code": 3})

    def test_a_name_that_is_neither_file_nor_machine_is_the_place(self):
        error = self.refused(ringsim.run, "dgx-h101")
        self.assertEqual((error.where, error.expected, error.found), ("dgx-h101", "a scenario file or the name of a machine", "neither"))
        self.assertIn("ringsim list nodes", error.hint)

    def test_a_command_without_one_of_its_shared_libraries_says_what_to_install(self):
        linker = "ringsim: error while loading shared libraries: libfmt.so.9: cannot open shared object file: No such file or directory"
        with tempfile.TemporaryDirectory() as folder:
            error = self.refused(ringsim.version, command=script(folder, f"echo '{linker}' >&2\nexit 127\n"))
        self.assertEqual(error.exit_code, 5)
        self.assertIn("libfmt.so.9: cannot open", error.message)
        self.assertIn("install the package that contains libfmt.so.9", error.hint)

    def test_a_message_of_another_form_has_neither_half(self):
        error = self.refused(ringsim.run, STAR, set={"topology.ranks": 6, "collective.algorithm": "swing"})
        self.assertEqual((error.where, error.expected), ("scenario: /collective", None))
        self.assertEqual(error.message, "swing needs a power-of-two number of ranks, found 6")

    def test_a_text_that_begins_with_a_dash_is_a_file_and_no_option(self):
        error = self.refused(ringsim.run, "--help")
        self.assertEqual((error.exit_code, error.where), (3, "./--help"))

    def test_what_json_cannot_say_is_an_error_before_anything_runs(self):
        for value in (float("nan"), object(), {1, 2}):
            error = self.refused(ringsim.run, {**STAR, "disturbance": value})
            self.assertEqual((error.where, error.exit_code), ("scenario", 3))
        self.assertIn("found int", str(self.refused(ringsim.run, 17)))

    def test_an_option_that_the_command_lacks_has_its_exit_code(self):
        error = self.refused(ringsim.call, "run", "--no-such-option")
        self.assertEqual(error.exit_code, 2)
        self.assertIn("--no-such-option", error.message)

    def test_a_place_with_colons_is_kept_whole(self):
        said = _command._said("ringsim: error: a.csv:2: /x/y: expected 1: 2, found 3\n  hint: do: this\nusage: x\n")
        error = _command._error(3, said, ["a.csv"])
        self.assertEqual(facts(error), {"where": "a.csv:2: /x/y", "expected": "1: 2", "found": "3", "hint": "do: this", "exit_code": 3})

    def test_a_bug_of_ringsim_says_so(self):
        said = _command._said("ringsim: the simulation is wrong, not your input: bytes in are bytes out\n  hint: please report it\n")
        error = _command._error(4, said, [])
        self.assertEqual((error.exit_code, error.message, error.hint),
                         (4, "the simulation is wrong, not your input: bytes in are bytes out", "please report it"))

    def test_how_far_the_work_is_is_no_part_of_an_error(self):
        said = _command._said("ringsim: after 20 s: 3 of 9\nringsim: --max-error 1 % exceeded: x\nringsim: after 40 s: 9 of 9\n")
        self.assertEqual(_command._error(1, said, []).message, "--max-error 1 % exceeded: x")


class Ends(Case):
    def test_a_command_that_is_killed_is_an_error_and_python_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            error = self.refused(ringsim.run, STAR, command=script(folder, "kill -KILL $$\n"))
        self.assertEqual((error.exit_code, error.message), (-signal.SIGKILL, "the ringsim command was ended by SIGKILL"))
        self.assertIn("memory", error.hint)

    def test_a_command_that_does_not_read_is_no_broken_pipe(self):
        with tempfile.TemporaryDirectory() as folder:
            large = {**STAR, "name": "x" * 1_000_000}
            error = self.refused(ringsim.run, large, command=script(folder, "echo 'ringsim: error: a: b' >&2; exit 5\n"))
        self.assertEqual((error.exit_code, error.message), (5, "a: b"))

    def test_another_program_is_not_taken_for_ringsim(self):
        error = self.refused(ringsim.version, command="echo")
        self.assertIn("expected \"ringsim VERSION (model N)\", found 'version'", str(error))

    def test_a_file_that_is_no_program_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "command")
            path.write_text("nonsense")
            path.chmod(0o755)
            error = self.refused(ringsim.run, STAR, command=path)
        self.assertEqual((error.exit_code, error.where), (5, str(path)))

    def interrupted(self, code, folder, to_all=False):
        """Runs `code`. When its child starts to write, sends SIGINT to Python only or, like a terminal, to the child as well. Returns
        the output and the child."""
        program = subprocess.Popen([sys.executable, "-c", code], cwd=PACKAGE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(end_all, program)
        children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children")
        until = time.monotonic() + 60
        child = ""
        while not (child and pathlib.Path(folder, "began").exists()):
            self.assertLess(time.monotonic(), until, "no child began")
            self.assertIsNone(program.poll(), "Python ended by itself")
            child = children.read_text().strip()
            time.sleep(0.01)
        (os.killpg if to_all else os.kill)(program.pid, signal.SIGINT)
        output = program.communicate(timeout=60)[0]
        return output, int(child.split()[0])

    CATCHES = ("import ringsim\ntry:\n    ringsim.call('run', 'x', command={!r})\n"
               "except KeyboardInterrupt:\n    print('interrupted, and goes on', ringsim.version().version)\n")

    def test_ctrl_c_ends_the_command_and_python_gets_its_exception(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(script(folder, f"touch {folder}/began\nexec sleep 100\n"))
            output, child = self.interrupted(self.CATCHES.format(path), folder)
        self.assertEqual(output, f"interrupted, and goes on {ringsim.version().version}\n")
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists(), "the command goes on alone")

    def test_ctrl_c_of_a_terminal_which_reaches_both_is_the_same_exception(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(script(folder, f"trap 'exit 130' INT\ntouch {folder}/began\nwhile :; do sleep 0.1; done\n"))
            output, _ = self.interrupted(self.CATCHES.format(path), folder, to_all=True)
        self.assertEqual(output, f"interrupted, and goes on {ringsim.version().version}\n")

    def test_ctrl_c_ends_a_command_that_ignores_sigterm(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(script(folder, f"trap '' TERM\ntouch {folder}/began\nwhile :; do sleep 0.1; done\n"))
            began = time.monotonic()
            output, child = self.interrupted(self.CATCHES.format(path), folder)
        self.assertIn("goes on", output)
        self.assertGreater(time.monotonic() - began, 4)  # the command has five seconds to finish its files
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())

    def test_an_interrupted_sweep_keeps_its_rows_and_resume_adds_the_others(self):
        scenario = {**STAR, "network": "packet", "collective": {"op": "all_to_all", "algorithm": "direct", "bytes": "8 MiB"}}
        settings = {"topology.ranks": list(range(33, 93))}
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder, "began")  # the sweep has begun when this file exists
            self.interrupted(f"import ringsim\ntry:\n    ringsim.sweep({scenario!r}, set={settings!r}, output={str(output)!r}, workers=1)\n"
                             "except KeyboardInterrupt:\n    pass\n", folder)
            self.assertLess(len(output.read_text().splitlines()), 60)
            resumed = ringsim.sweep(scenario, set=settings, output=output, resume=True)
        self.assertEqual(resumed.to_jsonl(), ringsim.sweep(scenario, set=settings).to_jsonl())
        self.assertEqual(resumed["ranks"], list(range(33, 93)))


class Found(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.mine = str(script(self.folder.name, "echo 'ringsim 9.9.9 (model 1)'\n"))
        self.inside = pathlib.Path(self.folder.name, "inside")

    def environment(self, **variables):
        kept = {name: value for name, value in os.environ.items() if name not in ("RINGSIM", "PATH")}
        return mock.patch.dict(os.environ, {**kept, "PATH": "/usr/bin:/bin", **variables}, clear=True)

    def test_the_argument_comes_first_then_the_variable_the_wheel_and_path(self):
        on_path = pathlib.Path(self.folder.name, "ringsim")
        on_path.symlink_to(self.mine)
        with mock.patch.object(_command, "INSIDE", self.inside), self.environment(PATH=self.folder.name):
            self.assertEqual(ringsim.find(), str(on_path))
            self.inside.symlink_to(self.mine)
            self.assertEqual(ringsim.find(), str(self.inside))
            with self.environment(RINGSIM="/bin/echo"):
                self.assertEqual(ringsim.find(), "/bin/echo")
                self.assertEqual(ringsim.find(self.mine), self.mine)
                self.assertEqual(ringsim.version(command=self.mine), ("9.9.9", 1))

    def test_without_any_the_error_says_where_it_looked(self):
        with mock.patch.object(_command, "INSIDE", self.inside), self.environment():
            error = self.refused(ringsim.run, STAR)
        self.assertEqual(error.exit_code, 5)
        for place in ("command=", "RINGSIM", str(self.inside), "PATH"):
            self.assertIn(place, str(error))

    def test_a_named_command_that_is_missing_is_not_replaced_by_another(self):
        with self.environment(RINGSIM="/nowhere/ringsim"):
            error = self.refused(ringsim.run, STAR)
            self.assertEqual((error.where, error.found), ("the variable RINGSIM", "none of the name /nowhere/ringsim"))
            self.assertEqual(self.refused(ringsim.run, STAR, command="/nowhere/else").where, "command=")

    def test_python_m_ringsim_is_the_command(self):
        for environment, code, text in ((os.environ, 0, "ringsim "), ({**os.environ, "RINGSIM": "/nowhere"}, 5, "")):
            done = subprocess.run([sys.executable, "-m", "ringsim", "version"], cwd=PACKAGE, env=environment, text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertTrue(done.stdout.startswith(text))


class Warned(Case):
    IDLE = {**STAR, "transport": {"pxn": False}}  # a star has no NVLink, so PXN has no effect

    def test_a_warning_of_the_command_is_one_of_python_at_the_line_of_the_caller(self):
        with self.assertWarns(ringsim.RingsimWarning) as caught:
            ringsim.run(self.IDLE)
        self.assertIn("/transport/pxn", str(caught.warning))
        self.assertEqual(caught.filename, __file__)

    def test_a_run_without_a_reason_warns_of_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ringsim.run(STAR)

    def test_notes_are_kept_with_the_results(self):
        self.assertIn("dgx-h100 is a machine", ringsim.run("dgx-h100").notes[0])
        self.assertEqual(ringsim.run(STAR).notes, [])


if __name__ == "__main__":
    unittest.main()
