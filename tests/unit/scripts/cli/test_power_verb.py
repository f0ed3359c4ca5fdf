"""`stead power log` and `savings`: from the log on control to lines, CSV and JSON."""

import csv
import io
import json
import sys
import time

import pytest

from slurmstead.cli import power as verbs
from slurmstead.errors import ExitCode
from slurmstead.runner import outcome
from slurmstead.runner.events import HostEnded, Status, Task

pytestmark = pytest.mark.slow

READ = """
- name: Read
  power_journal:
    path: {path}
    days: "{{{{ power_log_days }}}}"
    nodes: "{{{{ shown_nodes | split(',') | select }}}}"
    watts: {{node1: 150}}
    price: 0.4
    watched: [node1]
"""
HOUR = 3600
RACK = f"""
all:
  vars: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}
  hosts: {{node1: {{power_method: wake_on_lan}}, node2: }}
control: {{hosts: {{node2: }}}}
workers: {{hosts: {{node1: }}}}
"""


@pytest.fixture
def control(project, monkeypatch, tmp_path):
    """Return an inventory whose control has a log with these events: hours ago, machine, event."""

    def make(*events):
        path = tmp_path / "power.log"
        lines = [
            json.dumps({"at": time.time() - ago * HOUR, "node": node, "what": what, "why": "a reason"})
            for ago, node, what in events
        ]
        if events:
            path.write_text("\n".join(lines) + "\n")
        project.playbook(READ.format(path=path), name="show-power-log.yml")
        monkeypatch.setattr("slurmstead.cluster.ask.PLAYBOOKS", project.path)
        return project.inventory("here")

    return make


EVENTS = ((100, "node1", "asleep"), (30, "node1", "awake"), (5, "node2", "asleep"), (3, "node2", "awake"))


def test_savings_are_summed_and_what_is_unknown_is_not_invented(control, stead, capsys):
    inventory = control(*EVENTS, (2, "node1", "asleep"))

    assert stead("power", "savings", "-i", inventory, "--json", "--days", "2", "--plain") == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["nodes"] == [
        {"node": "node1", "hours": 20.0, "sleeps": 2, "kwh": 3.0, "money": 1.2},
        {"node": "node2", "hours": 2.0, "sleeps": 1, "kwh": None, "money": None},
    ]
    assert found["total"] == {"node": "all", "hours": 22.0, "sleeps": 3, "kwh": 3.0, "money": 1.2}


def test_savings_are_a_table(control, stead, capsys):
    assert stead("power", "savings", "-i", control(*EVENTS), "--days", "2", "--plain") == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "node   hours  sleeps  kwh  money",
        "node1   18.0       1  2.7   1.08",
        "node2    2.0       1    -      -",
        "all     20.0       2  2.7   1.08",
    ]


def test_the_log_names_time_machine_event_and_reason(control, stead, capsys):
    assert stead("power", "log", "node2", "-i", control(*EVENTS), "--csv", "--plain") == ExitCode.OK
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["node"], row["what"], row["why"]) for row in rows] == [
        ("node2", "asleep", "a reason"),
        ("node2", "awake", "a reason"),
    ]
    assert all(len(row["at"]) == len("2026-11-25 21:30:00+00:00") for row in rows)


@pytest.mark.parametrize("verb", ["log", "savings"])
def test_a_name_that_no_worker_and_no_event_has_is_refused(control, stead, capsys, verb):
    assert stead("power", verb, "node2", "nodw1", "-i", control(*EVENTS), "--plain") == ExitCode.USAGE
    assert "nodw1 is not a worker in " in capsys.readouterr().err


def test_a_worker_without_an_event_has_an_empty_log(control, project, stead, capsys):
    control(*EVENTS)
    inventory = project.write("hosts.yml", RACK)
    assert stead("power", "log", "node1", "-i", inventory, "--days", "1", "--plain") == ExitCode.OK
    assert "Nothing was done in the last 1 days." in capsys.readouterr().err


def test_without_a_log_the_command_says_what_is_missing(control, stead, capsys):
    assert stead("power", "log", "-i", control(), "--plain") == ExitCode.CHECK_FAILED
    assert "Nothing sleeps until power_idle is set" in capsys.readouterr().err


def test_a_proof_reports_its_times_and_what_it_could_not_prove(project, stead, capsys, monkeypatch):
    monkeypatch.setattr("slurmstead.cluster.operations.PLAYBOOKS", project.path)
    found = {"node": "node1", "off": 12.3, "on": 45.6, "supply": None, "by_control": False}
    found["timeouts"] = {"ResumeTimeout": 151, "SuspendTimeout": 60}
    project.playbook(f"- name: Report\n  debug: {{msg: {{proof: {json.dumps(found)}}}}}", name="test-power.yml")
    inventory = project.write("hosts.yml", RACK)

    assert stead("power", "test", "node1", "-i", inventory, "--plain") == ExitCode.OK
    said = capsys.readouterr().out
    assert "node1: off after 12 s, ready for jobs 46 s after it was switched on" in said
    assert "only the network showed that it was off" in said
    assert "the next `up` sets ResumeTimeout=151, SuspendTimeout=60" in said


@pytest.mark.parametrize("verb", ["on", "cycle"])
def test_what_a_machine_missed_is_done_when_it_is_switched_on(project, stead, capsys, monkeypatch, verb):
    monkeypatch.setattr("slurmstead.cluster.operations.PLAYBOOKS", project.path)
    missed = {"node1": ["rotate-key", "upgrade"]}
    result = outcome.Result("switch-power.yml")
    result.add(HostEnded(Task("1", "t", action="power_missed"), "node2", Status.OK, result={"missed": missed}))
    monkeypatch.setattr(verbs, "_switch", lambda *_: result)
    monkeypatch.setattr(verbs, "SITE", project.playbook("- debug: {msg: up}", name="site.yml"))
    project.playbook("- debug: {msg: upgrade}", name="upgrade-cluster.yml")

    assert stead("power", verb, "node1", "-i", project.write("hosts.yml", RACK), "--plain") == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.err.index("slept through `up`") < shown.err.index("slept through `upgrade`")
    assert "site.yml: done" in shown.out
    assert "upgrade-cluster.yml: done" in shown.out


def test_a_machine_without_a_method_is_not_tested(project, stead, capsys):
    inventory = project.write("hosts.yml", RACK.replace("power_method: wake_on_lan", ""))

    assert stead("power", "test", "node1", "-i", inventory, "--plain") == ExitCode.USAGE
    assert "node1 has no power_method" in capsys.readouterr().err


def test_two_formats_at_once_are_refused(control, stead):
    assert stead("power", "savings", "-i", control(*EVENTS), "--csv", "--json", "--plain") == ExitCode.USAGE
