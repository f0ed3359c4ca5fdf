# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the variables from which slurm.conf and cgroup.conf are rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.conf import keys as conf_keys
from ansible.module_utils.slurmstead.conf import partitions
from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, in_words, nearest, shown
from ansible.module_utils.slurmstead.slurm.hostlist import expand

OWNED = {
    "BackupAddr": "a second controller is not supported: remove it",
    "BackupController": "a second controller is not supported: remove it",
    "ClusterName": "set slurm_cluster_name",
    "ControlAddr": "the inventory's control group and os_address define it: remove it",
    "ControlMachine": "the inventory's control group defines it: remove it",
    "NodeName": "set slurm_nodes",
    "PartitionName": "set slurm_partitions",
    "SlurmctldAddr": "the os_address of the control host defines it: remove it",
    "SlurmctldHost": "the inventory's control group defines it: remove it",
}
OWNED_NODE = {
    "NodeAddr": "set os_address of that host",
    "NodeHostname": "the inventory's host name defines it: remove it",
    "NodeName": "the name in slurm_nodes defines it: remove it",
}
OWNED_PARTITION = {"PartitionName": "the name in slurm_partitions defines it: remove it"}

DEVICES = ("gpu", "mps", "nic", "shard")
"""Kinds of GRES whose files must be in gres.conf(5)."""

_TRUE_FALSE = re.compile(r"yes|up|true|1|no|down|false|0", re.IGNORECASE)
_ENDLESS = re.compile(r"infinite|unlimited", re.IGNORECASE)


def cluster_name_is_valid(slurm_cluster_name: str) -> Iterator[Violation]:
    """slurm.conf(5), ClusterName: lower case, at most 40 characters; it is also a part of file names."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", slurm_cluster_name):
        yield (
            "slurm_cluster_name",
            f"is {shown(slurm_cluster_name)}",
            "Use at most 40 lower-case letters, digits, - and _, and begin with a letter or digit",
        )


def config_has_known_keys(slurm_config: Mapping[str, Any], slurm_version: str | None) -> Iterator[Violation]:
    """slurmctld and slurmd do not start with an unknown key."""
    yield from _key_violations("slurm_config", "", slurm_config, conf_keys.SLURM_CONF, OWNED, slurm_version)


def workers_can_fetch_the_configuration(slurm_config: Mapping[str, Any]) -> Iterator[Violation]:
    """Workers have no slurm.conf of their own: without enable_configless they stay down."""
    value = slurm_config.get("SlurmctldParameters", "enable_configless")
    words = value if isinstance(value, list) else str(value).split(",")
    if "enable_configless" not in [str(word).strip() for word in words]:
        yield "slurm_config", f"SlurmctldParameters is {shown(value)}", "Add enable_configless to it"


def a_job_without_its_profile_drains_no_node(slurm_config: Mapping[str, Any]) -> Iterator[Violation]:
    """With GetEnvTimeout=0 no profile is read, which these words count as a failure of the node."""
    value = slurm_config.get("SchedulerParameters") or ""
    words = value if isinstance(value, list) else str(value).split(",")
    harmful = {"no_env_cache", "requeue_setup_env_fail"} & {str(word).strip() for word in words}
    if harmful and str(slurm_config.get("GetEnvTimeout", 0)) == "0":
        yield (
            "slurm_config",
            f"SchedulerParameters has {' and '.join(sorted(harmful))}, but GetEnvTimeout is 0",
            "Remove it: each job with --export=NONE would drain its node",
        )


def cgroup_config_has_known_keys(
    slurm_cgroup_config: Mapping[str, Any], slurm_version: str | None
) -> Iterator[Violation]:
    """As for slurm_config: an unknown key in cgroup.conf is fatal too."""
    yield from _key_violations("slurm_cgroup_config", "", slurm_cgroup_config, conf_keys.CGROUP_CONF, {}, slurm_version)


def nodes_are_workers_with_known_keys(
    slurm_nodes: Mapping[str, Any], worker_names: Sequence[str], slurm_version: str | None
) -> Iterator[Violation]:
    """slurm_nodes changes the NodeName lines of the inventory's workers; it does not create nodes."""
    for name, settings in slurm_nodes.items():
        if name not in worker_names:
            yield _no_worker("slurm_nodes", "", str(name), worker_names)
        yield from _settings_violations("slurm_nodes", str(name), settings, conf_keys.NODE, OWNED_NODE, slurm_version)


def partitions_are_valid(
    slurm_partitions: Mapping[str, Any],
    slurm_config: Mapping[str, Any],
    worker_names: Sequence[str],
    slurm_version: str | None,
) -> Iterator[Violation]:
    """A partition's keys are slurm.conf's, and its nodes are workers: slurmctld stops at an unknown node."""
    for name, settings in slurm_partitions.items():
        if not isinstance(name, str):
            yield "slurm_partitions", f"{shown(name)} is not text", f'Write the name of the partition as "{name}"'
        elif name.upper() == "DEFAULT" != name:
            yield "slurm_partitions", f"{name} is not a partition: Slurm reads it as DEFAULT", "Use another name"
        elif not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            yield "slurm_partitions", f"{shown(name)} is not a partition name", "Use letters, digits, - and _"
        yield from _settings_violations(
            "slurm_partitions", str(name), settings, conf_keys.PARTITION, OWNED_PARTITION, slurm_version
        )
        nodes = settings.get("Nodes") if isinstance(settings, Mapping) else None
        if nodes is not None and "NodeSet" not in slurm_config:
            text = ",".join(map(str, nodes)) if isinstance(nodes, list) else str(nodes)
            yield from _unknown_nodes("slurm_partitions", f"{name}: Nodes: ", text, worker_names)


def one_partition_is_the_default(slurm_partitions: Mapping[str, Any]) -> Iterator[Violation]:
    """With two default partitions Slurm would silently use the last."""
    marked = partitions.default_names(slurm_partitions)
    if len(marked) > 1:
        yield (
            "slurm_partitions",
            f"{in_words(marked)} are all set as the default",
            "Keep Default: true in one of them",
        )


def devices_have_no_core_gres(
    slurm_core_gres: Mapping[str, bool],
    slurm_config: Mapping[str, Mapping[str, Any]],
    slurm_nodes: Mapping[str, Mapping[str, Any]],
    control_names: Sequence[str],
) -> Iterator[HostViolation]:
    """A device needs a gres.conf of the site's own, and fast and slow cores one of Slurmstead's."""
    for control in control_names[:1]:
        if not slurm_core_gres.get(control):
            continue
        places = [("slurm_config", "GresTypes", slurm_config.get(control, {}).get("GresTypes"))]
        for name, keys in slurm_nodes.get(control, {}).items():
            places.append(("slurm_nodes", f"{name}: Gres", keys.get("Gres") if isinstance(keys, Mapping) else None))
        for variable, place, value in places:
            words = value if isinstance(value, list) else str(value or "").split(",")
            if any(str(word).partition(":")[0].strip().lower() in DEVICES for word in words):
                yield (
                    (control,),
                    variable,
                    f"{place} is {shown(value)}, but slurm_core_gres is true, with which Slurmstead replaces gres.conf",
                    "Remove slurm_core_gres, and write gres.conf on control yourself, or remove the devices",
                )


def _unknown_nodes(variable: str, place: str, expression: str, workers: Sequence[str]) -> Iterator[Violation]:
    if expression.upper() in ("ALL", ""):
        return
    try:
        names = expand(expression)
    except ValueError as error:
        yield variable, f"{place}{error}", "Write names and ranges, as in node[1-4,7]"
        return
    for name in names:
        if name not in workers:
            yield _no_worker(variable, place, name, workers)


def _no_worker(variable: str, place: str, name: str, workers: Sequence[str]) -> Violation:
    match = nearest(name, workers, cutoff=0.6)
    advice = f"Did you mean {match}?" if match else "Name a worker of the inventory, or add this one to it"
    return variable, f"{place}{name} is not a worker in the inventory", advice


def _settings_violations(
    variable: str, name: str, settings: Any, table: str, owned: Mapping[str, str], version: str | None
) -> Iterator[Violation]:
    if settings is None:
        return
    if isinstance(settings, Mapping):
        yield from _key_violations(variable, f"{name}: ", settings, table, owned, version)
    else:
        yield variable, f"{name} is {shown(settings)}, which is not a mapping", "Write its keys and values below it"


def _key_violations(
    variable: str, place: str, settings: Mapping[str, Any], table: str, owned: Mapping[str, str], version: str | None
) -> Iterator[Violation]:
    keys = conf_keys.keys(table)
    owned_by_lower = {key.lower(): advice for key, advice in owned.items()}
    removed = {key.lower(): advice for key, advice in conf_keys.REMOVED.items()}
    for name, value in settings.items():
        key = keys.get(str(name))
        if str(name).lower() in owned_by_lower:
            advice = owned_by_lower[str(name).lower()]
            yield variable, f"{place}{name} is set by Slurmstead", advice[0].upper() + advice[1:]
        elif str(name).lower() in removed:
            advice = removed[str(name).lower()]
            yield variable, f"{place}{name} was removed from Slurm", advice[0].upper() + advice[1:]
        elif key is None:
            match = nearest(str(name), keys)
            advice = f"Did you mean {match}?" if match else "Its keys are in the manual page slurm.conf(5)"
            yield variable, f"{place}{name} is not a key that Slurm knows", advice
        elif version is not None and version not in key.versions:
            yield (
                variable,
                f"{place}{name} is not known to Slurm {version}, only to {', '.join(key.versions)}",
                "Remove it, or choose another release",
            )
        else:
            yield from _value_violations(variable, f"{place}{name}", key, value)


def _value_violations(variable: str, place: str, key: conf_keys.Key, value: Any) -> Iterator[Violation]:
    """Slurm's parser accepts the value for a key of this type; null deletes a default."""
    if isinstance(value, list):
        if key.type != "string" or any(isinstance(item, (list, Mapping, bool)) or item is None for item in value):
            yield variable, f"{place} is {shown(value)}", f"Write one {key.type}"
        return
    if value is None:
        return
    text = str(value)
    if isinstance(value, Mapping):
        yield variable, f"{place} is a mapping", "Write a single value or a list"
    elif re.search(r"[\n#]", text):
        yield variable, f"{place} is {shown(value)}: a line break or # ends a value", "Write it without"
    elif key.type == "string" and isinstance(value, bool):
        yield variable, f"{place} is a YAML boolean, but Slurm expects a word", "Put the word into quotes, as in 'NO'"
    elif key.type == "boolean" and not _TRUE_FALSE.fullmatch(text):
        yield variable, f"{place} is {shown(value)}", "Write true or false"
    elif key.type == "integer" and (isinstance(value, bool) or not (text.isdigit() or _ENDLESS.fullmatch(text))):
        yield variable, f"{place} is {shown(value)}", "Write a whole number, or UNLIMITED"
    elif key.type == "number" and (isinstance(value, bool) or not re.fullmatch(r"\d+(\.\d+)?", text)):
        yield variable, f"{place} is {shown(value)}", "Write a number"
