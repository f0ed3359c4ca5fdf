"""Groups, names and types: each check fires with its variable, its value and what to do, and with nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.inventory import structure as inventory_structure
from ansible.module_utils.slurmstead.inventory.check import problems
from ansible.module_utils.slurmstead.inventory.model import DropIn, Groups, Inventory, Specs, Variable, VariableFile
from ansible.module_utils.slurmstead.inventory.variables import faults

Said = Callable[..., list[str]]

ALL = ("node1", "node2", "node3", "node4")


def test_a_good_inventory_has_no_problem(said: Said) -> None:
    assert said(everywhere={"slurm_cluster_name": "home", "site_name": "cellar"}) == []


GROUP_CASES = {
    "empty": (
        {"control": ()},
        ["group control: is empty. Put at least one host into it."],
    ),
    "two controllers": (
        {"control": ("node1", "node3")},
        ["group control (node[1,3]): has 2 hosts, but it can have only one. Keep one of them."],
    ),
    "two NFS servers": (
        {"nfs_server": ("node2", "node3")},
        ["group nfs_server (node[2-3]): has 2 hosts, but it can have only one. Keep one of them."],
    ),
    "a worker in a group with a slip": (
        {"worker": ("node4",), "workers": ("node1", "node2")},
        [
            "host node4: is in none of the groups control, nfs_server, workers, login. "
            "Put it into one of them, or remove it from the inventory.",
            "group worker (node4): has hosts that are not in workers, and no playbook uses worker. "
            "Move them to workers, or give the group a less similar name.",
        ],
    ),
    "a machine for users only": ({"workers": ("node1", "node2"), "login": ("node4",)}, []),
    "a host without function": (
        {"workers": ("node1", "node2")},
        [
            "host node4: is in none of the groups control, nfs_server, workers, login. "
            "Put it into one of them, or remove it from the inventory."
        ],
    ),
}


@pytest.mark.parametrize(("groups", "expected"), GROUP_CASES.values(), ids=GROUP_CASES)
def test_a_wrong_group_is_named(said: Said, groups: dict[str, Any], expected: list[str]) -> None:
    assert said(groups=groups) == expected


def test_a_missing_group_is_found_under_its_misspelled_name() -> None:
    inventory = Inventory({"all": ALL, "control": ("node3",), "nfs_server": ("node3",), "worker": ALL}, {})

    found = list(inventory_structure.required_groups_have_hosts(inventory, Groups("control", "nfs_server", "workers")))

    assert [str(problem) for problem in found] == ["group workers: is missing. Rename the group worker to workers."]


def test_a_missing_group_without_a_likely_slip_is_asked_for() -> None:
    inventory = Inventory({"all": ALL, "control": ("node3",), "nfs_server": ("node3",)}, {})

    found = list(inventory_structure.required_groups_have_hosts(inventory, Groups("control", "nfs_server", "workers")))

    assert [str(problem) for problem in found] == [
        "group workers: is missing. Add it to the inventory, with at least one host."
    ]


NAME_CASES = {
    "localhost": "is a reserved name, which no node can have. Call it node1, for example.",
    "default": "is a reserved name, which no node can have. Call it node1, for example.",
    "node[5-7]": "is a range, not a name. In an inventory, Ansible's notation for many hosts is node[1:4].",
    "node5.lan": "has a dot, so it is not the short host name that slurmd expects. "
    "Call it node5 if that is its name, and put its address into os_address and ansible_host.",
    "Knoten5": "has capital letters. Call it knoten5; host names are written in lower case.",
    "node_5": "is not a host name (RFC 1123). Use letters, digits and inner hyphens, as in node-1.",
    "-node5": "is not a host name (RFC 1123). Use letters, digits and inner hyphens, as in node-1.",
    "knöten": "is not a host name (RFC 1123). Use letters, digits and inner hyphens, as in node-1.",
    "n" * 64: "has 64 characters, but a host name can have only 63 (RFC 1123). Shorten it.",
    "5": "has only digits, so it would be read as an address. Call it node5.",
    "workers": "has the name of a group. Give the host or the group another name.",
}


@pytest.mark.parametrize(("host", "expected"), NAME_CASES.items(), ids=NAME_CASES)
def test_a_name_that_no_node_can_have_is_refused(said: Said, host: str, expected: str) -> None:
    groups = {"all": (*ALL, host), "workers": ("node1", "node2", "node4", host)}

    assert said(groups=groups) == [f"host {host}: {expected}"]


def test_names_that_differ_by_case_only_are_refused(said: Said) -> None:
    groups = {"all": (*ALL, "Node1"), "workers": ("node1", "node2", "node4", "Node1")}

    assert "host Node1: differs from node1 by case only. Give it another name." in said(groups=groups)


FILE_CASES = {
    "group": ("group", "worker", "there is no group worker, so this file is ignored. Did you mean workers?"),
    "host": ("host", "node11", "there is no host node11, so this file is ignored. Did you mean node1?"),
    "nothing like it": ("group", "gpus", "there is no group gpus, so this file is ignored. Rename or remove it."),
}


@pytest.mark.parametrize(("kind", "name", "expected"), FILE_CASES.values(), ids=FILE_CASES)
def test_a_file_of_variables_that_nobody_reads_is_named(said: Said, kind: str, name: str, expected: str) -> None:
    path = f"inventory/{kind}_vars/{name}.yml"

    assert said(files=[VariableFile(path, kind, name)]) == [f"{path}: {expected}"]


EVERYTHING_RUNS = "but everything in this directory is run on nodes"
DROP_IN_CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "no mode": ("gpu", {"is_executable": False}, "is not executable. Run `chmod +x files/health.d/gpu`, or move it"),
    "directory": ("lib", {"is_file": False}, f"is not a file, {EVERYTHING_RUNS}. Move it elsewhere."),
    "hidden": (".gitkeep", {}, f"is hidden, {EVERYTHING_RUNS}. Remove it."),
    "swap file": (".gpu.swp", {"is_executable": False}, "is hidden"),
    **{
        name: (name, {"is_executable": False}, f"is an editor's backup, {EVERYTHING_RUNS}. Remove it.")
        for name in ("gpu~", "gpu.bak", "gpu.orig", "#gpu#", "gpu.sh.swp")
    },
    "text": ("README.md", {"first_line": b"# Checks"}, "does not begin with #!. Name its interpreter in the first"),
    "empty": ("gpu", {"first_line": b""}, "does not begin with #!"),
    "binary": ("gpu", {"first_line": b"\x7fELF"}, "does not begin with #!"),
    "Windows": ("gpu", {"first_line": b"#!/bin/sh\r\n"}, "has a first line that ends with a carriage return"),
    "blank": ("gpu 1", {}, "has a name that a drop-in cannot have. Use at most 64 letters, digits, hyphens,"),
    "option": ("-gpu", {}, "has a name that a drop-in cannot have"),
    "long": ("g" * 65, {}, "has a name that a drop-in cannot have"),
}


@pytest.mark.parametrize(("name", "seen", "expected"), DROP_IN_CASES.values(), ids=DROP_IN_CASES)
def test_a_drop_in_that_no_node_could_run_is_named(said: Said, name: str, seen: dict[str, Any], expected: str) -> None:
    (found,) = said(drop_ins=[DropIn(f"files/health.d/{name}", **seen)])

    assert found.startswith(f"files/health.d/{name}: {expected}")


def test_drop_ins_of_a_misspelled_directory_are_named(said: Said) -> None:
    assert said(drop_ins=[DropIn("files/heath.d/gpu"), DropIn("files/conf.d/x")]) == [
        "files/conf.d/x: no role reads conf.d. Rename or remove the directory.",
        "files/heath.d/gpu: no role reads heath.d. Did you mean health.d?",
    ]


@pytest.mark.parametrize("name", ["gpu", "10-gpu.sh", "Fan_2", "a.py"])
def test_a_drop_in_that_can_be_run_is_good(said: Said, name: str) -> None:
    assert said(drop_ins=[DropIn(f"files/{kind}.d/{name}") for kind in ("health", "prolog", "epilog")]) == []


VARIABLE_CASES = {
    "a slip after the prefix": (
        {"slurmd_optoins": "-v"},
        "slurmd_optoins (node1): is not a variable of the role slurmd. Did you mean slurmd_options?",
    ),
    "a slip in the prefix": (
        {"acounts_users": []},
        "acounts_users (node1): is unknown, but similar to a known variable. Did you mean accounts_users?",
    ),
    "a slip in a variable of Ansible": (
        {"ansbile_host": "192.168.1.1"},
        "ansbile_host (node1): is unknown, but similar to a known variable. Did you mean ansible_host?",
    ),
    "a made-up variable": (
        {"munge_xyz": 1},
        "munge_xyz (node1): is not a variable of the role munge. The variables of munge are in roles/munge/README.md.",
    ),
    "an internal variable": (
        {"__slurm_config_defaults": {}},
        "__slurm_config_defaults (node1): is internal to the role slurm. Remove it from the inventory.",
    ),
    "a variable of the playbooks": (
        {"packages_for": ["os"]},
        "packages_for (node1): is computed by the playbooks. Do not set it.",
    ),
    "a mapping given as a list": (
        {"slurm_config": [{"SlurmdTimeout": 60}]},
        'slurm_config (node1): is [{"SlurmdTimeout": 60}], which is a list. Write a mapping.',
    ),
    "a list given as text": (
        {"scratch_disks": "/dev/disk/by-id/a,/dev/disk/by-id/b"},
        'scratch_disks (node1): is "/dev/disk/by-id/a,/dev/disk/by-id/b", which is a string. Write a list.',
    ),
    "text given as a list": (
        {"slurm_cluster_name": ["home"]},
        'slurm_cluster_name (node1): is ["home"], which is a list. Write a string.',
    ),
    "an invalid number": (
        {"packages_lock_timeout": "ten minutes"},
        'packages_lock_timeout (node1): is "ten minutes". Write a whole number.',
    ),
    "an empty value": (
        {"scratch_disks": None},
        "scratch_disks (node1): is empty. Write a list, or remove it.",
    ),
    "an unknown choice": (
        {"nfs_server_filesystem": "btrfs"},
        'nfs_server_filesystem (node1): is "btrfs". Write one of: ext4, xfs.',
    ),
    "a release that is not supported": (
        {"lab_release": "buster", "lab_number": 1, "lab_name": "test", "lab_directory": "/lab"},
        'lab_release (node1): is "buster". Write one of: bookworm, trixie.',
    ),
    "an unknown key in a list": (
        {"accounts_users": [{"name": "alice", "uid": 2001, "kyes": []}]},
        "accounts_users (node1): [0].kyes is not known. Did you mean keys?",
    ),
    "a missing key in a list": (
        {"accounts_users": [{"name": "alice"}]},
        "accounts_users (node1): [0] has no uid. Set uid: Numeric ID of the user, the same on every node.",
    ),
    "a wrong type in a list": (
        {"accounts_users": [{"name": "alice", "uid": "two"}]},
        'accounts_users (node1): [0].uid is "two". Write a whole number.',
    ),
    "an empty entry of a list": (
        {"scratch_disks": [None]},
        "scratch_disks (node1): [0] is empty. Write a path, or remove it.",
    ),
    "an empty mapping in a list": (
        {"accounts_users": [{"name": "alice", "uid": 2001}, None]},
        "accounts_users (node1): [1] is empty. Write a mapping, or remove it.",
    ),
    "a value that cannot be computed": (
        {"slurm_partitions": Variable(origin="inventory/hosts.yml:7", error="cannot be computed: 'mian' is undefined")},
        "slurm_partitions (node1; inventory/hosts.yml:7): cannot be computed: 'mian' is undefined. "
        "Correct the expression, or set what it uses.",
    ),
    "no address": (
        {"os_address": None},
        "os_address (node1): is empty. Set it: Address of the node in the cluster's network, without prefix length.",
    ),
}


@pytest.mark.parametrize(("variables", "expected"), VARIABLE_CASES.values(), ids=VARIABLE_CASES)
def test_a_wrong_variable_is_named(said: Said, variables: dict[str, Any], expected: str) -> None:
    assert said(node1=variables) == [expected]


TEXT = "a text, which counts as true in conditions"
REWRITE = "Write false without quotes; in an INI file, False; with --extra-vars, JSON"


@pytest.mark.parametrize("text", ["false", "False", "no", "off", "0", "n"])
def test_a_text_that_means_false_is_refused_because_templates_take_it_for_true(said: Said, text: str) -> None:
    assert said(node3={"jupyterhub_enabled": text}) == [f'jupyterhub_enabled (node3): is "{text}", {TEXT}. {REWRITE}.']


@pytest.mark.parametrize("value", ["true", "True", "yes", "1", True, False, 0, 1])
def test_a_value_that_means_for_templates_what_it_says_is_accepted(said: Said, value: object) -> None:
    assert said(node3={"jupyterhub_enabled": value}) == []


def test_a_text_that_means_false_is_refused_inside_a_list_and_a_mapping() -> None:
    flags = {"type": "list", "elements": "bool"}
    option = {"type": "dict", "options": {"one": {"type": "bool"}, "many": flags}}

    assert list(faults("", option, {"one": "no", "many": [False, "off", "on"]})) == [
        (f'.one is "no", {TEXT}', REWRITE),
        (f'.many[1] is "off", {TEXT}', REWRITE),
    ]


def test_an_address_that_yaml_reads_as_a_number_is_named(said: Said) -> None:
    assert said(node1={"os_address": 10.1, "ansible_host": 10.1}) == [
        'os_address (node1): is "10.1", which is not an IPv4 address. Write it as in 192.168.1.11.'
    ]


def test_a_worker_without_address_is_named(said: Said, specs: Specs) -> None:
    inventory = Inventory({"all": ("node1",), "workers": ("node1",)}, {"node1": {}})

    found = [str(problem) for problem in problems(inventory, Groups("control", "nfs_server", "workers"), specs)]

    assert (
        "os_address (node1): is not set. "
        "Set it: Address of the node in the cluster's network, without prefix length." in found
    )


def test_a_problem_of_many_hosts_is_one_line_with_its_places(said: Said) -> None:
    value = Variable("-v", origin="inventory/group_vars/all.yml:3")

    assert said(everywhere={"slurmd_optoins": value}) == [
        "slurmd_optoins (node[1-4]; inventory/group_vars/all.yml:3): is not a variable of the role slurmd. "
        "Did you mean slurmd_options?"
    ]


def test_all_problems_are_told_at_once(said: Said) -> None:
    found = said(node1={"slurmd_optoins": 1, "scratch_disks": "x"}, node2={"os_address": "127.0.1.1"})

    assert [line.partition(" ")[0] for line in found] == ["os_address", "scratch_disks", "slurmd_optoins"]


SECRET = "c2VjcmV0IGtleQ=="
SECRET_CASES = {
    "a whole option": ({"type": "int", "no_log": True}, SECRET),
    "a choice": ({"type": "str", "choices": ["a"], "no_log": True}, SECRET),
    "a mapping with a secret in it": ({"type": "list", "options": {"key": {"no_log": True}}}, {"key": SECRET}),
    "a part of a mapping": ({"type": "dict", "options": {"key": {"type": "int", "no_log": True}}}, {"key": SECRET}),
    "a part of a list": ({"type": "list", "elements": "int", "no_log": True}, [SECRET]),
}


@pytest.mark.parametrize(("option", "value"), SECRET_CASES.values(), ids=SECRET_CASES)
def test_a_secret_is_never_repeated(option: dict[str, Any], value: object) -> None:
    found = list(faults("", option, value))

    assert found
    assert SECRET not in repr(found)


def test_the_value_of_a_misspelled_variable_is_never_repeated(said: Said) -> None:
    found = said(node1={"munge_kye": SECRET, "ansible_pasword": SECRET})

    assert len(found) == 2
    assert SECRET not in repr(found)


def test_400_hosts_are_checked_in_less_than_five_milliseconds_each(specs: Specs) -> None:
    names = [f"node{number}" for number in range(1, 401)]
    shared = {"accounts_users": [{"name": f"user{number}", "uid": 2000 + number} for number in range(100)]}
    hosts = {
        name: {
            key: Variable(value)
            for key, value in {
                **shared,
                "os_address": f"10.0.{number // 250}.{number % 250 + 1}",
                "scratch_disks": [f"/dev/disk/by-id/nvme-{name}"],
                "slurm_config": {"SlurmdTimeout": 60},
                "slurm_nodes": {host: {"Weight": 1} for host in names[1:]},
            }.items()
        }
        for number, name in enumerate(names)
    }
    groups = {"all": names, "control": names[:1], "nfs_server": names[:1], "workers": names[1:]}
    started = time.process_time()

    found = problems(Inventory(groups, hosts), Groups("control", "nfs_server", "workers"), specs)

    assert found == []
    assert time.process_time() - started < 0.005 * len(names)


def test_one_host_with_another_value_is_told_apart(said: Said) -> None:
    found = said(everywhere={"scratch_filesystem": "xfs"}, node4={"scratch_filesystem": "btrfs"})

    assert [line.partition(":")[0] for line in found] == ["scratch_filesystem (node4)"]
