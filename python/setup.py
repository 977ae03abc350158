"""Builds the wheel. If the environment variable RINGSIM_BINARY is the path of a ringsim command, the wheel contains this command
and works only on this platform. If the command comes from a tarball, the wheel also contains its shared libraries, which the
command finds at ../lib/ringsim, and their licenses. Otherwise, it contains only Python code and uses the command that it finds."""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before version 70
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
        unpacked = pathlib.Path(BINARY).parent.parent
        if unpacked.joinpath("lib/ringsim").is_dir():
            shutil.copytree(unpacked / "lib/ringsim", inside.parent.parent / "lib/ringsim", dirs_exist_ok=True)
            shutil.copytree(unpacked / "share/doc/ringsim/licenses", inside.parent.parent / "licenses", dirs_exist_ok=True)


class Package(Distribution):
    def has_ext_modules(self):  # True makes the wheel specific to this platform
        return bool(BINARY)


class WheelOfAnyPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=Package, cmdclass={"build_py": BuildWithCommand, "bdist_wheel": WheelOfAnyPython})
