"""What touches a node or the share changes nothing while control cannot be asked which jobs run."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

INVENTORY = """
all:
  vars:
    slurm_cluster_name: lab
    ansible_python_interpreter: {python}
    ansible_become: false
  hosts:
    node1: {{ansible_connection: local, os_address: 10.0.0.1}}
    node3: {{ansible_host: 127.0.0.1, ansible_port: {port}, os_address: 10.0.0.3}}
    node4: {{ansible_connection: local, os_address: {address}}}
control: {{hosts: {{node3: }}}}
nfs_server: {{hosts: {{node4: }}}}
workers: {{hosts: {{node1: }}}}
"""


def own_address() -> str:
    """Return an address of this computer, which is the NFS server here."""
    said = subprocess.run(["ip", "--json", "-4", "address"], capture_output=True, check=True).stdout
    entries = [entry for link in json.loads(said) for entry in link["addr_info"]]
    return next(entry["local"] for entry in entries if entry["scope"] == "global")


def run(directory: pathlib.Path, playbook: str, port: int, *options: str) -> tuple[int, str]:
    """Run a playbook in check mode, so that nothing is changed here if a test fails."""
    text = INVENTORY.format(python=sys.executable, address=own_address(), port=port)
    (directory / "hosts.yml").write_text(text)
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["ansible-playbook", "-i", directory / "hosts.yml", "--check", *options, ROOT / "playbooks" / playbook],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PATH": path, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr)
    return done.returncode, " ".join(done.stdout.split())


def test_without_control_a_node_keeps_its_jobs_and_its_key(tmp_path: pathlib.Path) -> None:
    # Port 9 (discard) of loopback is closed on every machine that runs tests.
    code, said = run(tmp_path, "remove-node.yml", 9, "-e", "removed_node=node1")

    assert code != 0
    assert "node3 does not answer" in said
    assert "Stop and disable slurmd" not in said


def test_without_control_the_share_stays(tmp_path: pathlib.Path, silent_port: int) -> None:
    code, said = run(tmp_path, "move-share.yml", silent_port, "--limit", "node3,node4", "-e", "move_leave=true")

    assert code != 0
    assert "Nothing was changed on any machine, because of a failure on node3" in said
    assert "Find what uses the share" not in said
