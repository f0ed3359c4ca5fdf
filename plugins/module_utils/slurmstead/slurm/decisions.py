# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What an administrator set with `scontrol update` and `scontrol create partition`; each reload of the files undoes it.

Measured on 22.05.8 and 24.11.5: `scontrol reconfigure` and a restart of slurmctld give partitions, and the features and
weights of nodes, the values of slurm.conf, and forget partitions that it does not have. Drains and comments of nodes
stay. Pure functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.slurmstead.slurm.hostlist import compress

PARTITION = (
    *("AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "Alternate", "CpuBind", "Default", "DefaultTime"),
    *("DefMemPerCPU", "DefMemPerNode", "DenyAccounts", "DenyQos", "DisableRootJobs", "ExclusiveTopo", "ExclusiveUser"),
    *("GraceTime", "Hidden", "JobDefaults", "LLN", "MaxCPUsPerNode", "MaxCPUsPerSocket", "MaxMemPerCPU"),
    *("MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes", "Nodes", "OverSubscribe", "OverTimeLimit", "PreemptMode"),
    *("PriorityJobFactor", "PriorityTier", "QoS", "ReqResv", "RootOnly", "State", "TRESBillingWeights"),
)
"""Keys that `scontrol show partition` prints and `scontrol update` takes (scontrol(1), 21.08 to 24.11).

24.11 also takes PowerDownOnIdle, but does not show it.
"""

NODE = ("AvailableFeatures", "ActiveFeatures", "CpuBind", "Weight")
"""The same for a node, in the order in which they can be set."""

KEYS = {"PartitionName": PARTITION, "NodeName": NODE}
SHOW = tuple(("scontrol", "--oneliner", "--all", "show", kind) for kind in ("partition", "node"))
"""Commands whose output `read` takes."""

EMPTY = ("(null)", "N/A")
"""Shown instead of no value."""

UNSET = (*EMPTY, "NONE", "UNLIMITED")
"""Values that a new partition has anyway."""

Shown = Mapping[str, Mapping[str, str]]
"""The keys of each record, such as `PartitionName=main`, by its name."""

Note = dict[str, dict[str, Any]]
"""`changed`: for each record and key, the value of the files and the administrator's. `created`: see Shown."""


def read(text: str) -> Shown:
    """Return the partitions and nodes in the output of SHOW.

    >>> read("PartitionName=main State=UP TotalCPUs=8\\nNodeName=n1 OS=Linux 6 Weight=1 Reason=a Weight=2")
    {'PartitionName=main': {'State': 'UP'}, 'NodeName=n1': {'Weight': '1'}}
    """
    found = {}
    for line in text.splitlines():
        name, *words = line.split() or [""]
        # A node's free texts come after its other fields.
        fields = {key: value for key, equals, value in (word.partition("=") for word in reversed(words)) if equals}
        if keys := KEYS.get(name.partition("=")[0]):
            found[name] = {key: fields[key] for key in keys if key in fields}
    return found


def made(live: Shown, loaded: Shown) -> Note:
    """Return where slurmctld's values differ from those that it loads from its files; empty if nowhere.

    >>> made({"PartitionName=a": {"State": "DOWN"}, "PartitionName=b": {}}, {"PartitionName=a": {"State": "UP"}})
    {'changed': {'PartitionName=a': {'State': ['UP', 'DOWN']}}, 'created': {'PartitionName=b': {}}}
    """
    changed = {
        name: {key: [loaded[name].get(key, ""), value] for key, value in keys.items() if loaded[name].get(key) != value}
        for name, keys in live.items()
        if name in loaded
    }
    changed = {name: keys for name, keys in changed.items() if keys}
    created = {name: dict(keys) for name, keys in live.items() if name not in loaded and name.startswith("Partition")}
    return {"changed": changed, "created": created} if changed or created else {}


def commands(note: Note, live: Shown) -> tuple[list[list[str]], list[str]]:
    """Return the commands that make the decisions again, and a line for each that is not made again.

    A value of the files that has changed since wins, because the inventory has changed that key.

    >>> note = {"changed": {"PartitionName=a": {"State": ["UP", "DOWN"], "MaxTime": ["1", "2"]}}, "created": {}}
    >>> commands(note, {"PartitionName=a": {"State": "UP", "MaxTime": "3"}})[0]
    [['scontrol', 'update', 'PartitionName=a', 'State=DOWN']]
    """
    alike, lines = defaultdict(list), []
    for name, keys in note.get("changed", {}).items():
        wanted = []
        for key, (before, value) in keys.items():
            now = live.get(name, {}).get(key, "")
            if name not in live:
                lines.append(f"{name}: {key}={value} was set at run time, and the inventory no longer has it")
                break
            if now == before:
                wanted.append(f"{key}={'' if value in EMPTY else value}")
            elif now != value:
                lines.append(f"{name}: {key}={value} was set at run time, and the inventory now says {now}")
        kind, _, which = name.partition("=")
        # A partition by itself; nodes with the same values together.
        alike[kind, "" if kind == "NodeName" else which, tuple(wanted)].append(which)
    found = [
        ["scontrol", "update", f"{kind}={compress(names) if kind == 'NodeName' else names[0]}", *wanted]
        for (kind, _, wanted), names in alike.items()
        if wanted
    ]
    found += [
        ["scontrol", "create", name, *(f"{key}={value}" for key, value in keys.items() if value not in UNSET)]
        for name, keys in note.get("created", {}).items()
        if name not in live
    ]
    return found, lines


def nodes(note: Note, live: Shown) -> str:
    """Return the nodes of all partitions with decisions, as a host list; otherwise empty.

    >>> nodes({"changed": {"PartitionName=a": {"Nodes": ["n[1-2]", "n1"]}}}, {"PartitionName=a": {"Nodes": "n1"}})
    'n1,n[1-2]'
    """
    found = [live.get(name, {}).get("Nodes", "") for part in ("changed", "created") for name in note.get(part, {})]
    found += [keys["Nodes"][0] for keys in note.get("changed", {}).values() if "Nodes" in keys]
    return ",".join(dict.fromkeys(names for names in found if names not in ("", *EMPTY)))


def in_words(note: Note) -> list[str]:
    """Return a line for each record with decisions.

    >>> in_words({"changed": {"PartitionName=a": {"State": ["UP", "DOWN"]}}, "created": {"PartitionName=b": {}}})
    ['PartitionName=a State=DOWN', 'PartitionName=b']
    """
    changed: Iterable[tuple[str, Any]] = note.get("changed", {}).items()
    lines = [" ".join([name, *(f"{key}={value}" for key, (_, value) in keys.items())]) for name, keys in changed]
    return lines + list(note.get("created", {}))
