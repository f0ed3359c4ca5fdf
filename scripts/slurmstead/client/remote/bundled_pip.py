"""The pip wheel that Python bundles; pip runs from outside the virtual environments, so they need none."""

import os
import pathlib
import subprocess
import zipfile
from collections.abc import Mapping

# Where ensurepip looks: the distribution's wheels, or those of a Python from python.org.
PLACES = """
import os, sysconfig
print(sysconfig.get_config_var("WHEEL_PKG_DIR") or "")
print(os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"))
"""


def find(python: str) -> pathlib.Path | None:
    """Return the pip wheel bundled with a Python, or None."""
    done = subprocess.run([python, "-I", "-c", PLACES], capture_output=True, text=True, check=True)
    for place in filter(None, done.stdout.splitlines()):
        if wheels := sorted(pathlib.Path(place).glob("pip-*.whl")):
            return wheels[-1]
    return None


def unpack(wheel: pathlib.Path, directory: str) -> None:
    """Unpack pip into a directory, without its metadata: requirements that name pip must still install it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory, [name for name in archive.namelist() if name.startswith("pip/")])


def variables(given: Mapping[str, str], directory: str) -> dict[str, str]:
    """Return environment variables with which Python finds the pip in a directory; pip's isolated builds ignore it."""
    return {**given, "PYTHONPATH": os.pathsep.join(filter(None, [directory, given.get("PYTHONPATH")]))}
