"""playbooks/vars/cluster.yml, which tells roles what the groups mean, and what roles tell each other."""

from __future__ import annotations

import itertools
import pathlib
import re

import pytest
import yaml
from jinja2.nativetypes import NativeEnvironment

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "playbooks" / "vars" / "cluster.yml"
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
DEFAULTS = {
    name: value
    for path in (ROOT / "roles").glob("*/defaults/main.yml")
    for name, value in (yaml.safe_load(path.read_text()) or {}).items()
}
LITERAL = re.compile(r"\b(\w+) \| default\(('[^']*'|\[\]|[0-9]+|true|false)\)")
"""A variable of the inventory, and what it is where the inventory does not say."""
RESULT = re.compile(r"^\s*register: (\w+)$", re.MULTILINE)


def test_a_default_that_is_repeated_is_that_of_its_role() -> None:
    found = [(name, yaml.safe_load(value)) for name, value in LITERAL.findall(CLUSTER.read_text())]
    repeated = {name: value for name, value in found if name in DEFAULTS}

    assert {"nfs_client_path", "nfs_server_path", "scratch_path"} <= repeated.keys()
    assert repeated == {name: DEFAULTS[name] for name in repeated}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, "/srv/share/home"),
        ({"accounts_home_root": "/share/people/home"}, "/srv/share/people/home"),
        ({"accounts_home_root": "/data/home", "nfs_client_path": "/data"}, "/srv/share/home"),
        ({"os_address": "10.77.0.1"}, ""),
    ],
)
def test_the_nfs_server_stores_homes_where_other_nodes_find_them(given: dict[str, str], stored: str) -> None:
    variables = yaml.safe_load(CLUSTER.read_text())
    known = {"os_address": "10.77.0.3", "nfs_client_server": "10.77.0.3", **given}
    environment = NativeEnvironment()
    for name in ("__share", "__share_source"):
        known[name] = environment.from_string(variables[name]).render(**known)

    assert environment.from_string(variables["accounts_home_store"].strip()).render(**known) == stored


@pytest.mark.parametrize("role", ["smoke_test", "lab"])
def test_what_roles_get_does_not_come_from_a_test(role: str) -> None:
    variables = yaml.safe_load(CLUSTER.read_text())
    others = {name: str(value) for name, value in variables.items() if not name.startswith(f"{role}_")}

    assert [name for name, value in others.items() if re.search(rf"\b{role}_", value)] == []


@pytest.mark.parametrize("role", ROLES)
def test_only_a_role_itself_reads_its_private_results(role: str) -> None:
    registered = {
        name
        for path in (ROOT / "roles" / role).rglob("*.yml")
        for name in RESULT.findall(path.read_text())
        if name.startswith("__")
    }
    elsewhere = [
        path
        for place in ("roles", "playbooks")
        for path in (ROOT / place).rglob("*")
        if path.suffix in (".yml", ".j2") and ROOT / "roles" / role not in path.parents
    ]
    readers = {f"{path.name} reads {name}" for path in elsewhere for name in registered if name in path.read_text()}

    assert not readers, "Register it under a name without underscores, and document it in the role's README"


@pytest.mark.parametrize("role", ROLES)
def test_a_published_result_is_documented(role: str) -> None:
    published = {
        name
        for path in (ROOT / "roles" / role).rglob("*.yml")
        for name in RESULT.findall(path.read_text())
        if not name.startswith("__")
    }
    readme = (ROOT / "roles" / role / "README.md").read_text()

    assert [name for name in sorted(published) if f"`{name}`" not in readme] == []


def peers(host: str, groups: dict[str, list[str]]) -> dict[str, list[int]]:
    """What the doctor is told to reach from a machine."""
    variables = yaml.safe_load(CLUSTER.read_text())
    environment = NativeEnvironment()
    environment.filters |= {
        "items2dict": lambda rows: {row["key"]: row["value"] for row in rows},
        "combine": lambda one, other: {**one, **other},
        "difference": lambda one, other: [name for name in one if name not in other],
    }
    names = [group for group, hosts in groups.items() if host in hosts]
    given = {"groups": groups, "group_names": names, "inventory_hostname": host, "__workers": groups["workers"]}
    given["__ring"] = sorted(groups["workers"])
    given["__next_worker"] = environment.from_string(variables["__next_worker"]).render(given)
    return dict(environment.from_string(variables["slurm_doctor_peers"]).render(given))


def test_the_doctor_reaches_the_workers_in_a_ring() -> None:
    groups = {"control": ["c"], "workers": ["w3", "w1", "w2"]}
    ports, control = [6818, 60001], {"c": [6817, 60001]}

    assert [peers(host, groups) for host in ("w1", "w2", "w3", "c")] == [
        {"w2": ports, **control},
        {"w3": ports, **control},
        {"w1": ports, **control},
        {"w1": ports},
    ]


def test_a_machine_does_not_have_to_reach_itself() -> None:
    assert peers("w", {"control": ["c"], "workers": ["w"]}) == {"c": [6817, 60001]}
    assert peers("c", {"control": ["c"], "workers": ["c"]}) == {}
    assert peers("c", {"control": ["c"], "workers": ["c", "w"]}) == {"w": [6818, 60001]}


@pytest.mark.parametrize(
    ("groups", "limited"),
    [
        (["control"], True),
        (["login", "workers"], True),
        (["nfs_server"], True),
        (["control", "nfs_server", "workers"], True),
        (["nfs_server", "workers"], False),
        (["workers"], False),
    ],
)
def test_users_are_limited_on_each_machine_that_accepts_them_without_a_job(groups: list[str], limited: bool) -> None:
    variables = yaml.safe_load(CLUSTER.read_text())
    environment = NativeEnvironment()
    is_open = environment.from_string(variables["__login_is_open"]).render(group_names=groups)

    found = environment.from_string(variables["login_limited"]).render(group_names=groups, __login_is_open=is_open)

    assert found is limited


@pytest.mark.parametrize("name", ["vpn", "package_cache"])
@pytest.mark.parametrize(
    ("exists", "enabled", "managed"),
    [(None, None, False), (False, None, False), (True, None, True), (None, False, True), (None, True, True)],
)
def test_what_is_no_longer_mentioned_goes(name: str, exists: object, enabled: object, managed: bool) -> None:
    expression = yaml.safe_load(CLUSTER.read_text())[f"__{name}_is_managed"]
    control: dict[str, object] = {"ansible_facts": {} if exists is None else {f"{name}_exists": exists}}
    control |= {} if enabled is None else {f"{name}_enabled": enabled}
    given: dict[str, object] = {"groups": {"control": ["c"]}, "hostvars": {"c": control}}
    given["__machine_facts"] = [control["ansible_facts"]]

    assert NativeEnvironment().from_string(expression).render(given) is managed


def test_the_doctor_watches_each_daemon_of_the_broker() -> None:
    environment = NativeEnvironment()
    environment.filters["product"] = itertools.product
    units = environment.from_string(yaml.safe_load(CLUSTER.read_text())["__doctor_units"]["control"])
    broker = ["slurmstead-broker", "rabbitmq-server", "slurmstead-redis@alice", "slurmstead-redis@bob"]

    assert units.render(celery_broker_accounts=["alice", "bob"]) == ["slurmctld", *broker]
    assert units.render(celery_broker_accounts=[]) == ["slurmctld"]
