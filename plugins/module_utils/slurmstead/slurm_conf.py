# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The text of slurm.conf(5): pure functions from measured and declared values to lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MEMORY_SHARE = 0.95
"""Part of the measured memory for jobs: it shrinks with kernels and firmware, and a node below its line is drained."""

ARRANGEMENT = ("Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")
"""Keys of a node's line whose product is its number of CPUs; what a line leaves out is 1."""


class NodeError(ValueError):
    """A node that cannot be described as declared; the text names both values."""


def key_value(key: str, value: Any) -> str:
    """Return one `Key=Value`.

    >>> key_value("Features", ["arm64", "rk3588"])
    'Features=arm64,rk3588'
    >>> key_value("Default", True)
    'Default=YES'
    """
    if isinstance(value, bool):
        value = "YES" if value else "NO"
    elif isinstance(value, (list, tuple)):
        value = ",".join(str(item) for item in value)
    elif isinstance(value, str) and " " in value:
        value = f'"{value}"'
    return f"{key}={value}"


def without_null(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values whose keys a person did not delete with null."""
    return {key: value for key, value in values.items() if value is not None}


def slurm_keys(values: Mapping[str, Any]) -> str:
    """Return keys one to a line, sorted; a null value leaves its key out.

    >>> print(slurm_keys({"SlurmUser": "slurm", "AuthType": "auth/munge", "Epilog": None}))
    AuthType=auth/munge
    SlurmUser=slurm
    """
    return "\n".join(key_value(key, value) for key, value in sorted(without_null(values).items()))


def slurm_lines(sections: Mapping[str, Mapping[str, Any] | None], first_key: str) -> str:
    """Return one line for each section, such as a partition, with its name under `first_key`.

    `DEFAULT` comes first, because Slurm applies it to the lines below it only.

    >>> print(slurm_lines({"main": {"Nodes": "ALL", "Default": True}}, "PartitionName"))
    PartitionName=main Default=YES Nodes=ALL
    """
    lines = []
    for name, values in sorted(sections.items(), key=lambda section: (section[0] != "DEFAULT", section[0])):
        keys = sorted(without_null(values or {}).items())
        lines.append(" ".join([f"{first_key}={name}", *(key_value(key, value) for key, value in keys)]))
    return "\n".join(lines)


def node_shape(hardware: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that say how many CPUs a node has and how they are arranged.

    Sockets x cores x threads that do not make up the CPUs, as on boards with unequal clusters, become one socket that
    holds every CPU as a core: Slurm would otherwise lose what does not divide. So do declared CPUs that are not the
    number of sockets, of cores or of threads: Slurm would set them back to the measured number (`CPUs` in
    slurm.conf(5)). A declared arrangement has as many CPUs as it makes, unless CPUs are declared as well.
    """
    cpus = hardware["cpus"]
    sockets, cores, threads = hardware["sockets"], hardware["cores_per_socket"], hardware["threads_per_core"]
    if sockets * cores * threads != cpus:
        sockets, cores, threads = 1, cpus, 1
    own = {key: declared[key] for key in (*ARRANGEMENT, "CPUs") if declared.get(key) is not None}
    if own.keys() == {"CPUs"} and int(own["CPUs"]) not in (sockets, sockets * cores, sockets * cores * threads):
        sockets, cores, threads = 1, own["CPUs"], 1
    shape = {"Boards": 1, "SocketsPerBoard": sockets, "CoresPerSocket": cores, "ThreadsPerCore": threads}
    if "Sockets" in own:
        # slurm.conf(5): the one excludes the other.
        del shape["SocketsPerBoard"], shape["Boards"]
    return shape | own if own else shape | {"CPUs": cpus}


def node_keys(hardware: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a node's line from what was measured and what a person declares, which wins.

    `hardware` has `cpus`, `sockets`, `cores_per_socket`, `threads_per_core` (counts) and `memory` (MiB).

    Raises NodeError where the declared memory is more than there is: Slurm would take such a node out.
    """
    memory = declared.get("RealMemory")
    if memory is not None and int(memory) > hardware["memory"]:
        raise NodeError(
            f"RealMemory={memory} is declared, but the node has {hardware['memory']} MiB; declare less, or nothing"
        )
    measured = {"RealMemory": int(hardware["memory"] * MEMORY_SHARE)}
    return node_shape(hardware, declared) | measured | dict(declared)


def node_sections(
    hardware: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    declared: Mapping[str, Mapping[str, Any] | None],
) -> dict[str, dict[str, Any]]:
    """Return the keys by name of each node that was measured or that is declared with its own CPUs and memory.

    Raises NodeError, which names the node.
    """
    sections = {}
    for name in addresses:
        own = declared.get(name) or {}
        if name in hardware:
            try:
                sections[name] = node_keys(hardware[name], own)
            except NodeError as error:
                raise NodeError(f"slurm_nodes: {name}: {error}") from None
        elif {"CPUs", "RealMemory"} <= set(own):
            sections[name] = dict(own)
    return sections


def node_lines(
    hardware: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    declared: Mapping[str, Mapping[str, Any] | None],
) -> str:
    """Return a `NodeName` line for each node of `node_sections`."""
    sections = node_sections(hardware, addresses, declared)
    return slurm_lines({name: {"NodeAddr": addresses[name]} | keys for name, keys in sections.items()}, "NodeName")


def memory_per_cpu(
    hardware: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    declared: Mapping[str, Mapping[str, Any] | None],
) -> int | None:
    """Return the memory in MiB that comes with a CPU unless a job asks: the least that any node has for one of its own.

    At least 1, because Slurm takes 0 for all of the node's memory; None where no node says both numbers.
    """
    sections = node_sections(hardware, addresses, declared).values()
    shares = [int(keys["RealMemory"]) // cpu_count(keys) for keys in sections if keys.get("RealMemory")]
    return max(1, min(shares)) if shares else None


def cpu_count(keys: Mapping[str, Any]) -> int:
    """Return the number of CPUs that a node's line gives it.

    >>> cpu_count({"SocketsPerBoard": 2, "CoresPerSocket": 4})
    8
    """
    return int(keys.get("CPUs") or math.prod(int(keys[key]) for key in ARRANGEMENT if keys.get(key)))
