"""The role machine_check with a machine_state that only pretends: who is refused, and in which words."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

MODULE = """
import json
from ansible.module_utils.basic import AnsibleModule

lists, dicts = dict(type="list"), dict(type="dict")
options = dict(releases=dicts, groups=lists, users=lists, address=dict(), host_name=dict(), node=dicts, share=dicts)
options |= {name: dict(type="bool") for name in ("has_broker", "has_people", "has_users", "is_control")}
options |= dict(by_hand=lists)
module = AnsibleModule(argument_spec=options)
seen = json.loads(%r)[module.params["address"]]
facts = {"packages": [], "slurm_version": seen["version"]}
problems = seen["problems"] if module.params["is_control"] == (seen["name"] == "node1") else ["not the controller"]
queue = {"has_queue": seen["has_queue"], "jobs": seen["jobs"]}
module.exit_json(changed=False, problems=problems, share=seen["share"], ansible_facts=facts, **queue)
"""

Check = Callable[..., list[str]]


def mounted(name: str, server: str, source: str) -> dict[str, Any]:
    """What a machine has of a share that it mounts at /share, or that it exports."""
    client = {"server": "" if name == server else server, "source": source, "path": "/share"}
    exported = source if name == server else ""
    return {"clients": [client], "exported": exported, "data": bool(exported), "copy_of": "", "readonly": False}


@pytest.fixture
def check(tmp_path: pathlib.Path) -> Check:
    """Return a function that checks node1, the controller, and so on, and returns the lines of the refusal."""

    def run(
        *versions: str | None,
        problems: tuple[str, ...] = (),
        disks_refused: tuple[str, ...] = (),
        limit: str = "all",
        share: tuple[str, str] = ("node1", "/srv/share"),
        moves: bool = False,
        queue: bool = True,
        restores: bool = False,
    ) -> list[str]:
        names = [f"node{number}" for number, _ in enumerate(versions, start=1)]
        hosts = {name: {"os_address": name} for name in names}
        seen = {
            name: {
                **{"name": name, "version": version, "problems": list(problems), "share": mounted(name, *share)},
                **{"has_queue": queue and name == "node1", "jobs": [] if name == "node1" else ["7"]},
            }
            for name, version in zip(names, versions, strict=True)
        }
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        groups = {group: {"hosts": {"node1": None}} for group in ("control", "nfs_server", "workers")}
        play = {"hosts": "all", "vars_files": [str(ROOT / "playbooks/vars/cluster.yml")]}
        play["vars"] = {"machine_check_share_moves": moves, "machine_check_restores": restores}
        look = {"name": "Look", "ansible.builtin.import_role": {"name": "machine_check", "tasks_from": "inspect"}}
        disks = {"name": "Probe", "ansible.builtin.set_fact": {"scratch_probe": {"problems": list(disks_refused)}}}
        files = {
            "hosts.yml": yaml.safe_dump({"all": {"vars": local, "hosts": hosts}, **groups}),
            "check.yml": yaml.safe_dump([{**play, "tasks": [look, disks]}, {**play, "roles": ["machine_check"]}]),
            "library/machine_state.py": MODULE % json.dumps(seen),
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        done = subprocess.run(
            ["ansible-playbook", "-i", str(tmp_path / "hosts.yml"), "--limit", limit, str(tmp_path / "check.yml")],
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"),
                "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
                "ANSIBLE_NOCOLOR": "1",
                "LC_ALL": "C.UTF-8",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        lines = done.stdout.partition("msg: |-")[2].splitlines()[1:]
        refusal = [line.strip() for line in lines[: lines.index("")]] if lines else []
        assert (done.returncode == 0) is not bool(refusal), done.stdout + done.stderr
        return refusal

    return run


def test_versions_that_can_talk_pass(check: Check) -> None:
    assert check("23.11", "22.05", "23.11") == []


def test_versions_that_cannot_talk_are_refused_beside_all_other_problems(check: Check) -> None:
    assert check("24.11", "22.05", "23.11", problems=("os_address: wrong",), disks_refused=("sda: not blank",)) == [
        "Nothing was changed on any machine, because:",
        "node1: os_address: wrong",
        "node1: sda: not blank",
        "node2: os_address: wrong",
        "node2: sda: not blank",
        "node3: os_address: wrong",
        "node3: sda: not blank",
        "node2: its release has Slurm 22.05, but node1 will have 24.11, which is compatible with 23.02 to 24.11; "
        "install the same release on both",
    ]


def test_a_controller_outside_of_the_limit_is_not_compared(check: Check) -> None:
    assert check("24.11", "22.05", limit="node2") == []


def test_another_server_and_directory_than_the_shares_are_one_refusal(check: Check) -> None:
    assert check("22.05", "22.05", share=("node2", "/data")) == [
        "Nothing was changed on any machine, because:",
        "the inventory has another share than the machines: group nfs_server: now node2, in the inventory node1 (on "
        "node1, node2); nfs_server_path and nfs_client_source: now /data, in the inventory /srv/share (on node1, "
        "node2). Jobs and homes would lose their files. Set the earlier value again, or move the share with all its "
        "files: scripts/stead move-share",
    ]


def test_a_control_without_a_queue_ends_no_job(check: Check) -> None:
    """As after a new installation of control: only a backup of the queue knows the jobs that run."""
    _, refused = check("22.05", "22.05", "22.05", queue=False)

    assert refused.startswith("node1: it has no queue, but jobs 7 run on node[2-3]; a new slurmctld would end them.")
    assert check("22.05", "22.05", queue=False, restores=True) == []
    assert check("22.05", queue=False) == []


def test_a_run_that_moves_the_share_passes(check: Check) -> None:
    assert check("22.05", "22.05", share=("node2", "/data"), moves=True) == []


def plays(playbook: pathlib.Path) -> list[dict[str, Any]]:
    """Return the plays of a playbook and of those that it imports, in their order."""
    found = []
    for play in yaml.safe_load(playbook.read_text()):
        imported = play.get("ansible.builtin.import_playbook")
        found += plays(playbook.parent / imported) if imported else [play]
    return found


def has_role(play: dict[str, Any], name: str) -> bool:
    """Say whether all tasks of a role are in a play."""
    return any((role.get("role") if isinstance(role, dict) else role) == name for role in play.get("roles", ()))


@pytest.mark.parametrize("playbook", ["site.yml", *(f"playbooks/{path.name}" for path in ROOT.glob("playbooks/*.yml"))])
def test_no_share_is_exported_before_the_inventory_was_compared_with_the_machines(playbook: str) -> None:
    every = plays(ROOT / playbook)
    exporting = [number for number, play in enumerate(every) if has_role(play, "nfs_server")]
    if exporting and playbook != "playbooks/configure-storage.yml":
        assert any(has_role(play, "machine_check") for play in every[: exporting[0]])
