"""`stead doctor` and `stead drift`: from what the playbooks report to lines, JSON and an exit code."""

import json
import pathlib

import pytest
import yaml

from slurmstead.cluster import ask
from slurmstead.errors import ExitCode
from slurmstead.paths import PLAYBOOKS
from tests.doctor_facts import ADDRESSES, CONTROL, FILES, KEY, healthy

pytestmark = pytest.mark.slow

JUDGE = f"""
- name: Judge
  run_once: true
  doctor_findings:
    control: {CONTROL}
    addresses: {json.dumps(ADDRESSES)}
    facts: facts
    credentials: read
    files: {json.dumps(FILES)}
    users: [{{name: alice, uid: 2001, keys: ["{KEY}"]}}]
    by_hand: [debian]
"""


@pytest.fixture
def cluster(project, monkeypatch):
    """Return a function that makes a cluster whose machines were seen and read like this, and returns its inventory."""

    def make(machines, **read):
        project.playbook(JUDGE, name="run-doctor.yml")
        monkeypatch.setattr(ask, "PLAYBOOKS", project.path)
        hosts = {name: {"facts": {"facts": seen, "offset": seen["offset"]}} for name, seen in machines.items()}
        hosts |= {name: {"facts": {"unreachable": True, "msg": "refused"}} for name in ADDRESSES.keys() - hosts}
        for name, seen in hosts.items():
            seen["read"] = read.get(name, {"refused": {}} if name in machines else {"skipped": True})
        every = {name: {"ansible_connection": "local", **seen} for name, seen in hosts.items()}
        return project.write("hosts.yml", yaml.safe_dump({"all": {"hosts": every}}))

    return make


def test_a_healthy_cluster_is_one_line(cluster, stead, capsys):
    assert stead("doctor", "-i", cluster(healthy()), "--plain") == ExitCode.OK
    assert capsys.readouterr().out == "3 machines checked, nothing found\n"


def test_each_finding_is_a_line_with_what_to_do(cluster, stead, capsys):
    machines = healthy()
    machines["node1"]["failed"] = ["backup.service"]
    machines["node2"]["name"] = "ubuntu"

    assert stead("doctor", "-i", cluster(machines), "--plain") == ExitCode.CHECK_FAILED
    said = capsys.readouterr()
    advice = "see `systemctl status backup.service`; `systemctl reset-failed` once it is fixed"
    assert said.out.splitlines() == [
        f"node1  backup.service failed: {advice}",
        "node2  its host name is ubuntu: run `stead up --tags os`",
        "3 machines checked, 2 findings",
    ]
    assert "backup" not in said.err


def test_a_machine_that_does_not_answer_is_a_finding_beside_those_of_others(cluster, stead, capsys):
    machines = healthy()
    machines["node1"]["failed"] = ["backup.service"]
    del machines["node2"]

    assert stead("doctor", "-i", cluster(machines), "--plain", "--json") == ExitCode.CHECK_FAILED
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["machines"]) == (False, 3)
    assert [(finding["host"], finding["about"]) for finding in report["findings"]] == [
        ("node1", "failed"),
        ("node2", "ssh"),
    ]


def test_a_machine_that_goes_away_before_it_reads_is_a_finding(cluster, stead, capsys):
    inventory = cluster(healthy(), node2={"unreachable": True, "msg": "Connection timed out"})

    assert stead("doctor", "-i", inventory, "--plain") == ExitCode.CHECK_FAILED
    assert "node2  it cannot be checked (Connection timed out)" in capsys.readouterr().out


def test_the_playbook_checks_what_answers_and_judges_all(project, stead, capsys):
    inventory = project.inventory("here", "gone")
    written = yaml.safe_load(inventory.read_text())
    for number, host in enumerate(written["all"]["hosts"].values()):
        host |= {"os_address": f"192.0.2.{number + 200}", "ansible_become": False}
    written |= {"control": {"hosts": {"here": None}}, "nfs_server": {"hosts": {"here": None}}}
    written |= {"workers": {"hosts": {"gone": None}}}
    inventory.write_text(yaml.safe_dump(written))

    assert stead("doctor", "-i", inventory, "--plain", "--json") == ExitCode.CHECK_FAILED
    report = json.loads(capsys.readouterr().out)
    found = {(finding["host"], finding["about"]) for finding in report["findings"]}
    assert {("gone", "ssh"), ("here", "name"), ("here", "address"), ("here", "resolution")} <= found
    assert {about for host, about in found if host == "gone"} == {"ssh"}
    assert (PLAYBOOKS / "run-doctor.yml").exists()


def test_a_job_is_explained_on_the_control_node(project, stead, capsys, monkeypatch):
    monkeypatch.setattr(ask, "PLAYBOOKS", project.path)
    project.playbook("- {name: Explain, doctor_job: {number: '{{ job_number }}'}}", name="explain-job.yml")
    inventory = project.inventory("here")

    # No slurmctld runs here.
    assert stead("doctor", "-i", inventory, "--plain", "--job", "7_2", "--json") == ExitCode.CHECK_FAILED
    told = json.loads(capsys.readouterr().out)
    assert told["hopeless"]
    assert told["lines"][0].startswith("slurmctld does not answer: ")
    assert (PLAYBOOKS / "explain-job.yml").exists()


@pytest.mark.parametrize("number", ["x", "7;true", "-1", ""])
def test_what_is_not_the_number_of_a_job_is_wrong_usage(project, stead, capsys, number):
    assert stead("doctor", "-i", project.inventory("here"), "--plain", f"--job={number}") == ExitCode.USAGE
    assert "is not the number of a job" in capsys.readouterr().err


@pytest.mark.parametrize(("there", "code"), [("other", ExitCode.CHECK_FAILED), ("text", ExitCode.OK)])
def test_drift_says_what_would_change_and_does_not_do_it(project, stead, capsys, there, code):
    file = project.write("file", there)
    project.playbook(f"- name: Write a file\n  ansible.builtin.copy: {{dest: {file}, content: text}}")

    assert stead("drift", "-i", project.inventory("here"), "--plain") == code
    said = capsys.readouterr()
    assert ("Write a file" in said.out) is (code == ExitCode.CHECK_FAILED)
    assert ("here would be changed" in said.err) is (code == ExitCode.CHECK_FAILED)
    assert file.read_text() == there


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--limit", "elsewhere"], "elsewhere"), (["-i", "none.yml"], "there is no inventory ")],
    ids=["unknown host", "unknown inventory"],
)
def test_drift_of_what_does_not_exist_is_wrong_usage(project, stead, capsys, options, said):
    project.playbook("- ansible.builtin.debug: {msg: fine}")

    assert stead("drift", "-i", project.inventory("here"), "--plain", *options) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_a_machine_that_does_not_answer_keeps_drift_from_being_none(project, stead, capsys):
    project.playbook("- {name: Look, ansible.builtin.command: 'true', changed_when: false}")

    assert stead("drift", "-i", project.inventory("here", "gone"), "--plain") == ExitCode.UNREACHABLE
    assert "gone could not be reached" in capsys.readouterr().err


def test_connections_are_those_of_the_run_alone(project, stead, monkeypatch):
    monkeypatch.setattr(ask, "PLAYBOOKS", project.path)
    told = "{{ ansible_control_path_dir }}"
    project.playbook(
        f"- ansible.builtin.copy: {{content: '{told}', dest: {project.path}/told, mode: '0600'}}",
        name="run-doctor.yml",
    )

    stead("doctor", "-i", project.inventory("here"), "--plain")

    sockets = pathlib.Path((project.path / "told").read_text())
    assert sockets.parent == project.path / "tmp"
    assert not sockets.exists()
