"""The command line, as far as it goes without a cluster."""

import contextlib
import dataclasses
import io
import os
import pathlib
import pty
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from slurmstead.cli import main as cli
from slurmstead.client import actions, api, connection, display, submitting, transfer
from slurmstead.client.head import Head
from slurmstead.client.records import Job, State, TaskState
from slurmstead.errors import ExitCode, IncompleteCopy, SteadError, TaskError, UnreachableError


@pytest.mark.parametrize(
    ("arguments", "toml", "said"),
    [
        (["submit", "."], "", "no cluster is configured"),
        (["submit", ".", "--head", "h"], 'entri = "x"', "Did you mean entry?"),
        (["submit", ".", "--head", "h", "--mem", "lots"], "", "mem = 'lots' is not valid"),
        (["submit", "none", "--head", "h"], "", "none is not a folder"),
        (["submit", "main.py", "--head", "h"], "", "main.py is not a folder"),
        (["submit", ".", "--head", "h", "--entry", "no.py"], "", "'no.py' is not among the files"),
        (["submit", ".", "--head", "h", "--entry", ".."], "", "Name a file in the folder with --entry"),
        (["submit", ".", "--head", "h", "--entry", "/bin/sh"], "", "Name a file in the folder with --entry"),
        (["submit", ".", "--head", "h", "--array", "9-1"], "", "'9-1' is not an array"),
        (["submit", ".", "--head", "h", "--data", "main.py", "--data", "no"], "", "data: 'no' is not among the files"),
        (["fetch", "--head", "h"], "", "no job is named"),
        (["submit", ".", "--cpus", "many"], "", "Invalid value"),
        (["jobs", "--latest", "-5"], "", "Invalid value for '--latest'"),
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


def test_an_ssh_configuration_that_cannot_be_read_ends_with_2(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no-config"

    assert cli.main(["fetch", "7", "--head", "h", "--ssh-config", str(path)]) == ExitCode.USAGE
    assert f"the ssh configuration {path} cannot be read: No such file" in capsys.readouterr().err


def test_a_head_node_that_the_folder_chooses_is_named_before_it_is_used(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text("Host closed\n  HostName 127.0.0.1\n  Port 9\n")
    (tmp_path / "stead.toml").write_text('head = "closed"\n')
    (tmp_path / "main.py").write_text("")

    cli.main(["submit", str(tmp_path), "--ssh-config", str(tmp_path / "config")])

    assert capsys.readouterr().err.startswith(f"stead: {tmp_path}/stead.toml names the head node: closed\n")


@pytest.mark.parametrize("verb", [["jobs"], ["logs", "7"], ["cancel", "7"], ["fetch", "7"]], ids=lambda verb: verb[0])
def test_a_current_directory_that_was_removed_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert cli.main([*verb, "--head", "h"]) == ExitCode.USAGE
    assert "the current directory was removed" in capsys.readouterr().err


@pytest.mark.slow
def test_a_head_node_that_is_busy_gets_more_time_than_one_that_is_off(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)
    monkeypatch.setattr(connection, "PATIENT_SECONDS", 2)
    notes: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = tmp_path / "config"
        config.write_text(f"Host busy\n  HostName 127.0.0.1\n  Port {silent.getsockname()[1]}\n")

        with pytest.raises(UnreachableError, match="busy did not answer: .*timed out"):
            connection.Connection(Head("busy", str(config)), notes.append).__enter__()

    assert notes == ["busy is slow to answer; waiting up to 2 s more"]


@pytest.mark.parametrize(
    ("code", "said", "kind", "text"),
    [
        (11, 'rsync: write failed on "/x": No space left on device (28)', TaskError, "the disk is full"),
        (12, "rsync: connection unexpectedly closed", UnreachableError, "was lost"),
        (20, "rsync error: received SIGINT, SIGTERM, or SIGHUP (code 20)", UnreachableError, "was lost"),
        (255, "ssh: connect to host h port 22: Connection refused", UnreachableError, "was lost"),
        (127, "bash: line 1: rsync: command not found", TaskError, "h has no rsync"),
        (23, 'rsync: send_files failed to open "/x": Permission denied (13)', IncompleteCopy, "Permission denied"),
        (24, "file has vanished: /x", IncompleteCopy, "vanished"),
        (2, "", TaskError, "rsync exited with 2"),
    ],
)
def test_what_rsync_ends_with_is_said_in_words(code: int, said: str, kind: type[SteadError], text: str) -> None:
    found = transfer.error(code, said, "h")

    assert type(found) is kind
    assert text in str(found)


def state(*tasks: str) -> State:
    found = tuple(TaskState(number, name) for number, name in enumerate(tasks))
    return State("r", "r", ("1",), "0-1", "running", {}, 0, 0, 0, (), 0, "", 0, 0, "", found)


class Way:
    """A connection whose answers are given; an exception among them is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, action: str, **_: Any) -> dict[str, Any]:
        """Return the next answer."""
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"jobs": [dataclasses.asdict(answer)]}


NO_SHARE = TaskError("alice has no home on node3: /share/home/alice does not exist")


def test_a_run_is_waited_for_while_its_head_node_comes_back_without_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = dataclasses.replace(state("completed"), state="completed")
    ways = [Way(UnreachableError("off")), Way(NO_SHARE), Way(ended)]
    monkeypatch.setattr(api, "Connection", lambda *_: ways.pop(0))
    monkeypatch.setattr(time, "sleep", lambda _: None)

    seen = api.states(Head("h"), "r", None, api.Silent(), Way(state("running"), UnreachableError("cut")))  # type: ignore[arg-type]

    assert [next(seen).state, next(seen).state] == ["running", "completed"]
    assert not ways


def test_a_run_that_the_head_node_does_not_know_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "Connection", lambda *_: Way(NO_SHARE))

    with pytest.raises(TaskError, match="has no home"):
        next(api.states(Head("h"), "r", None, api.Silent()))


def test_a_run_is_looked_at_once_more_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(api, "Connection", lambda *_: Way(*[state("running")] * 9))
    seen = [now[0] - 100 for _ in api.states(Head("h"), "r", 3, api.Silent())]

    assert seen == [0, 2, 3]


def test_events_of_a_run_that_goes_on_do_not_end_as_if_it_had_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "Connection", lambda *_: Way(state("running")))
    events = api.Client("h").events("r", timeout=0)

    assert next(events).state == "running"
    with pytest.raises(TimeoutError, match="r has not ended within 0 s"):
        next(events)


def test_a_log_without_a_word_is_followed_while_its_head_node_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Way):
        @contextlib.contextmanager
        def stream(self, *_: object, **__: object) -> Iterator[Any]:
            with subprocess.Popen(["true"], stdout=subprocess.PIPE) as process:
                yield process
            if self.answers:
                raise self.answers.pop(0)

    running = state("running")
    ways = [Silent(running, UnreachableError("cut")), Way(UnreachableError("off")), Way(NO_SHARE), Silent(running)]
    monkeypatch.setattr(actions, "Connection", lambda *_: ways.pop(0))
    monkeypatch.setattr(time, "sleep", lambda _: None)

    actions.logs(Console(file=io.StringIO()), Head("h"), "r", None, follow=True, stderr=False)

    assert not ways


def test_a_log_of_a_cluster_that_is_down_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "Connection", lambda *_: Way(UnreachableError("off")))

    with pytest.raises(UnreachableError):
        actions.logs(Console(file=io.StringIO()), Head("h"), "r", None, follow=True, stderr=False)


def test_a_rerun_that_was_cut_goes_on_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Cut:
        def ask(self, action: str, id: str, **_: str) -> dict[str, Any]:
            asked.append(id)
            if len(asked) == 1:
                raise UnreachableError("cut")
            return {"id": id, "jobs": ["8"], "directory": "/r", "again": False}

    monkeypatch.setattr(submitting, "Connection", lambda *_: contextlib.nullcontext(Cut()))
    client = api.Client("h")
    with pytest.raises(UnreachableError):
        client.rerun("r")

    assert client.rerun("r").id == asked[0]
    assert client.rerun("r").id not in asked[:2]


@pytest.mark.parametrize(("state", "continues"), [("running", True), ("completed", True), ("cancelled", False)])
def test_a_rerun_whose_answer_was_lost_is_not_reported_as_new(
    monkeypatch: pytest.MonkeyPatch, state: str, continues: bool
) -> None:
    made: list[str] = []

    class Lost:
        def ask(self, action: str, **request: Any) -> dict[str, Any]:
            if action == "jobs":
                return {"jobs": [{"state": state}]}
            again = request["id"] in made
            made.extend([] if again else [request["id"]])
            if made == [request["id"]] and not again:
                raise UnreachableError("cut")
            return {"id": request["id"], "jobs": [str(len(made))], "directory": "/r", "again": again}

    monkeypatch.setattr(submitting, "Connection", lambda *_: contextlib.nullcontext(Lost()))
    client = api.Client("h")
    with pytest.raises(UnreachableError):
        client.rerun("r")
    job = client.rerun("r")

    assert (job.id, job.again) == ((made[0], True) if continues else (made[1], False))


def test_who_reads_only_the_first_line_of_a_submission_has_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[str] = []

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    job = Job("r1", ("7",), "/r1")
    monkeypatch.setattr(submitting, "rerun", lambda *arguments: arguments[-1](None, job))
    actions.rerun(Console(file=Pipe()), Console(file=io.StringIO()), Head("h"), "7", None)

    assert [text.splitlines()[0] for text in writes] == ["job 7  r1"]


def test_a_pipe_is_told_the_names_of_runs_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "20261121-122046-a-very-long-name-indeed-e7ce6d"
    run = dataclasses.replace(state("running"), id=name, jobs=tuple(map(str, range(1000, 1020))))
    monkeypatch.setattr(actions, "Connection", lambda *_: Way(run))
    out = io.StringIO()
    actions.jobs(Console(file=out), Console(file=io.StringIO()), Head("h"), 20, follow=False)

    assert out.getvalue().splitlines()[1].split()[:2] == [",".join(run.jobs), name]


def test_a_terminal_shows_how_far_a_copy_is() -> None:
    out = io.StringIO()
    with display.Bars(Console(file=out, force_terminal=True, width=100)) as bars:
        bars.began("copying", 2**21)
        bars.copied(0.5)

    assert "copying" in out.getvalue()
    assert "1.0/2.0 MiB" in out.getvalue()


ASKS = """#!/bin/sh
printf 'Enter passphrase: ' >{terminal}
sleep 0.5
exit 255
"""


@pytest.mark.parametrize("verb", ["submit", "fetch"])
def test_a_question_of_ssh_stays_on_the_terminal(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    (tmp_path / "main.py").write_text("")
    master, terminal = pty.openpty()
    with open(master, "rb", buffering=0) as seen, open(terminal, "w") as screen:
        (tmp_path / "ssh").write_text(ASKS.format(terminal=os.ttyname(terminal)))
        (tmp_path / "ssh").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setenv("TERM", "xterm")
        console = Console(file=screen)
        with pytest.raises(UnreachableError):
            if verb == "submit":
                actions.submit(console, console, tmp_path, {}, {"head": "h"}, None, wait=False)
            else:
                actions.fetch(console, console, Head("h"), ["r1"], tmp_path, everything=False)
        shown = seen.read(4096)

    assert shown == b"Enter passphrase: "


def test_nothing_is_printed_into_a_progress_bar(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main.py").write_text("")
    ended = dataclasses.replace(state("completed"), state="completed")
    screen = io.StringIO()
    cursor_is_hidden: list[bool] = []

    class Out(io.StringIO):
        def write(self, text: str) -> int:
            cursor_is_hidden.append(screen.getvalue().count("\x1b[?25l") != screen.getvalue().count("\x1b[?25h"))
            return len(text)

    def submit(_head: Head, _order: object, bars: display.Bars, said: Any) -> None:
        bars.began("copying", 1000)
        bars.copied(1.0)
        said(connection.Connection(Head("h")), Job("r1", ("7",), "/r1"))

    monkeypatch.setattr(submitting, "submit", submit)
    monkeypatch.setattr(api, "states", lambda *_: iter([ended]))
    messages = Console(file=screen, force_terminal=True, width=100)
    actions.submit(Console(file=Out()), messages, tmp_path, {}, {"head": "h"}, None, wait=True)

    assert "copying" in screen.getvalue()
    assert cursor_is_hidden == [False, False]


def test_each_change_is_an_event_once() -> None:
    known: dict[int, str] = {}
    seen = [api.changes(known, state(*tasks)) for tasks in (["pending"] * 2, ["running", "pending"], ["running"] * 2)]

    assert [[(event.task, event.before, event.state) for event in events] for events in seen] == [
        [(0, None, "pending"), (1, None, "pending")],
        [(0, "pending", "running")],
        [(1, "pending", "running")],
    ]
