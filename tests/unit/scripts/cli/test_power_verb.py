"""`stead power log` and `savings`: from the log on control to lines, CSV and JSON."""

import csv
import io
import json
import time

import pytest

from slurmstead.cluster import power
from slurmstead.errors import ExitCode

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
        monkeypatch.setattr(power, "PLAYBOOKS", project.path)
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


def test_without_a_log_the_command_says_what_is_missing(control, stead, capsys):
    assert stead("power", "log", "-i", control(), "--plain") == ExitCode.CHECK_FAILED
    assert "Nothing sleeps until power_idle is set" in capsys.readouterr().err


def test_two_formats_at_once_are_refused(control, stead):
    assert stead("power", "savings", "-i", control(*EVENTS), "--csv", "--json", "--plain") == ExitCode.USAGE
