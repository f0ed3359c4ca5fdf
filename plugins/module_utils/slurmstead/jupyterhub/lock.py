# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The packages of a lock that one machine needs.

A lock that uv made for all platforms has markers; pip would evaluate them for the Python that runs it, not for the
machine's.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

_JOINED = re.compile(r"\\\n\s*")
_COMMENT = re.compile(r"(^|\s)#.*")


Applies = Callable[[str, Mapping[str, str]], bool]
"""Says whether a marker holds in an environment."""


class LockError(ValueError):
    """A line of the lock has no exact version or no hash."""


OLDEST = (3, 11)
"""The Python for which the locks were made."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """The Python of a machine: its version, such as 3.11.2, and the output of `uname -m`."""

    python: str
    architecture: str

    @property
    def series(self) -> str:
        """The version without its last number."""
        return ".".join(self.python.split(".")[:2])

    @property
    def markers(self) -> dict[str, str]:
        """The environment in which markers are evaluated (dependency specifiers, "Environment Markers")."""
        return {
            "implementation_name": "cpython",
            "implementation_version": self.python,
            "os_name": "posix",
            "platform_machine": self.architecture,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": self.python,
            "python_version": self.series,
            "sys_platform": "linux",
            "extra": "",
        }

    def pip_options(self) -> list[str]:
        """Return pip's options that choose wheels for this machine; Debian 12 has glibc 2.36."""
        number = self.series.replace(".", "")
        tags = [f"manylinux_2_{minor}_{self.architecture}" for minor in range(36, 16, -1)]
        platforms = [*tags, f"manylinux2014_{self.architecture}"]
        abis = [f"cp{number}", "abi3", "none"]
        return [
            *("--only-binary=:all:", "--implementation=cp", f"--python-version={self.series}"),
            *(f"--platform={platform}" for platform in platforms),
            *(f"--abi={abi}" for abi in abis),
        ]


def chosen(text: str, machine: Machine, applies: Applies) -> str:
    r"""Return the lines of a lock for one machine, sorted and without markers.

    >>> lock = "b==2 ; sys_platform == 'win32' --hash=sha256:00\na==1 ; python_version < '4' \\\n    --hash=sha256:01\n"
    >>> chosen(lock, Machine("3.11.2", "x86_64"), lambda marker, facts: "win32" not in marker)
    'a==1 --hash=sha256:01\n'

    :raises LockError: a line is not a package with its version and hashes, or the Python is too old
    """
    if tuple(map(int, machine.series.split("."))) < OLDEST:
        raise LockError(
            f"needs Python 3.11, but the machine has {machine.python}; use Debian 12 or Ubuntu 24.04, or newer"
        )
    return "".join(sorted(_lines(text, machine, applies)))


def _lines(text: str, machine: Machine, applies: Applies) -> Iterator[str]:
    for line in _JOINED.sub(" ", text).splitlines():
        words = _COMMENT.sub("", line).split()
        if not words:
            continue
        hashes = [word for word in words if word.startswith("--hash=")]
        needed, _, marker = " ".join(word for word in words if word not in hashes).partition(";")
        if not hashes or not re.fullmatch(r"[\w.\-\[\],]+==[\w.+!]+", needed.strip()):
            raise LockError(f"expected name==version and --hash=…, seen {line.strip()!r}")
        if not marker.strip() or applies(marker.strip(), machine.markers):
            yield f"{needed.strip()} {' '.join(hashes)}\n"
