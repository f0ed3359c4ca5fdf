"""remove-node.yml touches nothing while control cannot be asked which jobs run on the node."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Port 9 (discard) of loopback is closed on every machine that runs tests.
INVENTORY = """
all:
  vars:
    slurm_cluster_name: lab
    ansible_python_interpreter: {python}
    ansible_become: false
  hosts:
    node1: {{ansible_connection: local, os_address: 10.0.0.1}}
    node3: {{ansible_host: 127.0.0.4, ansible_port: 9, os_address: 10.0.0.3}}
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


@pytest.mark.slow
def test_without_control_a_node_keeps_its_jobs_and_its_key(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hosts.yml").write_text(INVENTORY.format(python=sys.executable, address=own_address()))
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    # In check mode, so that nothing is changed here if this fails.
    options = ("--check", "--limit", "node1,node3,node4", "-e", "removed_node=node1")
    done = subprocess.run(
        ["ansible-playbook", "-i", tmp_path / "hosts.yml", *options, ROOT / "playbooks/remove-node.yml"],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PATH": path, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr)

    assert done.returncode != 0
    assert "node3 does not answer" in " ".join(done.stdout.split())
    assert "Stop and disable slurmd" not in done.stdout
