# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The mounts of this machine (proc_pid_mountinfo(5))."""

from __future__ import annotations

import dataclasses
import re

from ansible.module_utils.slurmstead.storage import disks


@dataclasses.dataclass(frozen=True)
class Mount:
    """A mounted file system; `number` is major:minor of its device, `source` the mounted device or export.

    `readonly` is that of this mount; its file system can be writable elsewhere.
    """

    number: str
    path: str
    filesystem: str
    source: str
    readonly: bool = False


def mounts() -> list[Mount]:
    """Return the mounts of this namespace, the topmost last."""
    result = []
    # The kernel escapes a line break in a name, but not what else ends a line for splitlines().
    for line in (disks.PROC / "self/mountinfo").read_text(errors="replace").split("\n")[:-1]:
        before, _, after = line.partition(" - ")
        number, _, path, options = before.split(" ")[2:6]
        filesystem, source = after.split(" ")[:2]
        result.append(Mount(number, unescape(path), filesystem, unescape(source), "ro" in options.split(",")))
    return result


def unescape(field: str) -> str:
    r"""Return a field of mountinfo or swaps without the kernel's escapes for white space.

    >>> unescape("/mnt/a\\040b")
    '/mnt/a b'
    """
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
