"""The states of runs: from their results first, and from Slurm for tasks without a result."""

import errno
import io
import socket
import time
from typing import Any

import pytest

from slurmstead.client import bundle
from slurmstead.client.remote import commands, logs, main, slurm, states, store
from slurmstead.client.remote.errors import WrongRequest
from slurmstead.client.remote.store import Store

from .conftest import FakeSlurm
from .test_submission import submit


def rows(*lines: str) -> list[slurm.Row]:
    return slurm.parse_queue("\n".join(lines))


def told(store: Store, monkeypatch: pytest.MonkeyPatch, *lines: str) -> dict[str, Any]:
    """Return the run's state when squeue shows some lines."""
    monkeypatch.setattr(commands, "queue", lambda: rows(*lines))
    return states.look(store, ["r1"])[0]


def done(place: Store, task: int, **result: Any) -> None:
    store.write_json(place.run("r1") / "done" / str(task), {"state": "completed", "exit_code": 0, **result})


@pytest.mark.usefixtures("fake_slurm")
def test_a_result_outweighs_what_slurm_says(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(store)
    done(store, 0, node="n1", start=10.0, end=12.5)

    state = told(store, monkeypatch, "NONE|1|N/A|RUNNING|None|n1|stead:r1:0")

    assert (state["state"], state["nodes"], state["start"], state["end"]) == ("completed", ["n1"], 10.0, 12.5)


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("N/A|1|N/A|PENDING|Resources||stead:r1:0", "pending"),
        ("NONE|1|N/A|RUNNING|None|n1|stead:r1:0", "running"),
        ("2026-01-01T00:00:00|1|N/A|OUT_OF_MEMORY|OutOfMemory|n1|stead:r1:0", "out of memory"),
        ("2026-01-01T00:00:00|1|N/A|CANCELLED|None||stead:r1:0", "cancelled"),
        ("2026-01-01T00:00:00|1|N/A|NODE_FAIL|None|n1|stead:r1:0", "failed"),
        ("2026-01-01T00:00:00|1|N/A|COMPLETED|None|n1|stead:r1:0", "failed"),
        ("2026-01-01T00:00:00|1|N/A|PREEMPTED|None|n1|stead:r1:0", "preempted"),
        ("", "lost"),
    ],
)
@pytest.mark.usefixtures("fake_slurm")
def test_without_a_result_slurm_is_believed(
    store: Store, monkeypatch: pytest.MonkeyPatch, line: str, state: str
) -> None:
    submit(store)

    assert told(store, monkeypatch, line)["state"] == state


@pytest.mark.parametrize("began", [None, "9"])
@pytest.mark.usefixtures("fake_slurm")
def test_only_the_job_that_does_its_work_speaks_for_a_run(
    store: Store, monkeypatch: pytest.MonkeyPatch, began: str | None
) -> None:
    submit(store)
    if began:
        (store.run("r1") / "started" / "0").symlink_to(began)
    own, other = began or "1", "1" if began else "9"

    lines = [f"NONE|{own}|N/A|RUNNING|None|n1|stead:r1:0"]
    lines += [f"2026-01-01T00:00:00|{other}|N/A|COMPLETED|None|n1|stead:r1:0"]

    assert told(store, monkeypatch, *lines)["state"] == "running"


@pytest.mark.usefixtures("fake_slurm")
def test_a_result_that_is_late_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(store)
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    line = f"{now}|1|N/A|COMPLETED|None|n1|stead:r1:0"

    assert told(store, monkeypatch, line)["state"] == "running"


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("N/A|1|N/A|PENDING|BeginTime||stead:r1:0", "pending"),
        ("NONE|1|N/A|COMPLETING|None|n1|stead:r1:0", "running"),
        ("2026-01-01T00:00:00|1|N/A|CANCELLED|None|n1|stead:r1:0", "timeout"),
        ("", "timeout"),
    ],
)
@pytest.mark.usefixtures("fake_slurm")
def test_a_job_that_was_signalled_has_ended_when_slurm_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch, line: str, state: str
) -> None:
    submit(store)
    done(store, 0, state="timeout", signalled=True)

    assert told(store, monkeypatch, line)["state"] == state


@pytest.mark.parametrize(
    ("said", "state"), [("PREEMPTED", "preempted"), ("TIMEOUT", "timeout"), ("FAILED", "cancelled")]
)
@pytest.mark.usefixtures("fake_slurm")
def test_slurm_knows_better_why_it_ended_a_job(
    store: Store, monkeypatch: pytest.MonkeyPatch, said: str, state: str
) -> None:
    submit(store)
    done(store, 0, state="cancelled", signalled=True)

    assert told(store, monkeypatch, f"2026-01-01T00:00:00|1|N/A|{said}|None|n1|stead:r1:0")["state"] == state


def test_what_slurm_said_of_a_signalled_job_is_not_asked_again(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store)
    done(store, 0, state="timeout", signalled=True)
    fake_slurm.state = "TIMEOUT"
    states.look(store, ["r1"])
    fake_slurm.state = "PENDING"

    assert states.look(store, ["r1"])[0]["state"] == "timeout"


@pytest.mark.usefixtures("fake_slurm")
def test_what_slurm_said_is_kept_after_it_forgot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(store)
    told(store, monkeypatch, "2026-01-01T00:00:00|1|N/A|NODE_FAIL|None|n1|stead:r1:0")

    assert told(store, monkeypatch, "")["reason"] == "Slurm reports NODE_FAIL"


@pytest.mark.usefixtures("fake_slurm")
def test_an_array_is_counted_by_state(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(store, tasks="0-4", array="0-4")
    done(store, 0)
    done(store, 1, state="failed", exit_code=3)

    lines = ["NONE|1|2|RUNNING|None|n1|stead:r1:0", "N/A|1|3|PENDING|Resources||stead:r1:0"]
    state = told(store, monkeypatch, *lines, "N/A|1|4|PENDING|Resources||stead:r1:0")

    assert state["state"] == "running"
    assert state["counts"] == {"completed": 1, "failed": 1, "running": 1, "pending": 2}
    assert state["exit_code"] is None or state["exit_code"] == 3


@pytest.mark.usefixtures("fake_slurm")
def test_what_was_cancelled_before_it_began_is_one_row_for_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(store, tasks="0-3", array="0-3")
    done(store, 0)

    # Recorded from Slurm 24.11: the row without a number stands for the tasks that never began.
    first = "2026-01-01T00:00:00|1|N/A|CANCELLED|JobArrayTaskLimit||stead:r1:0"
    state = told(store, monkeypatch, first, "2026-01-01T00:00:00|1|1|CANCELLED|None|n1|stead:r1:0")

    assert state["counts"] == {"completed": 1, "cancelled": 3}
    assert state["state"] == "cancelled"


@pytest.fixture
def chunks(store: Store, fake_slurm: FakeSlurm) -> Store:
    """Return the store with a run of the jobs 1 and 2, which have two tasks each."""
    fake_slurm.max_array_size = 2
    submit(store, tasks="0-3", array="0-3", items=[["a"], ["b"], ["c"], ["d"]])
    return store


def test_one_task_of_an_array_is_cancelled_by_its_name(chunks: Store, fake_slurm: FakeSlurm) -> None:
    answer = main.answer(chunks, {"action": "cancel", "jobs": ["2_1"]}, b"")
    # Recorded from Slurm 22.05: a task that never began is gone at once.
    left = rows("N/A|1|0|PENDING|None||stead:r1:0", "N/A|1|1|PENDING|None||stead:r1:0")
    fake_slurm.queue = lambda: [*left, *rows("N/A|2|0|PENDING|None||stead:r1:1")]  # type: ignore[method-assign]
    tasks = states.look(chunks, ["r1"])[0]["tasks"]

    assert answer == {"runs": ["2_1"], "cancelled": ["2_1"]}
    assert fake_slurm.cancelled == ["2_1"]
    assert [task["state"] for task in tasks] == ["pending", "pending", "pending", "cancelled"]


@pytest.mark.parametrize("name", ["2_2", "1_[0-1]", "1_x"])
def test_what_is_no_task_is_not_cancelled(chunks: Store, fake_slurm: FakeSlurm, name: str) -> None:
    with pytest.raises(WrongRequest, match="has no task"):
        main.answer(chunks, {"action": "cancel", "jobs": [name]}, b"")

    assert fake_slurm.cancelled == []


def test_a_run_is_cancelled_although_the_disk_is_full(
    chunks: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(store, "write", full)
    main.answer(chunks, {"action": "cancel", "jobs": ["r1"]}, b"")

    assert fake_slurm.cancelled == ["1", "2"]


@pytest.mark.parametrize(("action", "says_it"), [("submit", True), ("jobs", False)])
def test_a_full_disk_is_said_to_stop_a_submission_only_where_it_does(
    chunks: Store, monkeypatch: pytest.MonkeyPatch, action: str, says_it: bool
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(main, "answer", full)
    out = io.BytesIO()

    assert main.serve({"action": action, "directory": str(chunks.root)}, b"", out) == 1
    assert (b"Nothing was submitted" in out.getvalue()) == says_it
    assert b"Free some space there" in out.getvalue()


def test_a_name_that_is_empty_is_no_run(chunks: Store) -> None:
    """In a script, `stead cancel "$JOB"` without JOB must not cancel the only run."""
    with pytest.raises(WrongRequest, match="is empty"):
        main.answer(chunks, {"action": "cancel", "jobs": [""]}, b"")


def test_a_directory_without_a_root_is_refused() -> None:
    with pytest.raises(WrongRequest, match="is not absolute"):
        store.open_store(".")


def test_one_task_of_an_array_is_made_again_with_its_item(chunks: Store) -> None:
    answer = main.answer(chunks, {"action": "rerun", "job": "2_1", "id": "r2"}, bundle.program())
    request = store.read_json(chunks.run("r2") / "request.json")

    assert answer["jobs"] == ["3"]
    assert (request["tasks"], request["items"][3]) == ("3", ["d"])


def test_results_of_one_task_are_only_its_own(chunks: Store) -> None:
    for task in range(2):
        done(chunks, task)
        place = chunks.run("r1") / "tasks" / str(task)
        place.mkdir(parents=True)
        store.write_json(place / "manifest.json", [{"path": "stdout", "size": 0, "sha256": ""}])
    answers = [main.answer(chunks, {"action": "results", "job": name}, b"") for name in ("1_1", "r1")]

    assert [answer["task"] for answer in answers] == [1, None]
    assert [file["path"] for file in answers[0]["files"]] == ["tasks/1/stdout"]
    assert [task["task"] for task in answers[0]["summary"]["tasks"]] == [1]
    assert [answer["summary"]["state"] for answer in answers] == ["completed", "running"]
    assert len(answers[1]["files"]) == 2


@pytest.mark.parametrize(("name", "task"), [("2_1", 3), ("1_0", 0)])
def test_a_log_is_found_by_the_name_that_slurm_gives_a_task(chunks: Store, name: str, task: int) -> None:
    assert logs.file_of(chunks, {"job": name})[2] == chunks.run("r1") / "tasks" / str(task) / "stdout"


def test_a_log_of_a_task_that_there_is_not_is_refused(chunks: Store) -> None:
    with pytest.raises(WrongRequest, match="r1 has no task 9"):
        logs.file_of(chunks, {"job": "r1", "task": 9})


def test_what_a_task_prints_after_it_was_started_again_is_followed_from_its_beginning(
    chunks: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chunks.run("r1") / "tasks" / "3" / "stdout"
    path.parent.mkdir(parents=True)
    path.write_text("a first start\n")
    changes = [lambda: path.unlink(), lambda: path.write_text("another\n"), lambda: path.write_text("third\n")]
    monkeypatch.setattr(logs, "_rest", lambda _: changes.pop(0)())
    monkeypatch.setattr(logs, "_ended", lambda *_: not changes)
    monkeypatch.setattr(logs, "ASK_SECONDS", 0)
    out = io.BytesIO()
    logs.copy(chunks, {"job": "r1", "task": 3, "follow": True}, out)

    assert out.getvalue() == b"a first start\nanother\nthird\n"


def test_nobody_follows_a_silent_task_for_a_client_that_has_gone(
    chunks: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd, ours = socket.socketpair()
    # sshd does this when it has handed on the request.
    sshd.shutdown(socket.SHUT_WR)
    looks = iter([lambda: None, sshd.close])
    monkeypatch.setattr(logs, "_ended", lambda *_: bool(next(looks)()))
    monkeypatch.setattr(logs, "ASK_SECONDS", 0)
    with ours, ours.makefile("wb") as out, pytest.raises(BrokenPipeError):
        logs.copy(chunks, {"job": "r1", "task": 3, "follow": True}, out)

    assert not list(looks)


def test_the_tail_of_a_long_output_is_its_end(chunks: Store) -> None:
    place = chunks.run("r1") / "tasks" / "3"
    place.mkdir(parents=True)
    with open(place / "stderr", "wb") as file:
        # As long as no head node could hold in memory.
        file.truncate(2**40)
        file.seek(2**40)
        file.write(b"\nfirst\nlast\n")

    assert main.answer(chunks, {"action": "tail", "job": "r1", "task": 3, "lines": 2}, b"")["text"] == "first\nlast"


def test_tasks_of_a_second_chunk_have_their_own_numbers(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_slurm.max_array_size = 2
    submit(store, tasks="0-3", array="0-3")

    state = told(
        store,
        monkeypatch,
        "NONE|1|0|RUNNING|None|n1|stead:r1:0",
        "NONE|1|1|RUNNING|None|n2|stead:r1:0",
        "NONE|2|0|RUNNING|None|n3|stead:r1:1",
        "N/A|2|1|PENDING|None||stead:r1:1",
    )

    assert [task["state"] for task in state["tasks"]] == ["running", "running", "running", "pending"]
    assert state["nodes"] == ["n1", "n2", "n3"]
