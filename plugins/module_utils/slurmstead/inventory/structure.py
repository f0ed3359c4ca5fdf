# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Checks of an inventory's groups, host names and files. Each is one function in `CHECKS`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ansible.module_utils.slurmstead.inventory.model import DropIn, Groups, Inventory, Problem, did_you_mean, nearest

RESERVED_NAMES = frozenset({"all", "default", "localhost", "ungrouped"})
"""ALL and DEFAULT are reserved words of NodeName (slurm.conf(5)); Ansible or every machine uses the others."""

LOGIN = "login"
"""The group of machines for users, which an inventory need not have."""

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def required_groups_have_hosts(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """Every group that a playbook configures exists and has a host."""
    own = [name for name in inventory.groups if name not in {*groups.names, "all", "ungrouped"}]
    for group in groups.names:
        if inventory.groups.get(group):
            continue
        if group in inventory.groups:
            yield Problem(f"group {group}", "is empty", "Put at least one host into it")
            continue
        match = nearest(group, own)
        advice = f"Rename the group {match} to {group}" if match else "Add it to the inventory, with at least one host"
        yield Problem(f"group {group}", "is missing", advice)


def single_host_groups_have_one_host(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """A cluster has one slurmctld and one NFS server."""
    for group in (groups.control, groups.nfs_server):
        hosts = inventory.groups.get(group, ())
        if len(hosts) > 1:
            yield Problem(
                f"group {group}", f"has {len(hosts)} hosts, but it can have only one", "Keep one of them", tuple(hosts)
            )


def no_group_resembles_a_required_one(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """Hosts in a group `worker` instead of `workers` would silently get no slurmd."""
    for group, hosts in inventory.groups.items():
        if group in {*groups.names, "all", "ungrouped"}:
            continue
        match = nearest(group, groups.names, cutoff=0.85)
        if match is None or not inventory.groups.get(match):
            continue
        outside = tuple(host for host in hosts if host not in inventory.groups[match])
        if outside:
            yield Problem(
                f"group {group}",
                f"has hosts that are not in {match}, and no playbook uses {group}",
                f"Move them to {match}, or give the group a less similar name",
                outside,
            )


def every_host_has_a_function(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """A host outside the cluster's groups would get users and mounts, but no Slurm."""
    names = (*groups.names, LOGIN)
    members = {host for group in names for host in inventory.groups.get(group, ())}
    for host in inventory.hosts:
        if host not in members:
            yield Problem(
                f"host {host}",
                f"is in none of the groups {', '.join(names)}",
                "Put it into one of them, or remove it from the inventory",
            )


def host_names_fit_slurm(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """A host's inventory name becomes its host name and its NodeName: one RFC 1123 label, in lower case."""
    for host in inventory.hosts:
        for wrong, advice in _name_faults(host):
            yield Problem(f"host {host}", wrong, advice)


def _name_faults(host: str) -> Iterator[tuple[str, str]]:
    if host.lower() in RESERVED_NAMES:
        yield "is a reserved name, which no node can have", "Call it node1, for example"
    elif re.search(r"[\[\],]", host):
        yield "is a range, not a name", "In an inventory, Ansible's notation for many hosts is node[1:4]"
    elif "." in host:
        yield (
            "has a dot, so it is not the short host name that slurmd expects",
            f"Call it {host.split('.')[0]} if that is its name, and put its address into os_address and ansible_host",
        )
    elif host != host.lower():
        yield "has capital letters", f"Call it {host.lower()}; host names are written in lower case"
    elif len(host) > 63:
        yield f"has {len(host)} characters, but a host name can have only 63 (RFC 1123)", "Shorten it"
    elif not _LABEL.fullmatch(host):
        yield "is not a host name (RFC 1123)", "Use letters, digits and inner hyphens, as in node-1"
    elif host.isdigit():
        yield "has only digits, so it would be read as an address", f"Call it node{host}"


def host_names_differ_by_more_than_case(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """DNS does not distinguish Node1 from node1."""
    seen: dict[str, str] = {}
    for host in inventory.hosts:
        other = seen.setdefault(host.lower(), host)
        if other != host:
            yield Problem(f"host {host}", f"differs from {other} by case only", "Give it another name")


def no_host_is_called_like_a_group(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """If a host and a group share a name, `--limit` is ambiguous, and group_vars and host_vars mix."""
    for host in inventory.hosts:
        if host in inventory.groups and host not in RESERVED_NAMES:
            yield Problem(f"host {host}", "has the name of a group", "Give the host or the group another name")


def variable_files_belong_to_a_group_or_host(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """Ansible silently ignores group_vars/worker.yml when the group is called workers."""
    known = {"group": inventory.groups, "host": inventory.hosts}
    for file in inventory.files:
        if file.name not in known[file.kind]:
            advice = did_you_mean(file.name, known[file.kind], "Rename or remove it")
            yield Problem(file.path, f"there is no {file.kind} {file.name}, so this file is ignored", advice)


def variable_files_are_read(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """Users whose variables are not read would count as users who left, and lose the cluster."""
    for violation in inventory.unread:
        yield Problem(*violation)


def no_key_is_repeated(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """The second of two hosts or variables of one name replaces the first, and Ansible goes on with a warning."""
    for repeated in inventory.repeated_keys:
        yield Problem(
            repeated.place,
            f"{repeated.key} is defined again, so the definition in line {repeated.first} is lost",
            "Keep one of them",
        )


def no_time_is_a_number(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """MaxTime: 24:00:00 would be 86400 minutes, which is 60 days."""
    for value in inventory.sexagesimals:
        yield Problem(value.place, f"YAML reads {value.text} as the number {value.number}", f'Write "{value.text}"')


DROP_INS = ("epilog.d", "health.d", "prolog.d")
"""The directories of drop-ins in files/."""

_DROP_IN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BACKUP = re.compile(r".*(~|\.(bak|dpkg-.*|old|orig|rej|save|sw[a-p]|tmp))|#.*#")


def drop_ins_can_be_run(inventory: Inventory, groups: Groups) -> Iterator[Problem]:
    """A health check that no node runs would look like one that finds no problems."""
    for drop_in in inventory.drop_ins:
        directory, name = drop_in.path.split("/")[-2:]
        if directory not in DROP_INS:
            advice = did_you_mean(directory, DROP_INS, "Rename or remove the directory")
            yield Problem(drop_in.path, f"no role reads {directory}", advice)
            continue
        for wrong, advice in _drop_in_faults(drop_in, name):
            yield Problem(drop_in.path, wrong, advice)


def _drop_in_faults(drop_in: DropIn, name: str) -> Iterator[tuple[str, str]]:
    if name.startswith("."):
        yield "is hidden, but everything in this directory is run on nodes", "Remove it"
    elif _BACKUP.fullmatch(name):
        yield "is an editor's backup, but everything in this directory is run on nodes", "Remove it"
    elif not drop_in.is_file:
        yield "is not a file, but everything in this directory is run on nodes", "Move it elsewhere"
    elif not _DROP_IN.fullmatch(name):
        yield (
            "has a name that a drop-in cannot have",
            "Use at most 64 letters, digits, hyphens, underscores and dots, and begin with a letter or digit",
        )
    elif not drop_in.is_executable:
        yield "is not executable", f"Run `chmod +x {drop_in.path}`, or move it elsewhere"
    elif not drop_in.first_line.startswith(b"#!"):
        yield "does not begin with #!", "Name its interpreter in the first line, as in #!/bin/sh"
    elif drop_in.first_line.endswith(b"\r\n"):
        yield (
            "has a first line that ends with a carriage return, so Linux cannot find its interpreter",
            f"Run `sed -i 's/\\r$//' {drop_in.path}`",
        )


CHECKS: tuple[Callable[[Inventory, Groups], Iterator[Problem]], ...] = (
    required_groups_have_hosts,
    single_host_groups_have_one_host,
    no_group_resembles_a_required_one,
    every_host_has_a_function,
    host_names_fit_slurm,
    host_names_differ_by_more_than_case,
    no_host_is_called_like_a_group,
    variable_files_belong_to_a_group_or_host,
    variable_files_are_read,
    no_key_is_repeated,
    no_time_is_a_number,
    drop_ins_can_be_run,
)
