# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Lines of nodes: pure functions from measured and declared values to keys of slurm.conf(5).

`hardware` is slurm_hardware's record of a node: counts in `cpus`, `sockets`, `cores_per_socket` and `threads_per_core`,
MiB in `memory`, and optional values. Measured values are by name of node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.conf.text import slurm_lines
from ansible.module_utils.slurmstead.hardware import core_gres
from ansible.module_utils.slurmstead.hardware.measure import expand

MEMORY_SHARE = 0.95
"""Fraction of the memory for jobs: new kernels leave less, and Slurm drains a node with less than its line says."""

ARRANGEMENT = ("Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")
"""Keys of a node's line whose product is its number of CPUs; a missing key counts as 1."""

ALIASES = {"Feature": "Features", "Procs": "CPUs"}
"""Older names of keys; a line with both names has the key twice."""

ARCHITECTURES = {
    "aarch64": "arm64",
    "armv7l": "armhf",
    "i686": "i386",
    "ppc64le": "ppc64el",
    "x86_64": "amd64",
}
"""Debian's architecture name by that of uname(2), if they differ."""

FEATURE = re.compile(r"[A-Za-z0-9_.:=+-]+")
"""Characters that `--constraint` of sbatch(1) would read as operators."""

RESERVED = ("CoreSpecCount", "CPUSpecList", "CpuSpecList")
"""Keys that keep cores for the system: their number, or which ones."""

LESS = "declare less, or nothing"


class NodeError(ValueError):
    """A node that cannot be described as declared; the text names both values."""


def seen_by_slurmd(hardware: Mapping[str, Any], version: str | None) -> tuple[int, int, int, int]:
    """Return the numbers of CPUs, sockets, cores per socket and threads per core that slurmd uses.

    From 23.02 on, slurmd leaves out the slow cores of Intel, so a node's line must not count them either. On other CPUs
    it counts all that are online. Without a version, assumes the newest: a line with fewer CPUs suits every version.
    """
    types = hardware.get("core_types") or {}
    fast = hardware.get("fast_cores") or 0
    cpus = len(expand(types.get("core", "")))
    if "atom" in types and fast and cpus % fast == 0 and conf_versions.known(version).hides_slow_cores:
        return cpus, 1, fast, cpus // fast
    return hardware["cpus"], hardware["sockets"], hardware["cores_per_socket"], hardware["threads_per_core"]


def is_asymmetric(hardware: Mapping[str, Any]) -> bool:
    """Say whether a node's packages or cores differ in size: sockets x cores x threads is not its number of CPUs."""
    cpus, *sizes = seen_by_slurmd(hardware, hardware.get("slurm"))
    return math.prod(sizes) != cpus


def node_shape(hardware: Mapping[str, Any], declared: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    """Return the keys for the number and arrangement of a node's CPUs.

    If sockets x cores x threads does not equal the CPUs, as on boards with unequal clusters, the node becomes one
    socket with every CPU as a core: Slurm would otherwise lose the remainder. The same holds for declared CPUs that are
    not the number of sockets, cores or threads: Slurm would reset them to the measured number (`CPUs` in
    slurm.conf(5)). A declared arrangement determines the CPUs, unless CPUs are declared too.

    Raises NodeError if the declared values contradict each other or exceed the hardware: with config_overrides Slurm
    would trust them.
    """
    cpus, sockets, cores, threads = seen_by_slurmd(hardware, version)
    if sockets * cores * threads != cpus:
        sockets, cores, threads = 1, cpus, 1
    own = {key: _count(key, declared[key]) for key in (*ARRANGEMENT, "CPUs") if declared.get(key) is not None}
    if own.keys() == {"CPUs"} and own["CPUs"] not in (sockets, sockets * cores, sockets * cores * threads):
        sockets, cores, threads = 1, own["CPUs"], 1
    shape = {"Boards": 1, "SocketsPerBoard": sockets, "CoresPerSocket": cores, "ThreadsPerCore": threads}
    if "Sockets" in own:
        # slurm.conf(5): these keys exclude each other.
        del shape["SocketsPerBoard"], shape["Boards"]
    shape |= own if own else {"CPUs": cpus}
    _refuse(shape, own, hardware["cpus"])
    return shape


def keep_cores(
    declared: Mapping[str, Mapping[str, Any] | None], cores: Mapping[str, int]
) -> dict[str, Mapping[str, Any] | None]:
    """Return the declared keys by node, with the number of cores that are kept for the system, unless they say which.

    >>> keep_cores({"node1": {"Weight": 5}, "node2": {"CPUSpecList": "0"}}, {"node1": 1, "node2": 1})
    {'node1': {'CoreSpecCount': 1, 'Weight': 5}, 'node2': {'CPUSpecList': '0'}}
    """
    found = dict(declared)
    for name, number in cores.items():
        own = declared.get(name) or {}
        if not {*RESERVED} & own.keys():
            found[name] = {"CoreSpecCount": number, **own}
    return found


def _refuse_reserved(keys: Mapping[str, Any]) -> None:
    """Raise NodeError if no core is left for jobs: Slurm would reset the number to 1, and only log it."""
    if keys.get("CoreSpecCount") in (None, 0, "0"):
        return
    count = _count("CoreSpecCount", keys["CoreSpecCount"])
    arrangement = [_count(key, keys[key]) for key in ARRANGEMENT[:-1] if keys.get(key) is not None]
    if count >= math.prod(arrangement):
        cores = math.prod(arrangement)
        raise NodeError(f"CoreSpecCount={count} (slurm_system_cores) keeps all {cores} cores for the system; {LESS}")


def _count(key: str, value: Any) -> int:
    if not str(value).isdecimal() or int(value) == 0:
        raise NodeError(f"{key}={value} is declared; write a whole number from 1 on")
    return int(value)


def _refuse(shape: Mapping[str, int], own: Mapping[str, int], measured: int) -> None:
    """Raise NodeError if declared CPUs or a declared arrangement are impossible; `measured` is the number of CPUs."""
    sizes = {key: shape[key] for key in ARRANGEMENT if key in shape and (key != "Boards" or key in own)}
    arrangement = " ".join(f"{key}={value}" for key, value in sizes.items())
    threads = math.prod(sizes.values())
    cores = threads // shape["ThreadsPerCore"]
    cpus = own.get("CPUs")
    if cpus is not None and cpus > measured:
        raise NodeError(f"CPUs={cpus} is declared, but the node has {measured} CPUs; {LESS}")
    if own.keys() - {"CPUs"} and threads > measured:
        raise NodeError(f"{arrangement} is declared, which makes {threads} CPUs, but the node has {measured}; {LESS}")
    if own.keys() > {"CPUs"} and cpus not in (threads, cores, cores // shape["CoresPerSocket"]):
        raise NodeError(
            f"CPUs={cpus} is declared, but {arrangement} makes {threads} CPUs; declare one of them, or equal numbers"
        )


def measured_features(hardware: Mapping[str, Any], version: str | None) -> list[str]:
    """Return the measured features of a node: architecture, chip, fast and slow cores.

    Cores that slurmd leaves out are not listed.

    >>> cpus = {"cpus": 8, "sockets": 1, "cores_per_socket": 8, "threads_per_core": 1, "fast_cores": 4, "slow_cores": 4}
    >>> board = {"architecture": "aarch64", "compatible": ["turing,rk1", "rockchip,rk3588"]}
    >>> measured_features(cpus | board, None)
    ['arm64', 'rk3588', 'big4', 'little4']
    """
    architecture = hardware.get("architecture")
    features = [ARCHITECTURES.get(architecture, architecture)] if architecture else []
    # The names, each `vendor,name`, go from the board to its chip. linux,dummy-virt is a virtual machine.
    vendor, _, chip = (hardware.get("compatible") or [""])[-1].partition(",")
    if vendor != "linux":
        features.append(chip)
    all_seen = seen_by_slurmd(hardware, version)[0] == hardware["cpus"]
    if hardware.get("fast_cores") and hardware.get("slow_cores") and all_seen:
        features += [f"big{hardware['fast_cores']}", f"little{hardware['slow_cores']}"]
    return [str(feature) for feature in features if FEATURE.fullmatch(str(feature))]


def features(hardware: Mapping[str, Any], declared: Any, version: str | None) -> list[str]:
    """Return the measured and the declared features, each once. Raises NodeError for a name that jobs cannot write."""
    own = declared.split(",") if isinstance(declared, str) else declared or []
    names = [str(name).strip() for name in own]
    for name in names:
        if not FEATURE.fullmatch(name):
            raise NodeError(f"the feature {name!r} is declared; use letters, digits and . _ : = + - only")
    return list(dict.fromkeys([*measured_features(hardware, version), *names]))


def node_keys(
    hardware: Mapping[str, Any], declared: Mapping[str, Any], version: str | None = None, by_kind: bool = False
) -> dict[str, Any]:
    """Return the keys of a node's line from measured and declared values; declared ones override measured ones.

    `version` is Slurm's on this node; if None, the measured one. `by_kind` offers fast and slow cores as a GRES, if the
    node has halves of them and no other arrangement is declared. A null value leaves its key out.

    Raises NodeError if a declared value exceeds the hardware: Slurm would drain such a node.
    """
    own = {ALIASES.get(key, key): value for key, value in declared.items()}
    memory = own.get("RealMemory")
    if memory is not None and _count("RealMemory", memory) > hardware["memory"]:
        raise NodeError(f"RealMemory={memory} is declared, but the node has {hardware['memory']} MiB; {LESS}")
    version = version or hardware.get("slurm")
    keys = node_shape(hardware, own, version)
    if by_kind and not {*ARRANGEMENT, "CPUs"} & set(own):
        kinds = core_gres.node_keys(hardware)
        if kinds and own.get("Gres"):
            own["Gres"] = f"{own['Gres']},{kinds['Gres']}"
        keys |= kinds
    keys["RealMemory"] = int(hardware["memory"] * MEMORY_SHARE)
    keys |= own
    _refuse_reserved(keys)
    if "Features" not in own or own["Features"] is not None:
        keys["Features"] = features(hardware, own.get("Features"), version) or None
    return keys


def node_sections(
    hardware: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    declared: Mapping[str, Mapping[str, Any] | None],
    by_kind: bool = False,
) -> dict[str, dict[str, Any]]:
    """Return the keys of each node, by name, that was measured or is declared with its own CPUs and memory.

    Raises NodeError, which names the node.
    """
    sections = {}
    for name in addresses:
        own = declared.get(name) or {}
        if was_measured(hardware.get(name)):
            try:
                sections[name] = node_keys(hardware[name], own, by_kind=by_kind)
            except NodeError as error:
                raise NodeError(f"slurm_nodes: {name}: {error}") from None
        elif {"CPUs", "RealMemory"} <= set(own):
            sections[name] = dict(own)
    return sections


def was_measured(hardware: Mapping[str, Any] | None) -> bool:
    """Say whether enough is known of a node for a line of its own."""
    return bool(hardware and hardware.get("cpus") and hardware.get("memory"))


def node_lines(
    hardware: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    declared: Mapping[str, Mapping[str, Any] | None],
    by_kind: bool = False,
) -> str:
    """Return a `NodeName` line for each node of `node_sections`."""
    sections = node_sections(hardware, addresses, declared, by_kind)
    return slurm_lines({name: {"NodeAddr": addresses[name]} | keys for name, keys in sections.items()}, "NodeName")


def memory_per_cpu(
    hardware: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    declared: Mapping[str, Mapping[str, Any] | None],
) -> int | None:
    """Return the default memory in MiB per CPU of a job: the minimum over all nodes of their memory per CPU.

    At least 1, because 0 means all of the node's memory to Slurm; None if no node has both numbers.
    """
    sections = node_sections(hardware, addresses, declared).values()
    shares = [int(keys["RealMemory"]) // cpu_count(keys) for keys in sections if keys.get("RealMemory")]
    return max(1, min(shares)) if shares else None


def cpu_count(keys: Mapping[str, Any]) -> int:
    """Return the number of CPUs in a node's line.

    >>> cpu_count({"SocketsPerBoard": 2, "CoresPerSocket": 4})
    8
    """
    return int(keys.get("CPUs") or math.prod(int(keys[key]) for key in ARRANGEMENT if keys.get(key)))
