# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Differences between the versions of Slurm, except for the keys of its files, which are in keys.py.

Source: SchedMD/slurm at the tags slurm-21-08-5-1, 22-05-8-1, 23-11-4-1, 24-11-5-1 (RELEASE_NOTES,
src/common/slurm_protocol_common.h, src/slurmd/common/xcpuinfo.c, src/plugins), and the packages of the distributions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Version:
    """One version of Slurm as its distribution packages it."""

    distribution: str
    """`ID` in os-release(5)"""
    release: str
    """`VERSION_ID`"""
    codename: str
    oldest_peer: str
    """the oldest slurmd and client that its slurmctld understands"""
    plugins: Mapping[str, bool]
    """for each plugin that not every version has: whether it has it, by name"""
    sockets_by_numa: bool
    """whether slurmd knows SlurmdParameters=numa_node_as_socket"""
    hides_slow_cores: bool
    """whether slurmd leaves out the slow cores of Intel unless SlurmdParameters has allow_ecores (since 23.02)"""
    binds_by_hardware: bool
    """whether task/affinity uses the sockets and cores of the machine, not those of its line"""


_JAMMY = Version(
    *("ubuntu", "22.04", "jammy"),
    oldest_peer="20.02",
    plugins={"auth/slurm": False, "cgroup/v2": False, "select/cons_res": True},
    sockets_by_numa=False,
    hides_slow_cores=False,
    binds_by_hardware=False,
)
_BOOKWORM = replace(
    _JAMMY,
    distribution="debian",
    release="12",
    codename="bookworm",
    oldest_peer="20.11",
    plugins={"auth/slurm": False, "cgroup/v2": True, "select/cons_res": True},
    sockets_by_numa=True,
)
_NOBLE = replace(
    _BOOKWORM,
    distribution="ubuntu",
    release="24.04",
    codename="noble",
    oldest_peer="22.05",
    plugins={"auth/slurm": True, "cgroup/v2": True, "select/cons_res": False},
    hides_slow_cores=True,
    binds_by_hardware=True,
)
_TRIXIE = replace(_NOBLE, distribution="debian", release="13", codename="trixie", oldest_peer="23.02")

TABLE: Mapping[str, Version] = {"21.08": _JAMMY, "22.05": _BOOKWORM, "23.11": _NOBLE, "24.11": _TRIXIE}
"""The supported versions, oldest first. Each entry above says what changed since the one before it."""

OLDEST_PEER = {name: version.oldest_peer for name, version in TABLE.items()} | {"25.05": "23.11"}
"""The oldest peer by the version of slurmctld; also of versions that no supported release has yet."""


def of_release(distribution: str, release: str) -> str | None:
    """Return the version that a release installs, its names as in os-release(5); None if it is not supported.

    >>> of_release("debian", "12")
    '22.05'
    """
    return next((name for name, v in TABLE.items() if (v.distribution, v.release) == (distribution, release)), None)


def upstream(text: str) -> str:
    """Return the version in a program's output or in its Debian package's version; empty if it has none.

    >>> upstream("slurm-wlm 22.05.8"), upstream("munge-0.5.15 (2022-06-22)"), upstream("1:23.11.4-1.2ubuntu5")
    ('22.05.8', '0.5.15', '23.11.4')
    """
    found = re.search(r"\d+(\.\d+)+", text)
    return found[0] if found else ""


def number(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, in any form that `upstream` reads, for comparison.

    >>> number("22.05.8") < number("1:23.11.4-1")
    True
    """
    return tuple(int(part) for part in upstream(version).split(".")[:2] if part)


def series(version: str) -> str:
    """Return the first two numbers of a version as Slurm writes them: they distinguish protocols and states.

    >>> series("22.05.8-4+deb12u3"), series("1:23.11.4-1"), series("")
    ('22.05', '23.11', '')
    """
    return ".".join(upstream(version).split(".")[:2])


def known(version: str | None) -> Version:
    """Return the table's entry for a version: the newest entry that is not newer than it.

    Without a version, return the newest entry: older versions ignore its additions.

    >>> known("22.05.8").codename, known("23.02").codename, known(None).codename, known("25.05").codename
    ('bookworm', 'bookworm', 'trixie', 'trixie')
    """
    names = [name for name in TABLE if version is None or number(name) <= number(version)]
    return TABLE[names[-1] if names else next(iter(TABLE))]


def can_talk(controller: str, node: str) -> bool:
    """Say whether slurmctld of the first version understands slurmd and clients of the second.

    One that is not in OLDEST_PEER is known to understand its own version only.

    >>> can_talk("24.11.5", "23.11"), can_talk("24.11", "22.05.8"), can_talk("22.05", "24.11")
    (True, False, False)
    """
    oldest = OLDEST_PEER.get(series(controller), controller)
    return number(oldest) <= number(node) <= number(controller)


def mixture_problems(control: str, versions: Mapping[str, str | None]) -> list[str]:
    """Return a line for each node whose Slurm is incompatible with the control node's.

    `versions` are by name of node; nodes without a version did not answer, and are not reported.
    """
    controller = versions.get(control)
    if controller is None:
        return []
    return [
        f"{name}: its release has Slurm {version}, but {control} will have {controller}, "
        f"which is compatible with {OLDEST_PEER[controller]} to {controller}; install the same release on both"
        for name, version in versions.items()
        if version is not None and not can_talk(controller, version)
    ]
