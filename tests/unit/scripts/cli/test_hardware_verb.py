"""`stead hardware`: from what the playbook reports to tables, JSON and an exit code."""

import json

import pytest

from slurmstead.cluster import hardware
from slurmstead.errors import ExitCode
from slurmstead.paths import PLAYBOOKS

pytestmark = pytest.mark.slow

REPORT = """
- name: Look, where it can be reached
  ansible.builtin.ping:
- name: Compare
  run_once: true
  ansible.builtin.debug:
    msg:
      parameters: config_overrides
      notes: []
      nodes:
        here:
          line: NodeName=here CPUs=8
          measured: {cpus: 8}
          declared: {Weight: 10}
          rows:
            - {key: CPUs, measured: "8", declared: null, slurm_conf: "8"}
            - {key: Weight, measured: null, declared: "10", slurm_conf: "10"}
          notes:
            - {look: false, text: CPUs 4-5 are isolated}
            - {look: %s, text: cpus 8 -> 6}
"""


@pytest.fixture
def workers(project, monkeypatch):
    """Return a function that makes workers that differ from what is remembered, or not."""

    def make(differ: bool, *hosts: str):
        project.playbook(REPORT % str(differ).lower(), name="measure-hardware.yml")
        monkeypatch.setattr(hardware, "PLAYBOOKS", project.path)
        return project.inventory(*hosts)

    return make


@pytest.mark.parametrize(
    ("differ", "hosts", "code"),
    [
        (False, ["here"], ExitCode.OK),
        (True, ["here"], ExitCode.CHECK_FAILED),
        (False, ["here", "gone"], ExitCode.UNREACHABLE),
        (True, ["gone", "here"], ExitCode.UNREACHABLE),
    ],
)
def test_the_exit_code_says_whether_to_look_and_the_others_are_shown(workers, stead, capsys, differ, hosts, code):
    assert stead("hardware", "-i", workers(differ, *hosts), "--json", "--plain") == code
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is (code == ExitCode.OK)
    assert report["unreachable"] == [host for host in hosts if host == "gone"]
    assert report["parameters"] == "config_overrides"
    assert report["nodes"]["here"]["measured"] == {"cpus": 8}
    assert sorted(report["nodes"]["here"]) == ["declared", "line", "measured", "notes", "rows"]


def test_what_differs_stands_below_the_values(workers, stead, capsys):
    assert stead("hardware", "-i", workers(True, "here", "gone"), "--plain") == ExitCode.UNREACHABLE
    assert capsys.readouterr().out.splitlines() == [
        "here",
        "          measured  declared  slurm.conf",
        "  CPUs    8                   8",
        "  Weight            10        10",
        "  NodeName=here CPUs=8",
        "  look  cpus 8 -> 6",
        "  note  CPUs 4-5 are isolated",
        "SlurmdParameters=config_overrides",
        "gone  unreachable",
        "1 worker measured, 1 to check",
    ]


def test_workers_that_all_do_not_answer_are_not_called_good(workers, stead, capsys):
    assert stead("hardware", "-i", workers(False, "gone"), "--json", "--plain") == ExitCode.UNREACHABLE
    assert capsys.readouterr().out == ""


def test_an_inventory_without_workers_is_not_called_good(workers, stead):
    assert stead("hardware", "-i", workers(False), "--plain") == ExitCode.CHECK_FAILED


INVENTORY = """
all:
  vars: {ansible_connection: local, ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  hosts:
    node1: {os_address: 192.0.2.1, slurm_nodes: {node1: {CPUs: 100000}}}
control: {hosts: {node1: }}
nfs_server: {hosts: {node1: }}
workers: {hosts: {node1: }}
"""


def test_the_real_playbook_reports_this_computer_and_remembers_nothing(project, stead, capsys):
    file = project.write("inventory/hosts.yml", INVENTORY)

    assert stead("hardware", "-i", file.parent, "--json", "--plain") == ExitCode.CHECK_FAILED
    report = json.loads(capsys.readouterr().out)
    texts = [note["text"] for note in report["nodes"]["node1"]["notes"] if note["look"]]
    assert any(text.startswith("slurm_nodes: CPUs=100000 is declared, but the node has") for text in texts)
    assert report["nodes"]["node1"]["line"] is None
    assert not (file.parent / "hardware").exists()
    assert (PLAYBOOKS / "measure-hardware.yml").exists()
