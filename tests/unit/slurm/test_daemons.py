"""What systemd and Slurm's clients print is understood."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.slurm import daemons as slurm_daemons
from ansible.module_utils.slurmstead.slurm.daemons import Log, Slurm, state_of


@pytest.mark.parametrize(
    ("shown", "before", "state"),
    [
        ("ActiveState=active SubState=running MainPID=9 Job=0", "", "running"),
        ("ActiveState=active SubState=running MainPID=9 Job=0", "7", "running"),
        ("ActiveState=active SubState=running MainPID=7 Job=0", "7", "starting"),
        ("ActiveState=reloading SubState=reload MainPID=9 Job=0", "", "running"),
        ("ActiveState=deactivating SubState=stop-sigterm MainPID=7 Job=12", "7", "starting"),
        ("ActiveState=activating SubState=start MainPID=9 Job=12", "7", "starting"),
        ("ActiveState=activating SubState=auto-restart MainPID=0 Job=0", "7", "failed"),
        ("ActiveState=activating SubState=auto-restart MainPID=0 Job=12", "7", "starting"),
        ("ActiveState=failed SubState=failed MainPID=0 Job=0", "", "failed"),
        ("ActiveState=inactive SubState=dead MainPID=0 Job=0", "", "stopped"),
    ],
)
def test_a_units_state_is_that_of_the_new_process(shown: str, before: str, state: str) -> None:
    assert state_of(dict(word.split("=") for word in shown.split()), before) == state


def test_of_a_log_only_what_is_new_is_said_as_the_daemon_prints_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "slurmctld.log"
    path.write_text("[2026-11-21T10:00:00.000] slurmctld version 22.05.8 started\n")
    log = Log(str(path))
    log.mark()
    assert log.since_mark() == ""

    with path.open("a") as file:
        file.write("[2026-11-21T10:00:01.000] fatal: no room\n")
    assert log.since_mark() == "slurmctld: fatal: no room\n"

    path.write_text("[2026-11-21T10:00:02.000] rotated\n")
    assert log.since_mark() == "slurmctld: rotated\n"


def test_a_daemon_without_a_log_has_written_nothing(tmp_path: pathlib.Path) -> None:
    for path in ("", str(tmp_path / "none")):
        log = Log(path)
        log.mark()
        assert log.since_mark() == ""


def says(monkeypatch: pytest.MonkeyPatch, text: str, code: int = 0) -> Slurm:
    """Clients that all print one text."""
    monkeypatch.setattr(slurm_daemons, "run", lambda *_, **__: (code, text, ""))
    return Slurm()


@pytest.mark.parametrize(
    ("text", "code", "answers"),
    [
        ("Slurmctld(primary) at node3 is UP\n", 0, True),
        ("Slurmctld(primary) at node3 is DOWN\n", 0, False),
        ("", 1, False),
    ],
)
def test_a_ping_is_understood(monkeypatch: pytest.MonkeyPatch, text: str, code: int, answers: bool) -> None:
    assert says(monkeypatch, text, code).answers() == answers


def test_nodes_are_read_up_to_their_free_text(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "NodeName=n1 State=IDLE+DRAIN SlurmdStartTime=2026-11-21T10:00:00 Reason=State=DOWN NodeName=x [root@now]\n"

    nodes = says(monkeypatch, line).nodes()

    assert nodes["n1"]["State"] == "IDLE+DRAIN"
    assert nodes.keys() == {"n1"}


def test_the_start_of_slurmctld_is_in_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Configuration data as of 2026-11-21T10:57:49\nBOOT_TIME               = 2026-11-21T10:00:00\n"

    assert says(monkeypatch, text).started_at() == slurm_daemons.seconds("2026-11-21T10:00:00") > 0


def test_a_queue_that_is_not_shown_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not says(monkeypatch, "", 1).state().heard
    assert says(monkeypatch, "", 0).state().heard


def test_a_task_of_an_array_is_cancelled_by_its_name_in_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, ...]] = []
    slurm = says(monkeypatch, "20|RUNNING|main|n1|20_4|None|bob|x\n7|RUNNING|main|n1|7|None|bob|x\n")
    jobs = slurm.state().jobs
    monkeypatch.setattr(slurm_daemons, "run", lambda *command: told.append(command))

    slurm.cancel(jobs)

    assert told == [("scancel", "20_4", "7")]


@pytest.mark.parametrize(
    ("text", "older"), [("100\n\n200\n", True), ("200\n\n100\n", False), ("0\n\n200\n", False), ("", False)]
)
def test_the_younger_of_two_daemons_is_known(monkeypatch: pytest.MonkeyPatch, text: str, older: bool) -> None:
    monkeypatch.setattr(slurm_daemons, "run", lambda *_, **__: (0, text, ""))

    assert slurm_daemons.Systemd().outlived_munged() == older
