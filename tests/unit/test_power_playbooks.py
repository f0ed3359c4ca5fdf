"""What playbooks do while machines are off, with the real ansible-playbook and ssh."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import yaml
from jinja2.nativetypes import NativeEnvironment

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

# Port 9 (discard) of loopback is closed on every machine that runs tests: nobody is behind it.
INVENTORY = """
all:
  vars: {{ansible_host: 127.0.0.1, ansible_port: 9, ansible_python_interpreter: {python}}}
  hosts: {{node1: {{ansible_port: {port}}}, node2: , node3: {{ansible_port: {control}}}}}
control: {{hosts: {{node3: }}}}
nfs_server: {{hosts: {{{server}: }}}}
workers: {{hosts: {{node1: , node2: }}}}
"""


def run(
    directory: pathlib.Path, playbook: str, port: int = 9, control: int = 9, server: str = "node3", **given: str
) -> tuple[int, str]:
    """Run a playbook on a cluster that is off, except for node1 and control where ports are given."""
    (directory / "hosts.yml").write_text(
        INVENTORY.format(python=sys.executable, port=port, control=control, server=server)
    )
    words = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
    settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["ansible-playbook", "-i", directory / "hosts.yml", *words, ROOT / "playbooks" / playbook],
        env={**os.environ, **settings, "PATH": path, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_where_nobody_answers_the_cluster_is_not_called_off(tmp_path: pathlib.Path) -> None:
    code, said = run(tmp_path, "shut-down-cluster.yml")

    assert code != 0
    assert "No machine answers, and nothing was switched off" in said
    assert "changed=1" not in said


def test_without_control_no_worker_is_switched_off(tmp_path: pathlib.Path, silent_port: int) -> None:
    code, said = run(tmp_path, "shut-down-cluster.yml", silent_port)

    assert code != 0
    assert "node3 is off, and only slurmctld knows which jobs run on node1. Switch node3 on" in said
    assert "Switch the worker off" not in said


def test_where_control_cannot_be_logged_in_to_no_worker_is_switched_off(
    tmp_path: pathlib.Path, silent_port: int
) -> None:
    code, said = run(tmp_path, "shut-down-cluster.yml", silent_port, control=silent_port)

    assert code != 0
    assert said.count("unreachable=1") == 1
    assert "Switch the worker off" not in said


def test_where_control_does_not_answer_no_image_is_removed(tmp_path: pathlib.Path) -> None:
    code, said = run(tmp_path, "change-images.yml", server="node1", image_state="absent", image_name="python")

    assert code != 0
    assert said.count("unreachable=1") == 1
    assert "Make, list or remove images" not in said


def test_where_a_machine_cannot_be_looked_at_the_shutdown_ends(tmp_path: pathlib.Path, silent_port: int) -> None:
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "node2.yml").write_text('ansible_ssh_common_args: "\'"\n')

    code, said = run(tmp_path, "shut-down-cluster.yml", silent_port, control=silent_port)

    assert code != 0
    assert "No closing quotation" in said
    assert "Refuse to switch off workers" not in said


def test_a_start_waits_for_control_first_and_names_it(tmp_path: pathlib.Path) -> None:
    code, said = run(tmp_path, "start-cluster.yml", start_deadline="0")

    assert code != 0
    assert "node3 was not reached within 0 min" in said
    assert said.count("unreachable=1") == 1
    assert "Wait until the worker accepts logins" not in said


def test_workers_that_are_off_or_asleep_get_no_jobs_after_a_move_of_the_share() -> None:
    """They still have the earlier share."""
    plays = yaml.safe_load((ROOT / "playbooks/move-share.yml").read_text())
    order = [play["name"] for play in plays]
    begin = order.index("Keep jobs from the workers that sleep")
    resumed = next(play for play in plays if play["name"] == "Release the jobs")["tasks"][0]["worker_service"]
    environment = NativeEnvironment()
    environment.filters["intersect"] = lambda one, other: [name for name in one if name in other]
    groups = {"workers": ["node1", "node2"], "__machines_on": ["node1", "node3"]}

    assert plays[begin]["ansible.builtin.import_playbook"] == "begin-on-sleepers.yml"
    assert plays[begin]["vars"] == {"__operation": "up"}
    assert order.index("Find the machines that are on") < begin < order.index("Check the jobs")
    assert environment.from_string(resumed["workers"]).render(groups=groups) == ["node1"]
