"""A site is an inventory that Ansible reads as stead does, however it is named."""

import json
import os
import subprocess

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import ROOT

pytestmark = pytest.mark.slow

WHERE = f"""
- name: Say where things are
  hosts: control
  vars_files: [{ROOT}/playbooks/vars/cluster.yml]
  tasks:
    - name: Say it
      ansible.builtin.fail:
        msg: "[{{{{ __hardware_directory }}}}] [{{{{ ansible_host }}}}] [{{{{ groups['all'] | join(' ') }}}}]"
"""


def ansible(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program of Ansible as a person in the clone does."""
    return subprocess.run(
        [program, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(params=["", "/hosts.yml"], ids=["directory", "hosts.yml"])
def named(request, site) -> str:
    """The site of three machines as `-i` names it."""
    return f"{site}{request.param}"


def test_a_new_site_is_a_valid_inventory(named):
    done = ansible("ansible-playbook", "-i", named, "playbooks/validate-inventory.yml")
    assert done.returncode == 0, done.stdout + done.stderr

    listed = json.loads(ansible("ansible-inventory", "-i", named, "--list").stdout)
    assert listed["workers"]["hosts"] == ["node1", "node2"]
    assert listed["_meta"]["hostvars"]["node1"]["ansible_user"] == "ansible"


def test_hardware_and_files_are_beside_the_inventory_and_no_part_of_it(project, site, named):
    (site / "hardware/node1.yml").write_text("cpus: 8\n")
    (site / "files/people.yml").write_text("all: {hosts: {stranger: }}\n")

    done = ansible("ansible-playbook", "-i", named, project.write("where.yml", WHERE))
    assert f"[{site}/hardware] [192.0.2.3] [node1 node2 node3]" in " ".join(done.stdout.split()), (
        done.stdout + done.stderr
    )
    assert "WARNING" not in done.stderr


def test_stead_reads_the_same_inventory(project, site, named, stead, capsys):
    project.write("site.yml", WHERE)

    stead("up", "-i", named, "--plain")
    assert f"[{site}/hardware] [192.0.2.3] [node1 node2 node3]" in capsys.readouterr().err


def test_notes_in_a_site_are_not_taken_for_machines(site, stead, capsys):
    (site / "notes").write_text("buy a fan\n")
    assert stead("reboot", "fan", "-i", site) == ExitCode.USAGE
    assert "The workers are node1, node2." in capsys.readouterr().err


def test_an_example_is_refused_until_it_is_filled_in(ann, stead):
    assert stead("init", "c") == ExitCode.OK

    done = ansible("ansible-playbook", "-i", ann / "c/hosts.yml", "playbooks/validate-inventory.yml")
    assert done.returncode == 2
    assert "The inventory has 3 problems. No machine was touched." in done.stdout
    for machine, line in (("head", 17), ("node1", 20), ("node2", 23)):
        place = f"os_address ({machine}; {os.path.relpath(ann / 'c/hosts.yml', ROOT)}:{line})"
        assert f'{place}: is "ADDRESS-OF-{machine.upper()}", which is not an IPv4 address.' in done.stdout


def test_a_filled_in_example_is_good(ann, stead):
    assert stead("init", "c") == ExitCode.OK
    hosts = ann / "c/hosts.yml"
    text = hosts.read_text()
    for number, machine in enumerate(("HEAD", "NODE1", "NODE2"), start=1):
        text = text.replace(f"ADDRESS-OF-{machine}", f"192.0.2.{number}")
    hosts.write_text(text)

    done = ansible("ansible-playbook", "-i", hosts, "playbooks/validate-inventory.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "playbook", ["site.yml", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("playbooks/b*.yml"))]
)
def test_ansible_without_a_site_ends_and_says_why(playbook: str):
    done = ansible("ansible-playbook", playbook)
    assert done.returncode != 0
    assert "no site given: add -i DIR/hosts.yml" in done.stderr
    assert "PLAY" not in done.stdout
