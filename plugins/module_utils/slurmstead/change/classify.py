# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The actions that a new configuration requires, and the jobs that block it: pure functions.

>>> from ansible.module_utils.slurmstead.slurm.jobs import Job
>>> jobs = State((Job("7", "RUNNING", "main", ("n1",)),))
>>> plan = classify({"slurm.conf": "SelectType=select/linear"}, {"slurm.conf": ""}, "24.11", jobs)
>>> plan.refusals[0]
'SelectType: select/linear → removed: refused while any job runs or waits: job 7 (running on n1)'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.change.plan import Change, Plan
from ansible.module_utils.slurmstead.conf import lines as conf_lines
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf import needs as conf_needs
from ansible.module_utils.slurmstead.conf.model import Model, Section
from ansible.module_utils.slurmstead.conf.needs import Need, While
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

Files = Mapping[str, str]
"""The text of each file by its name, such as slurm.conf."""

REMOVED = "removed"
ABSENT = "not set"
BY_HAND = {
    "clustername": "the saved state belongs to the old name",
    "statesavelocation": "slurmctld would start without its jobs: let them end, or stop it and move the directory",
}
"""Why a change is refused, if that is not obvious."""


def classify(old: Files, new: Files, version: str, state: State) -> Plan:
    """Return the plan that leads from the old files to the new ones.

    `version` is that of the daemons on control, such as 22.05.8; `state` has the jobs. A file that is missing on one
    side counts as empty.
    """
    before, after = conf_model.read(old.get("slurm.conf", "")), conf_model.read(new.get("slurm.conf", ""))
    return Plan(
        (
            *_settings(before, after, version, state),
            *_nodes(before, after, version, state),
            *_partitions(before, after, state),
            *_other_lines(before, after),
            *_files(old, new, after, version, state),
        )
    )


def _settings(before: Model, after: Model, version: str, state: State) -> Iterator[Change]:
    everywhere = frozenset(after.nodes)
    if before.includes:
        shown = before.includes[0].text
        yield Change(f"{shown} was read", "", "", conf_needs.CODES["B"], everywhere, "its old content is unknown")
    for key, old, new in _differences(before.settings, after.settings):
        name = (after.settings.get(key) or before.settings[key]).key
        need = conf_needs.need(conf_needs.SLURM_CONF, key, version)
        reason = BY_HAND.get(key, "")
        blocking = {While.ANY: state.live, While.RUNNING: state.running}.get(need.refused, ())
        yield Change(name, old, new, need, everywhere if need.slurmd else frozenset(), reason, blocking)


def _nodes(before: Model, after: Model, version: str, state: State) -> Iterator[Change]:
    added, gone = sorted(after.nodes.keys() - before.nodes.keys()), sorted(before.nodes.keys() - after.nodes.keys())
    need = conf_needs.CODES["R" if conf_needs.forks(version) else "C"]
    why = "" if conf_needs.forks(version) else "before 23.11, a reconfigure for this would crash slurmctld"
    if added and not _is_new(before):
        yield Change(f"node {compress(added)} added", "", "", need, reason=why)
    for name in gone:
        blocking = state.on(name)
        refused = Need(need.action, refused=While.RUNNING)
        yield Change(
            f"node {name} removed", "", "", refused, reason="drain it first" if blocking else why, blocking=blocking
        )
    for name in sorted(after.nodes.keys() & before.nodes.keys()):
        for key, old, new in _differences(before.nodes[name], after.nodes[name]):
            shown = (after.nodes[name].get(key) or before.nodes[name][key]).key
            need_of_key = conf_needs.need(conf_needs.NODE, key, version)
            blocking = state.on(name) if need_of_key.refused is While.RUNNING else ()
            slurmd = frozenset({name}) if need_of_key.slurmd else frozenset()
            reason = f"drain {name}, or wait" if blocking else ""
            yield Change(f"node {name}: {shown}", old, new, need_of_key, slurmd, reason, blocking)


def _partitions(before: Model, after: Model, state: State) -> Iterator[Change]:
    need = conf_needs.CODES["R"]
    for name in sorted(after.partitions.keys() - before.partitions.keys()):
        if not _is_new(before):
            yield Change(f"partition {name} added", "", "", need)
    for name in sorted(before.partitions.keys() - after.partitions.keys()):
        blocking = tuple(job for job in state.live if name in job.partition.split(","))
        reason = "slurmctld would end them: cancel them, or move pending ones by `scontrol update`" if blocking else ""
        refused = Need(need.action, refused=While.ANY)
        yield Change(f"partition {name} removed", "", "", refused, reason=reason, blocking=blocking)
    for name in sorted(after.partitions.keys() & before.partitions.keys()):
        for key, old, new in _differences(_named(before, name), _named(after, name)):
            shown = (after.partitions[name].get(key) or before.partitions[name][key]).key
            yield Change(f"partition {name}: {shown}", old, new, need)


def _is_new(before: Model) -> bool:
    """Say whether there was no configuration: then everything is new and needs no listing."""
    return not before.settings


def _named(model: Model, name: str) -> Section:
    """Return a partition with its nodes in a canonical spelling, whether they are written as ranges or one by one."""
    keys = dict(model.partitions[name])
    if "nodes" in keys and keys["nodes"].value.upper() != "ALL":
        names = conf_model.members(model, keys)
        if names:
            keys["nodes"] = conf_lines.Pair(keys["nodes"].key, compress(names), keys["nodes"].line)
    return keys


def _other_lines(before: Model, after: Model) -> Iterator[Change]:
    for kind in sorted(before.other.keys() | after.other.keys()):
        if before.other.get(kind) != after.other.get(kind):
            shown = {"nodeset": "NodeSet", "downnodes": "DownNodes"}[kind]
            yield Change(f"lines of {shown} changed", "", "", conf_needs.CODES["R"])


def _files(old: Files, new: Files, after: Model, version: str, state: State) -> Iterator[Change]:
    everywhere = frozenset(after.nodes)
    for name in sorted((old.keys() | new.keys()) - {"slurm.conf"}):
        need = conf_needs.need(conf_needs.FILES, name, version, ("B", "R", "-"))
        before, now = old.get(name, ""), new.get(name, "")
        if name == "gres.conf":
            yield from _gres(before, now, everywhere, need, state)
        elif name.endswith(".conf"):
            yield from _plain_file(name, before, now, everywhere, need, state)
        elif before != now:
            yield Change(f"{name} changed", "", "", need, everywhere if need.slurmd else frozenset())


def _gres(before: str, now: str, everywhere: frozenset[str], need: Need, state: State) -> Iterator[Change]:
    old, new = conf_model.gres_by_node(before), conf_model.gres_by_node(now)
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if not changed:
        return
    concerned = everywhere if "" in changed else everywhere & changed
    blocking = tuple(job for job in state.running if concerned & set(job.nodes))
    slurmd = concerned if need.slurmd else frozenset()
    yield Change(f"gres.conf: lines of {compress(concerned) or 'no node'} changed", "", "", need, slurmd, "", blocking)


def _plain_file(
    name: str, before: str, now: str, everywhere: frozenset[str], need: Need, state: State
) -> Iterator[Change]:
    old, new = conf_model.read(before), conf_model.read(now)
    found = list(_differences(old.settings, new.settings))
    for key, was, is_now in found:
        shown = (new.settings.get(key) or old.settings[key]).key
        refused, reason = need.refused, ""
        blocking: tuple[Job, ...] = ()
        if name == "cgroup.conf" and key in conf_needs.CGROUP_LAYOUT:
            refused, blocking = While.RUNNING, state.running
        elif (name, key, is_now) == (conf_needs.OCI, "runtimerun", REMOVED):
            refused, blocking = While.ANY, tuple(job for job in state.live if job.image)
            reason = "they would run without their images" if blocking else ""
        own = Need(need.action, need.slurmd, refused)
        yield Change(f"{name}: {shown}", was, is_now, own, everywhere if need.slurmd else frozenset(), reason, blocking)
    # For example topology.conf, which does not consist of keys.
    if not found and _said(before) != _said(now):
        yield Change(f"{name} changed", "", "", need, everywhere if need.slurmd else frozenset())


def _said(text: str) -> set[tuple[str, ...]]:
    return {
        tuple(sorted(f"{pair.name}={pair.value}" for pair in line.pairs)) or (line.text,)
        for line in conf_lines.parse(text)
    }


def _differences(old: Section, new: Section) -> Iterator[tuple[str, str, str]]:
    """Yield the key in lower case and both values in readable form, for each key that differs."""
    for key in sorted((old.keys() | new.keys()) - {""}):
        before, now = old.get(key), new.get(key)
        if before and now and conf_model.normal(key, before.value) == conf_model.normal(key, now.value):
            continue
        yield key, before.value if before else ABSENT, now.value if now else REMOVED
