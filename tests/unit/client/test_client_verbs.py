"""The command line, as far as it goes without a cluster."""

import pathlib
import time

import pytest

from slurmstead import cli
from slurmstead.client import api, transfer
from slurmstead.client.records import State, TaskState
from slurmstead.errors import ExitCode, SteadError, TaskError, UnreachableError, UsageError


@pytest.mark.parametrize(
    ("arguments", "toml", "said"),
    [
        (["submit", "."], "", "which head node is meant is not said"),
        (["submit", ".", "--head", "h"], 'entri = "x"', "Did you mean entry?"),
        (["submit", ".", "--head", "h", "--mem", "lots"], "", "mem = 'lots' is not understood"),
        (["submit", "none", "--head", "h"], "", "none is no folder"),
        (["submit", ".", "--head", "h", "--entry", "no.py"], "", "submits no file 'no.py'"),
        (["submit", ".", "--head", "h", "--array", "9-1"], "", "'9-1' is not an array"),
        (["fetch", "--head", "h"], "", "which jobs are meant is not said"),
        (["submit", ".", "--cpus", "many"], "", "Invalid value"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    toml: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.py").write_text("")
    (tmp_path / "stead.toml").write_text(toml)

    assert cli.main(arguments) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_a_head_node_that_does_not_answer_ends_with_3_within_ten_seconds(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Port 9 (discard) of loopback is closed on every machine that runs tests.
    (tmp_path / "config").write_text("Host closed\n  HostName 127.0.0.1\n  Port 9\n")
    (tmp_path / "main.py").write_text("")
    monkeypatch.chdir(tmp_path)
    started = time.monotonic()

    code = cli.main(["submit", ".", "--head", "closed", "--ssh-config", str(tmp_path / "config")])

    assert code == ExitCode.UNREACHABLE
    assert time.monotonic() - started < 10
    assert "closed did not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "said", "kind", "text"),
    [
        (11, 'rsync: write failed on "/x": No space left on device (28)', transfer.DiskFullError, "the disk is full"),
        (12, "rsync: connection unexpectedly closed", UnreachableError, "was cut"),
        (255, "ssh: connect to host h port 22: Connection refused", UnreachableError, "was cut"),
        (127, "bash: line 1: rsync: command not found", TaskError, "h has no rsync"),
        (23, 'rsync: send_files failed to open "/x": Permission denied (13)', UsageError, "Permission denied"),
        (2, "", TaskError, "rsync ended with 2"),
    ],
)
def test_what_rsync_ends_with_is_said_in_words(code: int, said: str, kind: type[SteadError], text: str) -> None:
    found = transfer.error(code, said, "h")

    assert type(found) is kind
    assert text in str(found)


def state(*tasks: str) -> State:
    found = tuple(TaskState(number, name) for number, name in enumerate(tasks))
    return State("r", "r", ("1",), "0-1", "running", {}, 0, 0, 0, (), 0, "", 0, 0, "", found)


def test_each_change_is_an_event_once() -> None:
    known: dict[int, str] = {}
    seen = [api.changes(known, state(*tasks)) for tasks in (["pending"] * 2, ["running", "pending"], ["running"] * 2)]

    assert [[(event.task, event.before, event.state) for event in events] for events in seen] == [
        [(0, None, "pending"), (1, None, "pending")],
        [(0, "pending", "running")],
        [(1, "pending", "running")],
    ]
