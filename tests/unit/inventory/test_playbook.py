"""The real playbook on inventories of its own: what a person sees, whatever --limit says, without a connection."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[3]

GROUPS = """
control: {hosts: {node3: }}
nfs_server: {hosts: {node3: }}
workers: {hosts: {node1: , node2: }}
"""
# TEST-NET-1 (RFC 5737): nobody answers there, so a connection would take until a timeout.
HOSTS = """
all:
  hosts:
    node1: {os_address: 192.0.2.1}
    node2: {os_address: 192.0.2.2}
    node3: {os_address: 192.0.2.3}
"""

Validate = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def validate(tmp_path: pathlib.Path) -> Validate:
    """Run the playbook on an inventory of these files."""

    def run(files: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        for name, content in files.items():
            path = tmp_path / "inventory" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        command = [sys.executable, "-m", "ansible.cli.playbook", "-i", str(tmp_path / "inventory")]
        return subprocess.run(
            [*command, "playbooks/validate-inventory.yml", *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "ANSIBLE_LOCAL_TEMP": str(tmp_path / "ansible"),
                "ANSIBLE_NOCOLOR": "1",
                "COLUMNS": "400",
            },
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def problems(process: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of the message, without those of its repetition by the callback."""
    return [line.strip()[2:] for line in process.stdout.split("fatal: ")[-1].splitlines() if line.strip()[:2] == "- "]


@pytest.mark.parametrize("arguments", [[], ["--check", "--diff"], ["--limit", "node1"]], ids=" ".join)
def test_a_good_inventory_passes_without_a_connection(validate: Validate, arguments: list[str]) -> None:
    process = validate({"hosts.yml": HOSTS + GROUPS}, *arguments)

    assert process.returncode == 0, process.stdout + process.stderr
    assert "changed=0" in process.stdout
    assert "unreachable=0" in process.stdout


def test_all_problems_of_all_hosts_are_listed_under_limit(validate: Validate) -> None:
    files = {
        "hosts.yml": HOSTS.replace("192.0.2.2", "192.0.2.3") + GROUPS,
        "group_vars/workers.yml": "slurmd_optoins: -v\nslurm_partitions: '{{ partitoins }}'\n",
        "group_vars/worker.yml": "slurmd_options: -v\n",
        "host_vars/node3/vars.yml": "slurm_config: [SlurmdTimeout]\nnfs_server_disks: [/dev/sda]\n",
    }

    process = validate(files, "--limit", "node1")

    found = "\n".join(problems(process))
    assert process.returncode == 2
    assert "The inventory has 6 problems. No machine was touched." in process.stdout
    assert "group_vars/worker.yml: there is no group worker" in found
    assert "os_address (node[2-3]; " in found
    assert "group_vars/workers.yml:1): is not a variable of the role slurmd. Did you mean slurmd_options?" in found
    assert "group_vars/workers.yml:2): cannot be computed: 'partitoins' is undefined." in found
    assert 'vars.yml:1): is ["SlurmdTimeout"], which is a list. Write a mapping.' in found
    assert 'vars.yml:2): has "/dev/sda", which can name a different disk after a reboot.' in found


def test_a_host_that_stands_twice_is_named_with_both_lines(validate: Validate) -> None:
    process = validate({"hosts.yml": f"{HOSTS}    node1: {{os_address: 192.0.2.4}}\n{GROUPS}"})

    assert len(problems(process)) == 1
    assert problems(process)[0].endswith(
        "hosts.yml:7: node1 is defined again, so the definition in line 4 is lost. Keep one of them."
    )


def test_a_record_of_hardware_with_a_merge_conflict_is_refused(validate: Validate) -> None:
    both = "cpus: 4\n<<<<<<< ours\nmemory: 1\n=======\nmemory: 2\n>>>>>>> theirs\n"
    files = {"hosts.yml": HOSTS + GROUPS, "hardware/node1.yml": both, "hardware/node2.yml": "", "hardware/n.yml": "- 1"}

    found = problems(validate(files))

    listed, conflicting = [problem.rpartition("hardware/")[2] for problem in found]
    assert listed.startswith("n.yml: expected measured hardware, found [1].")
    assert conflicting.startswith("node1.yml: expected measured hardware, found no YAML (")


def test_a_time_that_yaml_reads_as_a_number_is_refused(validate: Validate) -> None:
    times = "slurm_partitions:\n  main: {Nodes: ALL, DefaultTime: '1:00:00',\n    MaxTime: 24:00:00}\n"

    process = validate({"hosts.yml": HOSTS + GROUPS, "group_vars/all.yml": times})

    (problem,) = problems(process)
    assert problem.endswith('group_vars/all.yml:3: YAML reads 24:00:00 as the number 86400. Write "24:00:00".')


def test_a_drop_in_of_the_site_is_checked(validate: Validate) -> None:
    process = validate({"hosts.yml": HOSTS + GROUPS, "files/health.d/gpu": "#!/bin/sh\n"})

    (problem,) = problems(process)
    assert re.fullmatch(r".*/inventory/files/health\.d/gpu: is not executable\. Run `chmod \+x .*`.*", problem)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("", "os_address (node1): is not set."),
        ("os_address: '{{ os_address }}'", "cannot be computed: Recursive loop"),
        ("os_address: '{{ 1 | nofilter }}'", "cannot be computed: Syntax error in template"),
        ("os_address: 10.1", 'is "10.1", which is not an IPv4 address.'),
        ("os_address: [192.0.2.1]", "which is a list. Write a string."),
    ],
)
def test_a_mistake_in_the_first_host_hides_no_other(validate: Validate, wrong: str, words: str) -> None:
    hosts = HOSTS.replace("os_address: 192.0.2.1", wrong).replace("192.0.2.2", "192.0.2.300")
    done = validate({"hosts.yml": hosts + GROUPS, "group_vars/all.yml": "ansible_host: '{{ os_address }}'\n5: x\n"})

    assert words in done.stdout
    assert 'is "192.0.2.300", which is not an IPv4 address.' in done.stdout


def test_variables_in_a_directory_with_a_slip_are_not_lost(validate: Validate) -> None:
    done = validate({"hosts.yml": HOSTS + GROUPS, "group_var/all.yml": "slurm_private_jobs: true\n"})

    assert "/group_var: is a directory that Ansible does not read. Did you mean group_vars?" in done.stdout
    assert done.returncode == 2


def test_a_variable_of_the_command_line_is_checked_too(validate: Validate) -> None:
    process = validate({"hosts.yml": HOSTS + GROUPS}, "--extra-vars", '{"slurm_partitoins": {}}')

    assert problems(process) == [
        "slurm_partitoins (node[1-3]): is not a variable of the role slurm. Did you mean slurm_partitions?"
    ]


def test_false_in_small_letters_is_refused_in_an_ini_file_and_on_the_command_line(validate: Validate) -> None:
    hosts = "node1 os_address=192.0.2.1\nnode2 os_address=192.0.2.2\nnode3 os_address=192.0.2.3\n"
    groups = "[control]\nnode3\n[nfs_server]\nnode3\n[workers]\nnode[1:2]\n"
    values = "[all:vars]\nsandbox_enabled=false\nlogin_only_with_jobs=False\n"

    found = problems(validate({"hosts.ini": hosts + groups + values}, "--extra-vars", "jupyterhub_enabled=false"))

    assert [problem.partition(" (")[0] for problem in found] == ["jupyterhub_enabled", "sandbox_enabled"]
    assert all('is "false", a text, which counts as true in conditions.' in problem for problem in found)


def test_a_value_that_looks_at_another_host_is_computed(validate: Validate) -> None:
    address = "{{ hostvars['node1'].os_address | replace('192', '127') }}"
    hosts = yaml.safe_load(HOSTS + GROUPS)
    hosts["all"]["hosts"]["node2"]["os_address"] = address

    process = validate({"hosts.yml": yaml.safe_dump(hosts)})

    assert len(problems(process)) == 1
    assert "is 127.0.2.1, which other nodes cannot reach." in problems(process)[0]


def test_no_value_of_a_secret_is_shown(validate: Validate) -> None:
    secret = "c2VjcmV0LWtleQ"
    process = validate({"hosts.yml": HOSTS + GROUPS, "group_vars/all.yml": f"munge_kye: {secret}\n"}, "-vvv", "--diff")

    assert len(problems(process)) == 1
    assert secret not in process.stdout + process.stderr


def test_400_hosts_take_seconds(validate: Validate) -> None:
    names = [f"node{number}" for number in range(1, 401)]
    hosts = {
        name: {"os_address": f"10.0.{number // 250}.{number % 250 + 1}", "ansible_host": "{{ os_address }}"}
        for number, name in enumerate(names)
    }
    inventory = {
        "all": {"hosts": hosts},
        "control": {"hosts": {names[0]: None}},
        "nfs_server": {"hosts": {names[0]: None}},
        "workers": {"hosts": dict.fromkeys(names[1:])},
    }

    process = validate({"hosts.yml": yaml.safe_dump(inventory)})

    assert process.returncode == 0, process.stdout + process.stderr
