# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Mistakes that Slurm accepts silently, or reports only in its log: pure functions.

Each check yields the mistakes in its line. Mistakes that slurmctld itself refuses are left to the gate, unless it would
report them late or for another line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping

from ansible.module_utils.slurmstead.conf import finding as conf_finding
from ansible.module_utils.slurmstead.conf import lines as conf_lines
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf.finding import Finding
from ansible.module_utils.slurmstead.conf.lines import Pair
from ansible.module_utils.slurmstead.conf.model import Model, Section
from ansible.module_utils.slurmstead.slurm.hostlist import compress, expand

Files = Mapping[str, str]
Problem = tuple[int, str, str]
"""Line of slurm.conf, what is wrong, what to do."""

GRES_KEYS = frozenset(
    {
        *("autodetect", "cores", "count", "cpus", "file", "flags", "ignore", "links", "multiplefiles", "name"),
        *("nodename", "type"),
    }
)
"""Keys of gres.conf (_gres_options in src/interfaces/gres.c, in every supported version)."""


def lint(files: Files) -> list[Finding]:
    """Return the mistakes in a set of files."""
    model = conf_model.read(files.get("slurm.conf", ""))
    found = [
        conf_finding.at(files, "slurm.conf", line, what, advice)
        for check in CHECKS
        for line, what, advice in check(model)
    ]
    gres = files.get("gres.conf", "")
    return found + [conf_finding.at(files, "gres.conf", *problem) for problem in _gres_conf(model, gres)]


def warnings(files: Files) -> list[Finding]:
    """Return warnings: unusual settings that may be intended."""
    model = conf_model.read(files.get("slurm.conf", ""))
    if model.other or not model.partitions:
        return []
    used = {name for partition in model.partitions.values() for name in conf_model.members(model, partition)}
    idle = sorted(model.nodes.keys() - used)
    return [Finding(f"{compress(idle)} is in no partition: no job can run there", "slurm.conf")] if idle else []


def _includes(model: Model) -> Iterator[Problem]:
    for line in model.includes:
        yield line.number, "Include is not followed", "write what that file holds into this one"


def _host_lists(model: Model) -> Iterator[Problem]:
    for pair, why in model.unreadable:
        yield pair.line, why, "write names and ranges, as in node[1-4,7]"
    sets = {re.sub(r".*nodeset=(\S+).*", r"\1", text) for text in model.other.get("nodeset", ())}
    for partition in model.partitions.values():
        nodes = partition.get("nodes")
        if nodes is None or nodes.value.upper() in ("ALL", "(NULL)", ""):
            continue
        try:
            unknown = [name for name in expand(nodes.value) if name not in model.nodes and name not in sets]
        except ValueError as error:
            yield nodes.line, f"{nodes.key}: {error}", "write names and ranges, as in node[1-4,7]"
            continue
        if unknown:
            known = f"known nodes: {compress(model.nodes) or 'none'}"
            advice = f"{known}; a new worker has none until a run has measured it, so switch it on"
            yield nodes.line, f"{compress(unknown)} has no NodeName line", advice


def _repetitions(model: Model) -> Iterator[Problem]:
    for kind, first, later in model.repeated:
        what = later.key if kind == "key" else f"{kind} {later.value}"
        yield later.line, f"{what} appears twice, first on line {first.line}", "keep one of them"


def _partitions(model: Model) -> Iterator[Problem]:
    if not model.partitions:
        yield 0, "there is no partition, so no job can run", "write a PartitionName line"
    defaults = [
        (name, keys["default"])
        for name, keys in model.partitions.items()
        if "default" in keys and conf_model.normal("default", keys["default"].value) == "yes"
    ]
    for name, pair in defaults[1:]:
        yield pair.line, f"{name} and {defaults[0][0]} are both the default partition", "keep Default=YES in one"
    for keys in model.partitions.values():
        if "maxtime" in keys and "defaulttime" in keys and minutes(keys["defaulttime"]) > minutes(keys["maxtime"]):
            yield keys["defaulttime"].line, "DefaultTime is above MaxTime", "jobs without --time would never start"


def minutes(pair: Pair) -> float:
    """Return a time in minutes (slurm.conf(5), MaxTime); 0 if it is not a time, which the gate refuses.

    >>> [minutes(Pair("MaxTime", text, 1)) for text in ("1-02:00:00", "30", "1:30")]
    [1560.0, 30.0, 1.5]
    """
    if pair.value.upper() in ("INFINITE", "UNLIMITED", "-1"):
        return math.inf
    days, dash, rest = pair.value.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in [*parts, *([days] if dash else [])]):
        return 0
    units = [60.0, 1.0, 1 / 60] if dash or len(parts) == 3 else [1.0, 1 / 60]
    return int(days or 0) * 1440 + sum(int(part) * unit for part, unit in zip(parts, units, strict=False))


def _ports(model: Model) -> Iterator[Problem]:
    ports = {}
    for key, default in {"SlurmctldPort": 6817, "SlurmdPort": 6818}.items():
        pair = model.settings.get(key.lower())
        first, _, last = (pair.value if pair else str(default)).partition("-")
        numbers = [conf_model.number(text) for text in (first, last or first)]
        if pair and not all(number is not None and 0 < number < 65536 for number in numbers):
            yield pair.line, f"{key} is not a port", "use a number up to 65535"
        elif all(number is not None for number in numbers):
            ports[key] = range(int(first), int(last or first) + 1)
    if len(ports) == 2 and ports["SlurmdPort"][0] in ports["SlurmctldPort"]:
        pair = model.settings.get("slurmdport") or model.settings["slurmctldport"]
        yield pair.line, "slurmctld and slurmd have the same port", "give SlurmctldPort and SlurmdPort different ones"


def _nodes(model: Model) -> Iterator[Problem]:
    addresses: dict[tuple[str, str], str] = {}
    types = {word.strip() for word in model.value("GresTypes").split(",")}
    for name, keys in model.nodes.items():
        line = keys[""].line
        yield from _shape(name, keys, line)
        address = keys["nodeaddr"].value if "nodeaddr" in keys else name
        port = keys["port"].value if "port" in keys else ""
        other = addresses.setdefault((address, port), name)
        if other != name:
            yield line, f"NodeAddr={address} is that of {other} too", "give each node its own"
        for gres in keys["gres"].value.split(",") if "gres" in keys else ():
            kind = gres.partition(":")[0]
            if kind and kind not in types:
                yield (
                    line,
                    f"{kind} in Gres of {name} is not in GresTypes",
                    f"write GresTypes={kind}, or Slurm ignores it",
                )


def _shape(name: str, keys: Section, line: int) -> Iterator[Problem]:
    """If CPUs does not match the sockets, cores and threads, slurmctld changes it, and reports that only in its log."""
    numbers = {
        key: conf_model.number(keys[key].value)
        for key in ("cpus", "boards", "sockets", "corespersocket", "threadspercore")
        if key in keys
    }
    cpus = numbers.pop("cpus", None)
    if cpus is None or "corespersocket" not in numbers or any(number is None for number in numbers.values()):
        return
    # SocketsPerBoard is per board, Sockets is in total; with Sockets, Boards is 1.
    sockets = (numbers.get("sockets") or 1) * (numbers.get("boards") or 1)
    cores = sockets * (numbers["corespersocket"] or 1)
    threads = cores * (numbers.get("threadspercore") or 1)
    if cpus not in (sockets, cores, threads):
        yield line, f"CPUs={cpus} of {name}, but its sockets, cores and threads make {threads}", f"write CPUs={threads}"


def _gres_conf(model: Model, text: str) -> Iterator[Problem]:
    types = {word.strip() for word in model.value("GresTypes").split(",")}
    for line in conf_lines.parse(text):
        keys = {pair.name: pair for pair in line.pairs}
        if line.rest or line.include:
            yield line.number, f"`{line.rest or line.text}` is not Key=Value", "write one, or remove it"
        for pair in line.pairs:
            if pair.name not in GRES_KEYS:
                yield line.number, f"slurmd knows no key {pair.key} here", "its keys are in gres.conf(5)"
        if "name" in keys and keys["name"].value not in types:
            name = keys["name"].value
            yield (
                line.number,
                f"{name} is not in GresTypes",
                f"write GresTypes={name} in slurm.conf, or Slurm ignores it",
            )
        try:
            names = expand(keys["nodename"].value) if "nodename" in keys else []
        except ValueError as error:
            yield line.number, str(error), "write names and ranges, as in node[1-4,7]"
            continue
        unknown = [name for name in names if name not in model.nodes]
        if unknown:
            yield (
                line.number,
                f"{compress(unknown)} has no NodeName line in slurm.conf",
                "correct the name, or remove it",
            )


CHECKS: tuple[Callable[[Model], Iterator[Problem]], ...] = (
    _includes,
    _host_lists,
    _repetitions,
    _partitions,
    _ports,
    _nodes,
)
