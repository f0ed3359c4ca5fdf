"""`stead faults`: the table of what a lab survived, kept line by line."""

import json

import pytest

from slurmstead.errors import ExitCode
from slurmstead.lab import faults
from slurmstead.lab.faults import FAULTS, Trial
from slurmstead.paths import lab_directory

NOW = {"commit": "abc1234", "at": "2026-11-21T20:10:05+00:00"}
SURVIVED = Trial(True, 61.2)
LOST = Trial(False, 0.0, "job 7 is gone")


@pytest.fixture
def table(project):
    """Return the file in which the table of the lab `default` is kept."""
    path = faults.result_file(lab_directory("default"))
    path.parent.mkdir(parents=True)
    return path


def test_without_a_trial_every_line_is_owed(table, stead, capsys):
    assert stead("faults") == ExitCode.CHECK_FAILED
    said = capsys.readouterr()
    assert said.out.count("not injected") == len(FAULTS)
    assert f"of {len(FAULTS)} faults, {len(FAULTS)} not injected" in said.err


def test_a_complete_table_is_good(table, stead, capsys):
    for name in FAULTS:
        faults.record(table, name, 1, SURVIVED, **NOW)

    assert stead("faults") == ExitCode.OK
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 1 + len(FAULTS)
    assert rows[1].split("  ")[0] == FAULTS[0]
    assert rows[1].split()[-6:] == ["survived", "1:01", "min", "2026-11-21", "20:10", "abc1234"]


def test_one_lost_trial_is_said_with_its_reason(table, stead, capsys):
    faults.record(table, FAULTS[0], 1, SURVIVED, **NOW)
    faults.record(table, FAULTS[0], 2, LOST, **NOW)

    assert stead("faults") == ExitCode.CHECK_FAILED
    said = capsys.readouterr()
    assert "1 of 2 survived" in said.out
    assert f"{FAULTS[0]}, seed 2: job 7 is gone" in said.out
    assert f"1 not survived, {len(FAULTS) - 1} not injected" in said.err


def test_the_slowest_recovery_counts_and_another_commit_begins_anew(table, stead, capsys):
    faults.record(table, FAULTS[0], 1, LOST, commit="0000000", at="2026-11-20T09:00:00+00:00")
    faults.record(table, FAULTS[0], 1, SURVIVED, **NOW)
    faults.record(table, FAULTS[0], 2, Trial(True, 95.0), **NOW)

    assert stead("faults", "--json") == ExitCode.CHECK_FAILED
    report = json.loads(capsys.readouterr().out)
    line = report["faults"][0]
    assert (report["ok"], line["fault"], line["survived"], line["seconds"]) == (False, FAULTS[0], True, 95.0)
    assert list(line["trials"]) == ["1", "2"]


def test_a_table_of_something_else_is_said(table, stead, capsys):
    table.write_text('{"a worker loses power at a random task of site.yml": 7}')

    assert stead("faults") == ExitCode.CHECK_FAILED
    assert "cannot be read" in capsys.readouterr().err


def test_a_fault_that_the_table_does_not_know_is_refused(table):
    with pytest.raises(ValueError, match="is not a line of the table"):
        faults.record(table, "meteor", 1, SURVIVED, **NOW)
