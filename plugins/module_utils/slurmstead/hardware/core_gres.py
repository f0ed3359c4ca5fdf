# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Fast and slow cores as a resource that jobs can request: the GRES `core` with the types `fast` and `slow`.

It is exact only if each kind of core is one of two sockets: Slurm gives a GRES the cores of its sockets, and spreads
tasks over the sockets of one kind if there are several. So a node with as many fast cores as slow ones, one kind after
the other, is declared as two sockets. Measured on an RK3588 with Slurm 24.11: all tasks run on the requested kind,
other jobs on the remaining cores; without enforce-binding a job gets cores of the other kind when the requested ones
are busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.slurmstead.conf.versions import number
from ansible.module_utils.slurmstead.hardware.measure import compress, expand

NAME = "core"

ENFORCED = (23, 11)
"""The first version with SelectTypeParameters=ENFORCE_BINDING_GRES (slurm.conf(5))."""


def halves(hardware: Mapping[str, Any]) -> dict[str, str]:
    """Return the CPUs by kind of core, the first socket first; empty if the kinds are not two such halves.

    >>> halves({"cpus": 8, "threads_per_core": 1, "slow_cpus": "0-3"})
    {'slow': '0-3', 'fast': '4-7'}
    >>> halves({"cpus": 6, "threads_per_core": 1, "slow_cpus": "0-3"})
    {}
    """
    cpus = hardware["cpus"]
    slow = expand(hardware.get("slow_cpus") or "")
    first, second = set(range(cpus // 2)), set(range(cpus // 2, cpus))
    # Slurm itself leaves out the slow cores of Intel.
    if cpus % 2 or hardware["threads_per_core"] != 1 or hardware.get("core_types") or slow not in (first, second):
        return {}
    kinds = ("slow", "fast") if slow == first else ("fast", "slow")
    return dict(zip(kinds, (compress(first), compress(second)), strict=True))


def node_keys(hardware: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a node's line that offer its two kinds of cores; empty without such halves."""
    kinds = halves(hardware)
    if not kinds:
        return {}
    half = hardware["cpus"] // 2
    shape = {"Boards": 1, "SocketsPerBoard": 2, "CoresPerSocket": half, "ThreadsPerCore": 1, "CPUs": hardware["cpus"]}
    return shape | {"Gres": ",".join(f"{NAME}:{kind}:{half}" for kind in kinds)}


def enforced(hardware: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> bool:
    """Say whether Slurm on every measured node can bind jobs to the cores of their GRES."""
    return all(number(str(hardware[name].get("slurm"))) >= ENFORCED for name in names if name in hardware)


def gres_lines(hardware: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> str:
    """Return the lines of gres.conf(5) that define the cores of each kind.

    Slurm reserves the cores of a GRES only if it has files. These are not device files; the only effect is an error in
    slurmd's log.
    """
    return "\n".join(
        f"NodeName={name} Name={NAME} Type={kind} File=/sys/devices/system/cpu/cpu[{cpus}] Cores={cpus}"
        for name in names
        if name in hardware
        for kind, cpus in halves(hardware[name]).items()
    )
