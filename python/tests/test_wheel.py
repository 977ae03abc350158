"""Tests of the wheels with and without the command. Both can be installed without a network."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import PACKAGE, Case, ringsim

NEEDED = "import setuptools, wheel, pip, ensurepip"  # import setuptools first because it replaces distutils


def can_build(python):
    return bool(shutil.which(python)) and subprocess.run([python, "-c", NEEDED], stderr=subprocess.DEVNULL).returncode == 0


# This Python or Debian's Python. `tools/install-deps.sh ci` installs the packages for the latter.
PYTHON = next((python for python in (sys.executable, "/usr/bin/python3") if can_build(python)), None)


@unittest.skipIf(PYTHON is None, "left out: no python3 here has pip, setuptools, wheel and ensurepip (python3-venv)")
class Wheel(Case):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.folder = pathlib.Path(self.holder.name)

    def build(self, copy="source", **variables):
        """Builds a wheel from a copy of the sources, because pip leaves files in them. Returns the path of the wheel."""
        source = self.folder / copy
        shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"), dirs_exist_ok=True)
        wheels = self.folder / f"wheels-of-{copy}-{len(variables)}"
        done = subprocess.run([PYTHON, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", wheels, source],
                              env={**os.environ, **variables}, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (wheel,) = wheels.iterdir()
        return wheel

    def installed(self, wheel, code):
        """Returns the output of `code` in a new environment with the wheel but without a command on PATH or in RINGSIM."""
        place = self.folder / "environment"
        subprocess.run([PYTHON, "-m", "venv", "--clear", place], check=True)
        subprocess.run([place / "bin/python", "-m", "pip", "-q", "install", "--no-index", wheel], check=True, capture_output=True)
        without = {name: value for name, value in os.environ.items() if name not in ("RINGSIM", "PYTHONPATH")}
        done = subprocess.run([place / "bin/python", "-c", code], env={**without, "PATH": "/usr/bin:/bin"}, cwd=self.folder, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_wheel_with_the_command_runs_where_nothing_else_is_installed(self):
        wheel = self.build(RINGSIM_BINARY=os.environ["RINGSIM"])
        self.assertRegex(wheel.name, rf"^ringsim-{ringsim.__version__}-py3-none-linux_\w+\.whl$")
        printed = self.installed(wheel, "import ringsim; print(ringsim.find()); print(ringsim.run('dgx-h100')[0].time_us)")
        command, time_us = printed.splitlines()
        self.assertTrue(command.endswith("site-packages/ringsim/bin/ringsim"), command)
        self.assertEqual(float(time_us), ringsim.run("dgx-h100")[0].time_us)

    def test_a_wheel_of_python_alone_fits_every_machine_and_has_no_command(self):
        self.build(RINGSIM_BINARY=os.environ["RINGSIM"])  # the next build must not reuse any of these files
        wheel = self.build()
        self.assertEqual(wheel.name, f"ringsim-{ringsim.__version__}-py3-none-any.whl")
        with zipfile.ZipFile(wheel) as files:
            names = files.namelist()
        self.assertIn("ringsim/py.typed", names)
        self.assertEqual([name for name in names if "bin/" in name], [])
        printed = self.installed(wheel, "import ringsim\ntry:\n    ringsim.version()\nexcept ringsim.Error as error:\n    print(error)")
        self.assertIn("expected the ringsim command, found none", printed)

    def test_a_wheel_of_an_unpacked_tarball_has_its_libraries_and_licenses_and_always_the_same_bytes(self):
        tarball = self.folder / "tarball"
        for name in ("bin/ringsim", "lib/ringsim/libfmt.so.9", "share/doc/ringsim/licenses/libfmt9"):
            (tarball / name).parent.mkdir(parents=True, exist_ok=True)
            (tarball / name).write_bytes(name.encode())
        shutil.copy(os.environ["RINGSIM"], tarball / "bin/ringsim")
        variables = {"RINGSIM_BINARY": str(tarball / "bin/ringsim"), "SOURCE_DATE_EPOCH": "1700000000"}
        wheel = self.build(copy="one", **variables)
        with zipfile.ZipFile(wheel) as files:
            names = files.namelist()
        # The command looks for libraries in ../lib/ringsim.
        for name in ("ringsim/bin/ringsim", "ringsim/lib/ringsim/libfmt.so.9", "ringsim/licenses/libfmt9"):
            self.assertIn(name, names)
        license_file = [name for name in names if re.fullmatch(r"ringsim-[^/]*\.dist-info/(licenses/)?LICENSE", name)]
        self.assertEqual(len(license_file), 1, names)
        os.utime(tarball / "lib/ringsim/libfmt.so.9", (1, 1))
        self.assertEqual(wheel.read_bytes(), self.build(copy="two", **variables).read_bytes())

    def test_a_binary_that_is_not_ringsim_builds_no_wheel(self):
        with self.assertRaises(AssertionError) as caught:
            self.build(RINGSIM_BINARY=shutil.which("echo"))
        self.assertIn("expected the ringsim command, found a program that prints", str(caught.exception))


if __name__ == "__main__":
    unittest.main(verbosity=2)  # verbose output shows why tests are skipped
