"""What a run of `stead test` does: CI's part, and everything."""

import datetime
import io
import pathlib

import pytest
from rich.console import Console

from slurmstead.errors import CheckFailed, Interrupted, UsageError
from slurmstead.testing import checks, labs, record, session, tree
from slurmstead.testing.outcome import Outcome
from slurmstead.testing.scenarios import Kind, Scenario

COMMIT = "a" * 40


class Fake:
    """The scenarios and checks of a run, which end as they are told and are noted in their order."""

    def __init__(self, monkeypatch, tmp_path):
        self.ran = []
        self.fails = set()
        self.interrupted = None
        self.commit = COMMIT
        self.console = Console(file=io.StringIO(), width=200)
        monkeypatch.setattr(session.os, "geteuid", lambda: 0)
        monkeypatch.setattr(session.host, "ensure_packages", lambda *_, **__: [])
        monkeypatch.setattr(session, "run_scenarios", self.scenarios)
        monkeypatch.setattr(checks, "run_checks", lambda console, slow: [self.end("pytest")])
        monkeypatch.setattr(session.commands, "aloud", lambda name, *_: self.end(name))
        monkeypatch.setattr(tree, "TABLE", tmp_path / "passed.json")
        monkeypatch.setattr(tree, "commit", lambda: self.commit)

    def end(self, key):
        if key == self.interrupted:
            raise Interrupted(2)
        self.ran.append(key)
        return Outcome(key, key not in self.fails, 1.0, "2 passed in 1.0s\n")

    def scenarios(self, console, kind, scenarios, ended):
        outcomes = []
        for scenario in scenarios:
            outcomes.append(self.end(scenario.key))
            ended(scenario, outcomes[-1])
        return outcomes

    def everything(self, *names, again=False):
        self.ran.clear()
        session.Everything(self.console, names, again=again).run()

    @property
    def said(self):
        return self.console.file.getvalue()

    @property
    def table(self):
        return record.load(tree.TABLE)


@pytest.fixture
def fake(monkeypatch, tmp_path):
    return Fake(monkeypatch, tmp_path)


def test_everything_is_run_and_written_down(fake):
    fake.everything()
    assert set(fake.table) == set(record.keys())
    assert {line.commit for line in fake.table.values()} == {COMMIT}
    assert fake.ran[0] == "pytest"


def test_a_failed_scenario_is_not_written_down_and_does_not_stop_the_others(fake):
    fake.fails = {"health bookworm"}
    with pytest.raises(CheckFailed, match="failed: health bookworm$"):
        fake.everything()
    assert set(record.keys()) - set(fake.table) == {"health bookworm"}


def test_an_interrupted_run_goes_on_with_what_has_not_passed(fake):
    fake.interrupted = "doctor bookworm"
    with pytest.raises(Interrupted) as error:
        fake.everything()
    assert "to continue" in error.value.hint
    before = set(fake.table)
    assert "health bookworm" in before

    fake.interrupted = None
    fake.everything()
    assert not {*before} & {*fake.ran}
    assert set(fake.table) == set(record.keys())
    assert "not run again: checks, native, default bookworm" in fake.said


def test_what_has_passed_is_run_again_when_asked_for_or_with_another_tree(fake):
    fake.everything("smoke")
    fake.everything("smoke", again=True)
    assert fake.ran == ["smoke bookworm", "smoke trixie"]
    fake.commit = "b" * 40
    fake.everything("smoke")
    assert fake.ran == ["smoke bookworm", "smoke trixie"]


def test_a_tree_with_changes_is_tested_but_not_written_down(fake):
    fake.commit = None
    fake.everything("checks", "gate")
    assert fake.ran == ["pytest", "gate bookworm native", "gate trixie native"]
    assert fake.table == {}
    assert "has uncommitted changes" in fake.said


def test_ci_says_what_it_left_out_and_what_is_overdue(fake):
    session.run_ci(fake.console)
    assert fake.said.count("Left out: health bookworm, disks bookworm") == 2
    assert "scripts/stead test --all" in fake.said
    assert "rk3588 trixie: never passed" in fake.said
    assert fake.ran == ["pytest", "native", "site bookworm native", "default bookworm"]
    assert "engines bookworm native" not in fake.ran
    assert set(fake.table) == set(fake.ran[2:])


def test_an_ordinary_user_runs_no_scenario_on_containers(fake, monkeypatch):
    monkeypatch.setattr(session.os, "geteuid", lambda: 1000)
    session.run_ci(fake.console)
    assert "because containers need root: site bookworm native" in fake.said
    assert "default bookworm" in fake.ran
    assert "site bookworm native" not in fake.ran


def test_lines_that_an_ordinary_user_cannot_run_have_not_passed(fake, monkeypatch):
    monkeypatch.setattr(session.os, "geteuid", lambda: 1000)
    with pytest.raises(CheckFailed, match="^not run: operations bookworm native, operations trixie native$"):
        fake.everything("operations")
    assert fake.ran == ["operations bookworm"]
    fake.everything("health")


def test_ci_makes_no_lab_after_a_failed_check(fake):
    fake.fails = {"pytest"}
    with pytest.raises(CheckFailed):
        session.run_ci(fake.console)
    assert fake.ran == ["pytest", "native"]


@pytest.mark.parametrize(("minutes", "long"), [(44, False), (46, True)])
def test_ci_says_when_it_took_longer_than_it_may(fake, monkeypatch, minutes, long):
    times = iter([0.0, *[minutes * 60.0] * 9])
    monkeypatch.setattr(session.time, "monotonic", lambda: next(times))
    session.run_ci(fake.console)
    assert (f"took {minutes} minutes, expected at most 45" in fake.said) is long


def test_ci_leaves_out_the_labs_for_which_no_time_is_left(fake, monkeypatch):
    times = iter([0.0, 600.0, *[46 * 60.0] * 9])
    monkeypatch.setattr(session.time, "monotonic", lambda: next(times))
    session.run_ci(fake.console)
    assert fake.ran == ["pytest", "native", "site bookworm native"]
    assert "because 45 minutes have passed: default bookworm\n" in fake.said


def test_times_are_in_utc():
    assert session.now().utcoffset() == datetime.timedelta(0)


class Steps:
    """The commands that scenarios run on a lab, instead of running them; `fails` is a part of one that fails."""

    def __init__(self, monkeypatch, kind, fails="nothing"):
        self.ran = []
        self.fails = fails
        monkeypatch.setattr(labs.commands, "aloud", self.aloud)
        self.lab = labs.TestLab(Console(file=io.StringIO()), kind)
        self.lab.directory = pathlib.Path("/nonexistent")

    def aloud(self, name, command, settings):
        self.ran.append(command)
        return Outcome(name, self.fails not in str(command), 1.0, "")

    def run(self, *names, **properties):
        for name in names:
            self.lab.run(Scenario(name, self.lab.kind, **properties))

    @property
    def verbs(self):
        words = [[word for word in command[1:] if not word.startswith("-")] for command in self.ran]
        return [
            " ".join(of) if command[0] == labs.STEAD else "test" for command, of in zip(self.ran, words, strict=True)
        ]


def test_the_lab_of_a_failed_scenario_is_configured_again(monkeypatch):
    steps = Steps(monkeypatch, Kind(), fails="gate")
    steps.run("smoke", "gate", "doctor", "health")
    assert steps.verbs == ["lab up", "up", "test", "test", "lab up", "up", "test", "test"]


def test_a_lab_that_can_be_frozen_is_configured_once(monkeypatch, tmp_path):
    steps = Steps(monkeypatch, Kind(freezes=True))
    steps.lab.directory = tmp_path
    steps.run("reboot", destroys=True)
    assert steps.verbs == ["lab up", "up", "lab freeze", "test"]
    (tmp_path / "snapshots/converged.1").mkdir(parents=True)
    (tmp_path / "snapshots/converged.1/machines.json").touch()
    steps.run("faults", destroys=True)
    assert steps.verbs[4:] == ["lab thaw", "test"]


def test_tests_that_make_the_cluster_get_new_machines(monkeypatch, tmp_path):
    steps = Steps(monkeypatch, Kind(native=True))
    monkeypatch.setattr(labs.lab, "down", lambda *_: steps.ran.append([labs.STEAD, "lab", "down"]))
    steps.run("gate")
    steps.lab.directory = tmp_path
    steps.run("course", bare=True, destroys=True)
    steps.run("backup")
    own = ["lab up", "up", "test"]
    assert steps.verbs == [*own, "lab down", "lab up", "test", "lab down", *own]
    assert ["--clean" in command for command in steps.ran if command[1:3] == ["lab", "up"]] == [False, True, False]


def test_a_second_run_leaves_the_lab_of_the_first_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("STEAD_LAB", "mine")
    removed = []
    monkeypatch.setattr(labs.lab, "down", lambda *_: removed.append(True))
    console = Console(file=io.StringIO())
    with labs.TestLab(console, Kind()) as first:
        first.directory.mkdir(parents=True)
        with pytest.raises(UsageError, match="another `stead test` uses the lab mine$"):
            labs.TestLab(console, Kind()).__enter__()
        assert not removed
    with labs.TestLab(console, Kind()):
        assert removed


def test_a_scenario_that_passed_is_written_down_before_its_lab_is_removed(monkeypatch, tmp_path):
    """Removing it can fail, or be interrupted."""
    steps = Steps(monkeypatch, Kind(native=True))
    steps.lab.directory = tmp_path
    monkeypatch.setattr(labs.lab, "down", lambda *_: steps.ran.append([labs.STEAD, "lab", "down"]))
    steps.run("operations", destroys=True)
    assert steps.verbs[-1] == "test"


def test_a_native_lab_has_containers_and_no_test_that_needs_a_kernel(monkeypatch):
    steps = Steps(monkeypatch, Kind(native=True))
    steps.run("gate")
    assert "--native" in steps.ran[0]
    assert steps.ran[-1][-2:] == ["-m", "not kernel"]
