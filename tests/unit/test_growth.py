"""What a run costs on the controlling computer grows with the number of machines, not with its square.

Counts of evaluations and of files read, not seconds, so a slow computer gives the same answer as a fast one.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[2]
HARDWARE = ROOT / "tests/unit/golden/inventory/hardware/node1.yml"
SIZES = (6, 18)

WATCH = """
import os, sys
def watch(event, arguments, directory=os.environ["WATCHED_DIRECTORY"], log=os.environ["WATCHED_LOG"]):
    if event == "open" and str(arguments[0]).startswith(directory):
        with open(log, "a") as file:
            file.write(f"{arguments[0]}\\n")
sys.addaudithook(watch)
"""
"""As sitecustomize.py, it notes each file of a directory that a Python process opens."""


class Site:
    """An inventory whose workers' addresses are computed, which leaves a line for each time."""

    def __init__(self, directory: pathlib.Path, workers: int) -> None:
        self.directory = directory
        self.asked = directory / "asked"
        self.opened = directory / "opened"
        names = [f"node{number}" for number in range(1, workers + 1)]
        note = f"{{{{ lookup('ansible.builtin.pipe', 'echo >>{self.asked}; echo 10.0.0.%d') }}}}"
        hosts: dict[str, Any] = {name: {"os_address": note % number} for number, name in enumerate(names, 1)}
        groups = {"control": ["head"], "nfs_server": ["head"], "workers": names}
        children = {group: {"hosts": dict.fromkeys(members)} for group, members in groups.items()}
        hosts["head"] = {"os_address": "10.0.1.1"}
        site = {"all": {"hosts": hosts, "children": children, "vars": {"ansible_connection": "local"}}}
        (directory / "hosts.yml").write_text(json.dumps(site))
        (directory / "hardware").mkdir()
        for name in names:
            (directory / "hardware" / f"{name}.yml").write_text(HARDWARE.read_text())
        (directory / "python").mkdir()
        (directory / "python" / "sitecustomize.py").write_text(WATCH)

    def play(self, playbook: pathlib.Path | str, *arguments: str) -> str:
        """Run a playbook, and return what it prints."""
        environment = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_LOCAL_TEMP": str(self.directory / "local"),
            "PYTHONPATH": str(self.directory / "python"),
            "WATCHED_DIRECTORY": str(self.directory / "hardware"),
            "WATCHED_LOG": str(self.opened),
        }
        done = subprocess.run(
            ["ansible-playbook", f"--inventory={self.directory}/hosts.yml", str(playbook), *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def lines(self, path: pathlib.Path) -> int:
        """Return how many lines a log has."""
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def measured(tmp_path: pathlib.Path) -> Callable[[Callable[[Site], int]], list[float]]:
    """Measure sites of both sizes; returns the measure per worker of each."""

    def measure(one: Callable[[Site], int]) -> list[float]:
        found = []
        for workers in SIZES:
            (tmp_path / str(workers)).mkdir()
            found.append(one(Site(tmp_path / str(workers), workers)) / workers)
        return found

    return measure


Measured = Callable[[Callable[[Site], int]], list[float]]


@pytest.mark.parametrize("name", ["configure-os", "configure-storage", "configure-accounts", "configure-munge"])
def test_an_address_is_computed_as_often_on_a_large_cluster(measured: Measured, name: str) -> None:
    def addresses(site: Site) -> int:
        # The argument specs of the roles are checked whatever the tags are; nothing else of the playbook runs.
        site.play(ROOT / "playbooks" / f"{name}.yml", "--tags=nothing")
        return site.lines(site.asked)

    small, large = measured(addresses)

    assert large <= 1.2 * small + 1


def test_what_is_remembered_of_a_worker_is_read_by_control_only(measured: Measured) -> None:
    def reads(site: Site) -> int:
        site.play(ROOT / "playbooks/configure-slurm.yml", "--tags=nothing")
        return site.lines(site.opened)

    small, large = measured(reads)

    assert 0 < large <= small <= 2


def test_a_configuration_is_rendered_from_one_reading_of_each_worker(
    measured: Measured, tmp_path: pathlib.Path
) -> None:
    files = [
        ROOT / "playbooks/vars/cluster.yml",
        ROOT / "roles/slurm/defaults/main.yml",
        ROOT / "roles/slurm/vars/main.yml",
    ]
    template = str(ROOT / "roles/slurmctld/templates/slurm.conf.j2")
    show = {
        "name": "Render",
        "ansible.builtin.debug": {"msg": f"{{{{ lookup('ansible.builtin.template', '{template}') }}}}"},
    }
    play = {"hosts": "control", "vars_files": [str(path) for path in files], "tasks": [show]}
    (tmp_path / "render.yml").write_text(json.dumps([play]))

    def reads(site: Site) -> int:
        assert "NodeName=node6 " in site.play(tmp_path / "render.yml")
        return site.lines(site.opened)

    assert measured(reads) == [1, 1]


def test_two_machines_decode_each_others_credentials_only_if_one_is_control(
    measured: Measured, tmp_path: pathlib.Path
) -> None:
    show = {"name": "Count", "ansible.builtin.debug": {"msg": "decodes={{ munge_credentials | length }}."}}
    play = {"hosts": "all", "vars_files": [str(ROOT / "playbooks/vars/cluster.yml")], "tasks": [show]}
    (tmp_path / "count.yml").write_text(json.dumps([play]))
    signed = {"slurm_doctor_facts": {"facts": {"credential": {"text": "MUNGE:x:"}}}}

    def decoded(site: Site) -> int:
        said = site.play(tmp_path / "count.yml", f"--extra-vars={json.dumps(signed)}")
        return sum(int(line.partition("decodes=")[2].strip(" .")) for line in said.splitlines() if "decodes=" in line)

    small, large = measured(decoded)

    assert 1 < large <= small <= 2.5
