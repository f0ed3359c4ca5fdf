"""Playbooks for what not every cluster has: without it no machine has a task of them, not even one that is skipped."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Its Python ends at once, so that any host with a task fails, and nothing is touched.
INVENTORY = """
all:
  hosts: {node1: {os_address: 192.0.2.1}, node2: {os_address: 192.0.2.2}}
  vars: {ansible_connection: local, ansible_become: false, ansible_python_interpreter: /bin/false}
control: {hosts: {node2: }}
nfs_server: {hosts: {node2: }}
workers: {hosts: {node1: }}
"""
JULIA = {"version": "1.10.5", "architecture": "x86_64", "sha256": "0" * 64}

Play = Callable[..., str]


@pytest.fixture
def play(tmp_path: pathlib.Path) -> Play:
    """Return what playbooks print with these variables."""

    def run(*playbooks: str, hosts: str = INVENTORY, limit: str = "all", **variables: object) -> str:
        (tmp_path / "hosts.yml").write_text(hosts)
        command = [sys.executable, "-m", "ansible.cli.playbook", "-i", str(tmp_path / "hosts.yml"), "--limit", limit]
        paths = [str(ROOT / "playbooks" / name) for name in playbooks]
        return subprocess.run(
            [*command, *paths, "--extra-vars", json.dumps(variables)],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path / "ansible"), "ANSIBLE_NOCOLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        ).stdout

    return run


def seen_before(directory: pathlib.Path, host: str, fact: str) -> str:
    """Return the path of a playbook after which a host has a fact of a machine that was inspected."""
    task = {"name": "See", "ansible.builtin.set_fact": {fact: True, "cacheable": True}}
    path = directory / "seen.yml"
    path.write_text(json.dumps([{"hosts": host, "tasks": [task]}]))
    return str(path)


NONE = {"accounting_enabled": False}
"""What a cluster has unless it says otherwise, switched off."""

CASES: dict[str, tuple[dict[str, object], str]] = {
    "configure-accounting.yml": ({}, "accounting"),
    "configure-broker.yml": ({"celery_broker_users": ["alice"]}, "celery_broker"),
    "configure-jupyterhub.yml": ({"jupyterhub_enabled": True}, "jupyterhub"),
    "configure-login.yml": ({"login_only_with_jobs": True}, "login"),
    "configure-package-cache.yml": ({"package_cache_enabled": True}, "packages"),
    "configure-power.yml": ({"power_method": "wake_on_lan", "power_idle": "20min"}, "power"),
    "configure-quiet.yml": ({"slurm_quiet": True}, "quiet"),
    # Its machines need its packages before those of the others are installed.
    "configure-router.yml": ({"router_interface": "eth1"}, "packages"),
    "configure-sandbox.yml": ({"sandbox_enabled": True}, "sandbox"),
    "configure-vpn.yml": ({"vpn_enabled": True}, "vpn"),
    "install-julia.yml": ({"julia_archives": [JULIA]}, "julia"),
}


def test_they_have_no_task_for_who_does_not_want_them(play: Play) -> None:
    said = play(*CASES, "clean-up-slurm.yml", "begin-on-sleepers.yml", "end-on-sleepers.yml", **NONE)

    assert "PLAY RECAP" in said
    assert "TASK" not in said
    assert not re.search(r"ok=|ERROR|WARNING", said), said


@pytest.mark.parametrize("playbook", CASES)
def test_it_has_tasks_for_who_wants_it(play: Play, playbook: str) -> None:
    variables, role = CASES[playbook]

    assert f"TASK [{role} : " in play(playbook, **variables)


def test_a_run_without_control_leaves_the_key_on_workers(play: Play) -> None:
    variables, _ = CASES["configure-power.yml"]
    without = play("configure-power.yml", limit="node1", **variables)
    told = play("configure-power.yml", limit="node1", power_key={"public": "ssh-ed25519 A"}, **variables)

    assert "PLAY RECAP" in without
    assert "TASK" not in without
    assert "TASK [power : sleeper" in told


@pytest.mark.parametrize(
    ("name", "host", "role"),
    [
        ("login", "node1", "login"),
        ("package-cache", "node1", "package_cache"),
        ("router", "node2", "packages"),
        ("vpn", "node2", "vpn"),
    ],
)
def test_a_machine_loses_what_it_has_when_its_variable_is_gone(
    play: Play, tmp_path: pathlib.Path, name: str, host: str, role: str
) -> None:
    seen = seen_before(tmp_path, host, f"{name.replace('-', '_')}_exists")

    said = play(seen, f"configure-{name}.yml", limit=host)

    assert f"TASK [{role} : " in said


PUBLISHED = {"slurmctld_configuration": {"plan": []}}
"""What control registers in a run that has published Slurm's configuration."""

LEFT = {
    "sandbox_exists": ("node1", "sandbox : Install the runtime"),
    "quiet_exists": ("node1", "Remove the programs before"),
    "slurmd_enabled": ("node2", "Remove the configuration that slurmd"),
}


@pytest.mark.parametrize("fact", LEFT)
def test_what_slurm_no_longer_uses_is_removed_once_it_is_published(
    play: Play, tmp_path: pathlib.Path, fact: str
) -> None:
    host, task = LEFT[fact]
    playbooks = (seen_before(tmp_path, host, fact), "configure-sandbox.yml", "clean-up-slurm.yml")

    refused = play(*playbooks, slurmctld_configuration={"failed": True})
    published = play(*playbooks, **PUBLISHED)

    assert "TASK [See]" in refused and refused.count("TASK [") == 1, refused
    assert f"TASK [{task}" in published


@pytest.mark.parametrize(
    ("fact", "host", "variables"),
    [
        ("sandbox_exists", "node1", {"sandbox_enabled": True}),
        ("quiet_exists", "node1", {"slurm_quiet": True}),
        ("slurmd_enabled", "node1", {}),
    ],
)
def test_what_slurm_uses_is_not_removed(
    play: Play, tmp_path: pathlib.Path, fact: str, host: str, variables: dict[str, object]
) -> None:
    said = play(seen_before(tmp_path, host, fact), "clean-up-slurm.yml", **PUBLISHED, **variables)

    assert "TASK [See]" in said and said.count("TASK [") == 1, said


def test_a_node_that_was_quiet_stays_so_until_slurm_knows(play: Play, tmp_path: pathlib.Path) -> None:
    seen = seen_before(tmp_path, "node1", "quiet_exists")
    show = tmp_path / "show.yml"
    task = {"name": "Show", "ansible.builtin.debug": {"var": "scratch_roles"}}
    show.write_text(
        json.dumps([{"hosts": "all", "vars_files": [str(ROOT / "playbooks/vars/cluster.yml")], "tasks": [task]}])
    )

    said = play(seen, str(show))

    assert re.search(r"node1\] =>\s+scratch_roles:\s+- quiet", said), said
    assert re.search(r"node2\] =>\s+scratch_roles: \[\]", said), said


def test_nodes_lose_the_julia_command_without_versions(play: Play, tmp_path: pathlib.Path) -> None:
    said = play(seen_before(tmp_path, "node1", "julia_exists"), "install-julia.yml", limit="node1")

    assert "TASK [julia : command | " in said
    assert "TASK [julia : Install the versions" not in said


def test_a_slurmdbd_of_the_site_keeps_its_files(play: Play, tmp_path: pathlib.Path) -> None:
    seen, site = seen_before(tmp_path, "node2", "accounting_exists"), {"AccountingStorageHost": "records"}

    said = play(seen, "configure-accounting.yml", limit="node2", slurm_config=site)

    assert "TASK [accounting : elsewhere | " in said
    assert "TASK [accounting : own | " not in said


@pytest.mark.parametrize("limit", ["login_user_memory: 25%", "login_user_cpus: 2"])
def test_a_limit_of_a_login_machine_alone_is_set(play: Play, limit: str) -> None:
    gate = f"login: {{hosts: {{gate: {{os_address: 192.0.2.3, {limit}}}}}}}"

    assert "TASK [login : Limit" in play("configure-login.yml", hosts=INVENTORY + gate)


def test_a_limit_of_an_nfs_server_alone_is_set(play: Play) -> None:
    store = INVENTORY.replace(
        "nfs_server: {hosts: {node2: }}", "nfs_server: {hosts: {store: {os_address: 192.0.2.3, LIMIT}}}"
    )

    assert "TASK [login : Limit" in play("configure-login.yml", hosts=store.replace("LIMIT", "login_user_cpus: 2"))
