"""The pip that a Python keeps for its virtual environments, run from outside of them: they need none of their own."""

import os
import pathlib
import subprocess
import zipfile
from collections.abc import Mapping

# Where ensurepip looks: a distribution's wheels, or those of a Python that comes from python.org.
PLACES = """
import os, sysconfig
print(sysconfig.get_config_var("WHEEL_PKG_DIR") or "")
print(os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"))
"""


def find(python: str) -> pathlib.Path | None:
    """Return the wheel of pip that a Python has, or None."""
    done = subprocess.run([python, "-I", "-c", PLACES], capture_output=True, text=True, check=True)
    for place in filter(None, done.stdout.splitlines()):
        if wheels := sorted(pathlib.Path(place).glob("pip-*.whl")):
            return wheels[-1]
    return None


def unpack(wheel: pathlib.Path, directory: str) -> None:
    """Put pip into a directory, without what says that it is installed: who requires pip still gets one."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory, [name for name in archive.namelist() if name.startswith("pip/")])


def variables(given: Mapping[str, str], directory: str) -> dict[str, str]:
    """Return variables with which any Python finds the pip in a directory; isolated builds of pip drop it again."""
    return {**given, "PYTHONPATH": os.pathsep.join(filter(None, [directory, given.get("PYTHONPATH")]))}
