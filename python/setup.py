"""Builds the wheel. If the environment variable RINGSIM_BINARY is the path of a ringsim command, the wheel contains this command
and works only on this platform. Otherwise, it contains only Python code and uses the command that it finds."""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

BINARY = os.environ.get("RINGSIM_BINARY", "")
COMMAND = pathlib.Path("ringsim", "bin", "ringsim")


class BuildWithCommand(build_py):
    def run(self):
        super().run()
        if not BINARY:
            return
        said = subprocess.run([os.path.abspath(BINARY), "version"], text=True, capture_output=True, check=True).stdout
        if not said.startswith("ringsim "):
            sys.exit(f"RINGSIM_BINARY={BINARY}: expected the ringsim command, found a program that prints {said[:80]!r}")
        inside = pathlib.Path(self.build_lib, COMMAND)
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(BINARY, inside)
        inside.chmod(0o755)


class Package(Distribution):
    def has_ext_modules(self):  # True makes the wheel specific to this platform
        return bool(BINARY)


class WheelOfAnyPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=Package, cmdclass={"build_py": BuildWithCommand, "bdist_wheel": WheelOfAnyPython})
