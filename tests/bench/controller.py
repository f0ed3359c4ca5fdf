"""Measures on the controlling computer: what Ansible and the doctor cost for many hosts. No machine is connected to."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

from ansible.module_utils.slurmstead.doctor.findings import Cluster, findings
from slurmstead.paths import PLAYBOOKS, ROOT
from tests import doctor_facts

HARDWARE = ROOT / "tests/unit/golden/inventory/hardware/node1.yml"
ROLES = ("configure-os", "configure-storage", "configure-accounts", "configure-munge", "configure-slurm")
"""Playbooks whose roles run on all hosts."""

RENDER = {
    "hosts": "control",
    "vars_files": [
        str(ROOT / path)
        for path in ("playbooks/vars/cluster.yml", "roles/slurm/defaults/main.yml", "roles/slurm/vars/main.yml")
    ],
    "tasks": [
        {
            "name": "Render slurm.conf",
            "ansible.builtin.debug": {
                "msg": f"{{{{ lookup('template', '{ROOT}/roles/slurmctld/templates/slurm.conf.j2') }}}}"
            },
        }
    ],
}


def write_site(directory: pathlib.Path, workers: int) -> None:
    """Write an inventory of a head node and workers, with the recorded hardware of each."""
    names = [f"node{number}" for number in range(1, workers + 1)]
    hosts = {name: {"os_address": f"10.1.{number // 250}.{number % 250 + 1}"} for number, name in enumerate(names)}
    hosts["head"] = {"os_address": "10.2.0.1"}
    groups = {"control": ["head"], "nfs_server": ["head"], "workers": names}
    children = {group: {"hosts": dict.fromkeys(members)} for group, members in groups.items()}
    (directory / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts, "children": children}}))
    (directory / "hardware").mkdir()
    for name in names:
        (directory / "hardware" / f"{name}.yml").write_text(HARDWARE.read_text())
    (directory / "render.yml").write_text(json.dumps([RENDER]))


def play(directory: pathlib.Path, *arguments: str, seconds: float) -> dict[str, float]:
    """Run ansible-playbook; return its duration and processor time in seconds, and the memory of its largest process.

    :raises subprocess.TimeoutExpired: it took longer than allowed
    """
    settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_LOCAL_TEMP": str(directory / "local")}
    command = [sys.executable, "-m", "ansible.cli.playbook", f"--inventory={directory}/hosts.yml", *arguments]
    with (directory / "output").open("w+") as output:
        started = time.monotonic()
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=output, stderr=output)
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            if time.monotonic() - started > seconds:
                process.kill()
                process.wait()
                raise subprocess.TimeoutExpired(command, seconds)
            time.sleep(0.1)
        _, process.returncode, used = ended
        wall = time.monotonic() - started
        output.seek(0)
        assert not process.returncode, output.read()[-4000:]
    return {"s": wall, "CPU s": used.ru_utime + used.ru_stime, "MiB": used.ru_maxrss / 1024}


def validation(directory: pathlib.Path, seconds: float) -> dict[str, float]:
    """Validate the inventory."""
    used = play(directory, str(PLAYBOOKS / "validate-inventory.yml"), seconds=seconds)
    return {f"validate, {unit}": value for unit, value in used.items()}


def rendering(directory: pathlib.Path, seconds: float) -> dict[str, float]:
    """Render slurm.conf from the recorded hardware."""
    used = play(directory, str(directory / "render.yml"), seconds=seconds)
    return {f"slurm.conf, {unit}": value for unit, value in used.items()}


def arguments(directory: pathlib.Path, seconds: float) -> dict[str, float]:
    """Compute and check the arguments of all roles on all hosts: the part of `up` that no machine answers for."""
    playbooks = [str(PLAYBOOKS / f"{name}.yml") for name in ROLES]
    used = play(directory, *playbooks, "--tags=nothing", seconds=seconds)
    return {f"roles' arguments, {unit}": value for unit, value in used.items()}


def judgement(workers: int) -> dict[str, float]:
    """Judge the facts of all machines, as the last step of the doctor."""
    control = doctor_facts.CONTROL
    names = [f"n{number}" for number in range(1, workers + 1)]
    machines: dict[str, dict[str, Any]] = {control: doctor_facts.machine(control)}
    for number, name in enumerate(names):
        facts = copy.deepcopy(doctor_facts.machine("node1"))
        machines[name] = {**facts, "name": name, "addresses": [f"10.3.{number // 250}.{number % 250 + 1}"]}
    known = {"State": "IDLE", "Version": "22.05.8"}
    machines[control]["slurm"]["nodes"] = {name: {"NodeName": name, **known} for name in names}
    addresses = {name: facts["addresses"][-1] for name, facts in machines.items()}
    started = time.process_time()
    findings(Cluster(control, addresses, machines, files=doctor_facts.FILES))
    return {"doctor's judgement, CPU s": time.process_time() - started}
