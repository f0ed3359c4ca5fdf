"""Problems that would stop a run are reported before anything is changed."""

from __future__ import annotations

import json
import pathlib
import platform
import re
import types
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.firewall import sshd
from ansible.module_utils.slurmstead.power import watch
from ansible.module_utils.slurmstead.power.decide import Memory
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

RunModule = Callable[..., Any]

ROOT = pathlib.Path(__file__).resolve().parents[3]

SUPPORTED = {"debian": ["12", "13"], "ubuntu": ["24.04"]}
LINKS = [
    {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "scope": "host"}, {"local": "::1", "scope": "host"}]},
    {"ifname": "eth0", "addr_info": [{"local": "10.0.2.15", "scope": "global"}]},
    {
        "ifname": "eth1",
        "addr_info": [{"local": "10.77.0.1", "scope": "global"}, {"local": "fe80::1", "scope": "link"}],
    },
    {"ifname": "eth2"},
]
INSTALLED = "installed munge\nconfig-files slurmd\nnot-installed nfs-common\ninstalled chrony"


@pytest.fixture
def machine_state(load_module: Callable[[str], types.ModuleType]) -> types.ModuleType:
    return load_module("machine_state")


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, machine_state: types.ModuleType) -> None:
    """A supported machine that has the addresses of LINKS and the packages of INSTALLED, and starts no slurmd."""
    for command, output in {"ip": json.dumps(LINKS), "dpkg-query": INSTALLED}.items():
        (tmp_path / command).write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
        (tmp_path / command).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_ID": "12"})
    monkeypatch.setattr(sshd, "penalizes", lambda: True)
    monkeypatch.setattr(machine_state, "SLURMD", tmp_path / "slurmd.service")


@pytest.mark.parametrize(("distribution", "version"), [("debian", "12"), ("debian", "13"), ("ubuntu", "24.04")])
def test_a_supported_release_is_no_problem(machine_state: types.ModuleType, distribution: str, version: str) -> None:
    assert machine_state.release_problems({"ID": distribution, "VERSION_ID": version}, SUPPORTED) == []


@pytest.mark.parametrize(
    "release",
    [
        {"ID": "debian", "VERSION_ID": "11", "PRETTY_NAME": "Debian GNU/Linux 11 (bullseye)"},
        {"ID": "ubuntu", "VERSION_ID": "12", "PRETTY_NAME": "Ubuntu 12"},
        {"ID": "debian", "PRETTY_NAME": "Debian GNU/Linux forky/sid"},
        {"PRETTY_NAME": "Something"},
    ],
    ids=["older", "another's number", "no number", "nothing"],
)
def test_another_release_is_named_with_those_that_are_supported(
    machine_state: types.ModuleType, release: dict[str, str]
) -> None:
    assert machine_state.release_problems(release, SUPPORTED) == [
        f"{release['PRETTY_NAME']} is not supported; install debian 12 or 13, ubuntu 24.04"
    ]


@pytest.mark.usefixtures("machine")
def test_a_broker_is_refused_where_redis_is_too_old(run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "ubuntu", "VERSION_ID": "22.04"})
    given = {"releases": {"ubuntu": ["22.04"]}, "address": "10.77.0.1"}

    assert run_module("machine_state", **given).result["problems"] == []
    (problem,) = run_module("machine_state", has_broker=True, **given).result["problems"]
    assert problem.startswith("celery_broker_users: the broker needs Redis 6.2 or newer, but Ubuntu 22.04 has 6.0;")


@pytest.mark.usefixtures("machine")
def test_a_node_of_which_a_job_has_switched_cpus_off_is_not_measured(
    run_module: RunModule, machine_state: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    given = {"releases": SUPPORTED, "address": "10.77.0.1", "node": {"CPUs": 100_000}}
    monkeypatch.setattr(machine_state.measure, "QUIET", tmp_path / "quiet.json")
    before = run_module("machine_state", **given).result["problems"]
    (tmp_path / "quiet.json").touch()

    assert len(before) == 1
    assert run_module("machine_state", **given).result["problems"] == []


def test_who_sleeps_is_what_the_watch_remembers(
    machine_state: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """Control keeps what it needs to wake them, also if they may not sleep any more."""
    memories = watch.Memories(tmp_path / watch.MEMORY)
    memories.machines = {"n1": Memory(asleep=True), "n2": Memory(), "n3": Memory(told=1000.0)}
    assert machine_state.POWER_MEMORY == watch.STATE / watch.MEMORY
    monkeypatch.setattr(machine_state, "POWER_MEMORY", memories.path)
    before = machine_state.asleep()
    memories.save()

    assert (before, machine_state.asleep()) == ([], ["n1", "n3"])


@pytest.mark.parametrize("address", ["10.0.2.15", "10.77.0.1"])
def test_an_address_of_the_machine_is_no_problem(machine_state: types.ModuleType, address: str) -> None:
    assert machine_state.address_problems(address, LINKS) == []


@pytest.mark.parametrize("address", ["10.77.0.2", "127.0.0.1", "fe80::1"])
def test_an_address_that_others_cannot_reach_is_named_with_those_it_has(
    machine_state: types.ModuleType, address: str
) -> None:
    assert machine_state.address_problems(address, LINKS) == [
        f"os_address: {address} is declared, but this machine has 10.0.2.15, 10.77.0.1; correct one of them"
    ]


def test_a_machine_without_addresses_is_said_to_have_none(machine_state: types.ModuleType) -> None:
    assert "this machine has no address;" in machine_state.address_problems("10.77.0.1", LINKS[:1])[0]


@pytest.mark.usefixtures("machine")
def test_a_good_machine_has_no_problem_and_tells_its_packages(run_module: RunModule) -> None:
    done = run_module("machine_state", releases=SUPPORTED, address="10.77.0.1")

    assert (done.changed, done.result["problems"]) == (False, [])
    assert done.result["ansible_facts"] == {
        "packages": ["chrony", "munge"],
        "packages_interrupted": False,
        "slurm_version": "22.05",
        "accounting_exists": False,
        "broker_exists": False,
        "jupyterhub_exists": False,
        "julia_exists": False,
        "login_exists": False,
        "package_cache_exists": False,
        "power_asleep": [],
        "power_saving_exists": False,
        "quiet_exists": False,
        "sandbox_exists": False,
        "slurmd_enabled": False,
        "sshd_penalizes": True,
        "router_exists": False,
        "vpn_exists": False,
    }


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("given", "job", "problems"),
    [
        ({"host_name": "ctl"}, "RUNNING", 1),
        ({"host_name": "ctl"}, "PENDING", 0),
        ({"host_name": "node3"}, "RUNNING", 0),
        ({"host_name": "ctl", "is_control": False}, "RUNNING", 0),
    ],
    ids=["runs", "waits", "the same name", "not control"],
)
def test_control_gets_no_other_name_while_jobs_run(
    run_module: RunModule,
    machine_state: types.ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    given: dict[str, Any],
    job: str,
    problems: int,
) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nSlurmctldHost=node3(10.77.0.3)\n")
    slurm = types.SimpleNamespace(state=lambda: State((Job("7", job, "main", ("n1",)),)))
    monkeypatch.setattr(machine_state, "Slurm", lambda: slurm)
    monkeypatch.setattr(machine_state, "SLURM_CONF", tmp_path / "slurm.conf")

    found = run_module("machine_state", releases=SUPPORTED, address="10.77.0.1", **given).result["problems"]

    assert [line.partition(",")[0] for line in found] == ["group control: slurmctld runs as node3"] * problems


@pytest.mark.usefixtures("machine")
def test_the_julia_command_of_another_is_not_ours(
    run_module: RunModule, machine_state: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    ours = ROOT / "roles/julia/templates/julia.j2"
    (tmp_path / "other").write_text("#!/bin/sh\nexec /opt/julia/bin/julia\n")
    for path, found in ((ours, True), (tmp_path / "other", False), (tmp_path, False)):
        monkeypatch.setattr(machine_state, "JULIA", path)
        done = run_module("machine_state", releases=SUPPORTED, address="10.77.0.1")
        assert done.result["ansible_facts"]["julia_exists"] == found


@pytest.mark.usefixtures("machine")
def test_an_interrupted_dpkg_is_seen(
    run_module: RunModule,
    machine_state: types.ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    journal = tmp_path_factory.mktemp("updates")
    monkeypatch.setattr(machine_state.apt, "JOURNAL", journal)
    (journal / "0000").touch()

    done = run_module("machine_state", releases=SUPPORTED, address="10.77.0.1")

    assert done.result["ansible_facts"]["packages_interrupted"]


@pytest.mark.usefixtures("machine")
def test_all_problems_are_said_at_once(run_module: RunModule) -> None:
    done = run_module(
        "machine_state",
        releases={"debian": ["13"]},
        address="192.0.2.1",
        groups=[{"name": "chemistry", "gid": 0}],
        users=[{"name": "root", "uid": 2001, "group": "chemistry"}],
        node={"RealMemory": 1 << 40},
    )

    assert [problem.partition(" ")[0] for problem in done.result["problems"]] == [
        "this",
        "os_address:",
        "accounts_groups:",
        "accounts_users:",
        "slurm_nodes:",
    ]


@pytest.mark.parametrize("role", ["jupyterhub", "package_cache", "power", "vpn"])
def test_what_shows_a_role_is_removed_last(machine_state: types.ModuleType, role: str) -> None:
    """Otherwise a run that is interrupted there leaves the rest, because the next one does not find the role."""
    stop, remove = yaml.safe_load((ROOT / "roles" / role / "tasks/absent.yml").read_text())
    shown = getattr(machine_state, {"power": "POWER_SAVING"}.get(role, role.upper()))

    assert stop["systemd_unit"]["state"] == "stopped"
    assert remove["config_files"]["files"][-1] == {"path": str(shown), "state": "absent"}


@pytest.mark.usefixtures("machine")
def test_a_missing_list_locks_no_account(
    run_module: RunModule, machine_state: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = machine_state.departures.Made
    record = {
        **{name: made(uid) for name, uid in {"ann": 10002, "bob": 10003, "eve": 2001}.items()},
        **{"old": made(10009, left=True), "kim": made(2002, in_people=True), "leo": made(10050, in_people=False)},
    }
    known = machine_state.accounts.Known({name: made.uid for name, made in record.items()}, {}, {})
    monkeypatch.setattr(machine_state.departures, "read", lambda path: {**record, "deleted": made(10004)})
    monkeypatch.setattr(machine_state.accounts, "known", lambda: known)
    given = {"releases": SUPPORTED, "address": "10.77.0.1", "users": [{"name": "bob", "uid": 10003}]}

    assert run_module("machine_state", **given).result["problems"] == []
    (problem,) = run_module("machine_state", has_people=False, **given).result["problems"]
    assert problem.startswith(
        "files/people.yml is missing, so ann, kim would be locked and lose their jobs; restore the file"
    )
    (problem,) = run_module("machine_state", has_users=False, **given).result["problems"]
    assert problem == (
        "accounts_users is not defined, so leo would be locked and lose their jobs; restore it, or write "
        "`accounts_users: []` if all of them leave"
    )


def test_a_controller_that_leaves_its_group_is_refused(machine_state: types.ModuleType, tmp_path: pathlib.Path) -> None:
    published = tmp_path / "slurmstead" / "good"
    published.parent.mkdir()
    assert machine_state.controller_problems(False, published) == []
    published.symlink_to("2026-11-27T10.00.00.good")

    assert machine_state.controller_problems(True, published) == []
    (problem,) = machine_state.controller_problems(False, published)
    assert problem.startswith("this machine has the cluster's queue, but is not in the group control;")


SMALL = {"cpus": 4, "sockets": 1, "cores_per_socket": 4, "threads_per_core": 1, "memory": 8000}


@pytest.mark.parametrize(
    ("declared", "numbers"),
    [
        ({"RealMemory": 8001}, ["8001", "8000"]),
        ({"CPUs": 5}, ["5", "4"]),
        ({"Sockets": 2, "CoresPerSocket": 4}, ["8", "4"]),
    ],
)
def test_more_than_there_is_is_refused_with_both_numbers(
    machine_state: types.ModuleType, declared: dict[str, Any], numbers: list[str]
) -> None:
    (problem,) = machine_state.node_problems(SMALL, declared, "22.05")

    assert set(numbers) <= set(re.findall(r"\d+", problem))


@pytest.mark.parametrize("declared", [{}, {"RealMemory": 8000}, {"CPUs": 2}, {"Weight": 10}])
def test_no_more_than_there_is_is_no_problem(machine_state: types.ModuleType, declared: dict[str, Any]) -> None:
    assert machine_state.node_problems(SMALL, declared, "22.05") == []
