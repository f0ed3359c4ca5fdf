# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Compares measured values, declared values and the next slurm.conf, and marks what the operator should check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.conf.text import key_value, slurm_lines, without_null
from ansible.module_utils.slurmstead.hardware import record as hardware_record
from ansible.module_utils.slurmstead.hardware.measure import compress, expand
from ansible.module_utils.slurmstead.hardware.node_lines import (
    ALIASES,
    NodeError,
    cpu_count,
    is_asymmetric,
    measured_features,
    node_keys,
    seen_by_slurmd,
    was_measured,
)
from ansible.module_utils.slurmstead.hardware.slurmd_parameters import slurmd_parameters

Values = Mapping[str, Any]
Note = dict[str, Any]
"""`text`, and `look`: whether the operator should check it."""


def look(text: str) -> Note:
    """Return a note that the operator should check."""
    return {"look": True, "text": text}


def information(text: str) -> Note:
    """Return a note that only informs."""
    return {"look": False, "text": text}


def slurmd_shape(says: Mapping[str, int]) -> tuple[int, int, int]:
    """Return sockets, cores and threads from the output of `slurmd -C`.

    If hwloc reports groups and no package, slurmd counts the groups as boards without sockets.

    >>> slurmd_shape({"Boards": 3, "SocketsPerBoard": 0, "CoresPerSocket": 8, "ThreadsPerCore": 1})
    (1, 8, 1)
    """
    sockets = says.get("SocketsPerBoard", 1)
    boards = says.get("Boards", 1) if sockets else 1
    return max(1, boards * sockets), max(1, says.get("CoresPerSocket", 1)), max(1, says.get("ThreadsPerCore", 1))


def node_report(name: str, address: str, hardware: Values, declared: Values, known: Values) -> dict[str, Any]:
    """Return `line`, `rows` and `notes` of a node, with the values from which they are made.

    `known` is its record. `line` is None if the declared values are impossible.
    """
    own = {ALIASES.get(key, key): value for key, value in declared.items()}
    report: dict[str, Any] = {"measured": dict(hardware), "declared": own, "line": None, "rows": [], "notes": []}
    if not was_measured(hardware):
        return report | {"notes": [look("neither its CPUs nor its memory could be read")]}
    keys: dict[str, Any] = {}
    try:
        keys = without_null(node_keys(hardware, own))
    except NodeError as error:
        report["notes"].append(look(f"slurm_nodes: {error}"))
    else:
        report["line"] = slurm_lines({name: {"NodeAddr": address} | keys}, "NodeName")
        report["notes"] += _slurmd_notes(hardware, keys)
    report["rows"] = list(_rows(hardware, own, keys))
    report["notes"] += [*_memory_notes(known, hardware), *_cgroup_notes(hardware), *_cpu_notes(hardware, own)]
    return report


def _rows(hardware: Values, own: Values, keys: Values) -> Iterator[dict[str, Any]]:
    measured = {
        "CPUs": hardware["cpus"],
        "SocketsPerBoard": hardware["sockets"],
        "CoresPerSocket": hardware["cores_per_socket"],
        "ThreadsPerCore": hardware["threads_per_core"],
        "RealMemory": hardware["memory"],
        "Features": measured_features(hardware, hardware.get("slurm")),
    }
    for key in [*measured, *sorted((own.keys() | keys.keys()) - measured.keys() - {"Boards"})]:
        values = {"measured": measured.get(key), "declared": own.get(key), "slurm_conf": keys.get(key)}
        yield {"key": key} | {
            column: None if value is None else key_value("", value)[1:] for column, value in values.items()
        }


def _slurmd_notes(hardware: Values, keys: Values) -> Iterator[Note]:
    says = hardware.get("slurmd")
    if not says:
        return
    sockets, cores, threads = slurmd_shape(says)
    cpus, memory = says.get("CPUs"), says.get("RealMemory")
    if cpus and cpus < cpu_count(keys):
        yield look(f"slurmd -C sees {cpus} CPUs, slurm.conf will say {cpu_count(keys)}: declare CPUs={cpus}")
    elif cpus and sockets * cores * threads != cpus:
        yield information(f"slurmd -C reports {sockets} x {cores} x {threads}, which does not make its {cpus} CPUs")
    if memory and int(keys.get("RealMemory", 0)) > memory:
        yield look(f"slurmd -C sees {memory} MiB, slurm.conf will say {keys['RealMemory']}: declare less RealMemory")


def _memory_notes(known: Values, hardware: Values) -> Iterator[Note]:
    if not known:
        yield information("not recorded yet; site.yml will measure and record it")
    for change in hardware_record.changes(known, hardware_record.remembered(known, hardware)):
        yield look(f"{change} since site.yml measured it: run it again, or fix the machine")


def _cgroup_notes(hardware: Values) -> Iterator[Note]:
    mode, version = (hardware.get("cgroup") or {}).get("mode"), hardware.get("slurm")
    if version is None:
        yield information("slurmd is not installed")
        return
    has_v2 = conf_versions.known(version).plugins["cgroup/v2"]
    if mode == "hybrid" and has_v2:
        yield look(f"both cgroup versions are mounted, which cgroup/v2 of slurmd {version} refuses")
    if mode == "v2" and not has_v2:
        yield look(f"the machine uses cgroup version 2, which slurmd {version} does not support: boot with version 1")


def _cpu_notes(hardware: Values, own: Values) -> Iterator[Note]:
    if is_asymmetric(hardware):
        yield information("packages or cores differ in size: one socket holds all CPUs")
    types = hardware.get("core_types") or {}
    if seen_by_slurmd(hardware, hardware.get("slurm"))[0] < hardware["cpus"]:
        cpus = hardware["cpus"]
        yield information(
            f"slurmd ignores the slow cores, CPUs {types['atom']}; to use them, set CPUs={cpus} in slurm_nodes and "
            "allow_ecores in SlurmdParameters"
        )
    if hardware.get("offline_cpus"):
        yield information(f"CPUs {hardware['offline_cpus']} are switched off")
    if hardware.get("isolated_cpus"):
        yield information(f"CPUs {compress(expand(hardware['isolated_cpus']))} are isolated; Slurm gives them to jobs")
    for key, count in (("CPUs", hardware["cpus"]), ("RealMemory", hardware["memory"])):
        if str(own.get(key)).isdecimal() and int(own[key]) < count:
            yield information(f"{key}={own[key]} is declared of {count}")


def cluster_report(
    hardware: Mapping[str, Values],
    known: Mapping[str, Values],
    addresses: Mapping[str, str],
    declared: Mapping[str, Values | None],
    config: Values,
    config_overrides: bool | None,
) -> dict[str, Any]:
    """Return the reports of the measured nodes, and the notes about all of them.

    The records of nodes that did not answer count for `parameters`, the SlurmdParameters of slurm.conf.
    """
    words, warnings = slurmd_parameters({**known, **hardware}, addresses, config_overrides)
    own = {"SlurmdParameters", "TaskPlugin"} & config.keys()
    return {
        "nodes": {
            name: node_report(name, addresses.get(name, name), values, declared.get(name) or {}, known.get(name) or {})
            for name, values in hardware.items()
        },
        "parameters": config["SlurmdParameters"] if "SlurmdParameters" in config else ",".join(words) or None,
        "notes": [look(warning) for warning in warnings if not own],
    }


def measured_on(names: Iterable[str], hostvars: Mapping[str, Values], result: str) -> dict[str, Values]:
    """Return slurm_hardware's measurements, by name of the nodes that registered them as `result`."""
    return {name: hostvars[name][result]["hardware"] for name in names if "hardware" in hostvars[name].get(result, {})}
