# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The SlurmdParameters that the nodes of a cluster need: one line of slurm.conf that every slurmd reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.hardware import core_gres
from ansible.module_utils.slurmstead.hardware.node_lines import is_asymmetric, was_measured

Hardware = Mapping[str, Any]


def _numa_sockets(hwloc: Mapping[str, Any]) -> int | None:
    """Return the sockets that slurmd counts with numa_node_as_socket; None if unknown.

    On an RK3588 with three packages it is the machine, or the L3 cache where hwloc shows one for all cores.
    Groups can be nested: slurmd counts those of one level, and exits if there are several levels.
    """
    by_type = {"Machine": 1, "Package": hwloc.get("packages"), "L3Cache": hwloc.get("l3_caches")}
    return by_type.get(str(hwloc.get("numa_parent")))


def _l3_sockets(hwloc: Mapping[str, Any]) -> int | None:
    """Return the sockets that slurmd counts with l3cache_as_socket; None if cores would be in no socket."""
    return hwloc.get("l3_caches") if hwloc.get("l3_cores") == hwloc.get("cores") else None


WORDS: Mapping[str, Callable[[Mapping[str, Any]], int | None]] = {
    "numa_node_as_socket": _numa_sockets,
    "l3cache_as_socket": _l3_sockets,
}
"""Parameters that make slurmd count other objects as sockets, the better one first; only one can be set."""


def _makes_even(hardware: Hardware, word: str) -> bool:
    """Say whether a word makes slurmd see an asymmetric node as in its line: one socket with all CPUs."""
    hwloc = hardware.get("hwloc") or {}
    return WORDS[word](hwloc) == 1 and hwloc.get("cores") == hwloc.get("pus") == hardware["cpus"]


def _keeps(hardware: Hardware, word: str) -> bool:
    """Say whether a word leaves the sockets of a symmetric node as they are."""
    if word == "numa_node_as_socket" and not conf_versions.known(hardware.get("slurm")).sockets_by_numa:
        return True
    hwloc = hardware.get("hwloc")
    if hwloc:
        # Without packages slurmd counts one socket.
        return WORDS[word](hwloc) == max(1, int(hwloc["packages"]))
    # A record of an older Slurmstead: one package with one NUMA node is one socket either way.
    return word == "numa_node_as_socket" and hardware["sockets"] == 1 and hardware.get("numa_nodes", 1) in (1, None)


def slurmd_parameters(
    hardware: Mapping[str, Hardware],
    names: Iterable[str],
    config_overrides: bool | None = None,
    by_kind: bool = False,
) -> tuple[list[str], list[str]]:
    """Return the words of SlurmdParameters that the nodes need, and warnings for the operator.

    `config_overrides` makes Slurm trust the lines, because the line of an asymmetric node differs from its hardware. It
    is added if a node is asymmetric, or if kinds of cores are declared as sockets (`by_kind`); True or False overrides
    that.

    From 23.11 on, task/affinity binds jobs by the sockets and cores that slurmd counts: on an RK3588 with three
    packages 3 x 2 of 8, so that jobs share CPUs or fail. A word that makes slurmd count another object as a socket
    fixes it (also on 22.05, where no error is logged). Such a word applies to all nodes. On a host with several NUMA
    nodes per package it would create sockets that differ from its line: slurmd uses them or logs errors, and jobs that
    request sockets get wrong ones. So if the word changes any symmetric node, it is left out with a warning: the
    operator can remove task/affinity, or choose.
    """
    measured = {name: hardware[name] for name in names if was_measured(hardware.get(name))}
    uneven = {name: node for name, node in measured.items() if is_asymmetric(node)}
    even = {name: node for name, node in measured.items() if name not in uneven}
    differ = bool(uneven) or (by_kind and any(core_gres.halves(node) for node in measured.values()))
    words = ["config_overrides"] if (differ if config_overrides is None else config_overrides) else []
    affected = {name: node for name, node in uneven.items() if conf_versions.known(node.get("slurm")).sockets_by_numa}
    if not affected:
        return words, []
    fitting = [word for word in WORDS if all(_makes_even(node, word) for node in affected.values())]
    disturbed = {word: [name for name, node in even.items() if not _keeps(node, word)] for word in fitting}
    chosen = next((word for word in fitting if not disturbed[word]), None)
    if chosen:
        return [*words, chosen], []
    bound = [name for name, node in affected.items() if conf_versions.known(node.get("slurm")).binds_by_hardware]
    return words, [_warning(bound, disturbed)] if bound else []


def _warning(bound: list[str], disturbed: Mapping[str, list[str]]) -> str:
    reason = "hwloc shows no object there that contains all CPUs, to count as one socket"
    if disturbed:
        word, others = next(iter(disturbed.items()))
        reason = f"SlurmdParameters={word} would fix it, but change the sockets of {', '.join(others)}"
    return (
        f"{', '.join(bound)}: task/affinity would bind jobs to wrong CPUs, because packages differ in size; {reason}. "
        "Set TaskPlugin: task/cgroup in slurm_config, or SlurmdParameters if you know better."
    )
