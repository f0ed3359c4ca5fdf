# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The text of slurm.conf(5): pure functions from measured and declared values to lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MEMORY_SHARE = 0.95
"""Part of the measured memory that jobs may use: it shrinks with kernels and firmware, and a node below its line is drained."""


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


def slurm_lines(sections: Mapping[str, Mapping[str, Any]], first_key: str) -> str:
    """Return one line for each section, such as a partition, with its name under `first_key`.

    >>> print(slurm_lines({"main": {"Nodes": "ALL", "Default": True}}, "PartitionName"))
    PartitionName=main Default=YES Nodes=ALL
    """
    lines = []
    for name, values in sorted(sections.items()):
        keys = sorted(without_null(values).items())
        lines.append(" ".join([f"{first_key}={name}", *(key_value(key, value) for key, value in keys)]))
    return "\n".join(lines)


def node_keys(hardware: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a node's line from what was measured and what a person declares, which wins.

    `hardware` has `cpus`, `sockets`, `cores_per_socket`, `threads_per_core` (counts) and `memory` (MiB). Sockets x cores x
    threads that do not make up the CPUs, as on boards with unequal clusters, become one socket that holds every CPU as a core:
    Slurm would otherwise lose what does not divide (facts in docs/slurm.md).

    Raises NodeError where the declared memory is more than there is: Slurm would take such a node out.
    """
    shape = (hardware["sockets"], hardware["cores_per_socket"], hardware["threads_per_core"])
    sockets, cores, threads = shape if shape[0] * shape[1] * shape[2] == hardware["cpus"] else (1, hardware["cpus"], 1)
    memory = declared.get("RealMemory")
    if memory is not None and int(memory) > hardware["memory"]:
        raise NodeError(
            f"RealMemory={memory} is declared, but the node has {hardware['memory']} MiB; declare less, or nothing"
        )
    measured = {
        "Boards": 1,
        "CPUs": hardware["cpus"],
        "CoresPerSocket": cores,
        "RealMemory": int(hardware["memory"] * MEMORY_SHARE),
        "SocketsPerBoard": sockets,
        "ThreadsPerCore": threads,
    }
    return measured | dict(declared)


def node_lines(
    hardware: Mapping[str, Mapping[str, Any]], addresses: Mapping[str, str], declared: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return a `NodeName` line for each node that was measured or that is declared with its own CPUs and memory."""
    sections = {}
    for name, address in addresses.items():
        own = declared.get(name, {})
        if name in hardware:
            try:
                keys = node_keys(hardware[name], own)
            except NodeError as error:
                raise NodeError(f"slurm_nodes: {name}: {error}") from None
        elif {"CPUs", "RealMemory"} <= set(own):
            keys = dict(own)
        else:
            continue
        sections[name] = {"NodeAddr": address} | keys
    return slurm_lines(sections, "NodeName")


def memory_per_cpu(
    hardware: Mapping[str, Mapping[str, Any]], addresses: Mapping[str, str], declared: Mapping[str, Mapping[str, Any]]
) -> int | None:
    """Return the memory in MiB that a job gets for each CPU unless it asks: the least that any node has for one of its CPUs."""
    shares = []
    for name in addresses:
        if name in hardware:
            keys = node_keys(hardware[name], declared.get(name, {}))
            shares.append(int(keys["RealMemory"]) // int(keys["CPUs"]))
    return min(shares, default=None)
