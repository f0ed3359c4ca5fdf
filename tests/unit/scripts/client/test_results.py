"""Results on this computer: fetched once, and verified."""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import io
import os
import pathlib
import shutil
import signal
import threading
import time
import types
from collections.abc import Iterable
from typing import Any

import pytest
from rich.console import Console

from slurmstead.client import actions, results, transfer
from slurmstead.client import head as heads
from slurmstead.client.records import State
from slurmstead.client.remote import manifest, store
from slurmstead.client.submitting import Silent
from slurmstead.errors import (
    CheckFailed,
    IncompleteCopy,
    Interrupted,
    MachineError,
    SteadError,
    TaskError,
    UnreachableError,
    UsageError,
)

SUMMARY = {
    "id": "r1",
    "name": "x",
    "jobs": ["7"],
    "array": None,
    "state": "completed",
    "counts": {"completed": 1},
    "submitted": 0,
    "start": 0,
    "end": 1,
    "nodes": ["n1"],
    "exit_code": 0,
    "reason": "",
    "cpu_seconds": 0,
    "memory_bytes": 0,
    "directory": "/r1",
    "tasks": [{"task": 0, "state": "completed"}],
}
STATE = State.read(SUMMARY)


class Head:
    """A head node that has files.

    A copy of one in `spoiled` is wrong as often as it says, one in `cut` is the last, those in `removed` are gone.
    """

    def __init__(self, **contents: str) -> None:
        self.contents = contents
        self.spoiled: dict[str, int] = {}
        self.cut: str | None = None
        self.error: SteadError = UnreachableError("cut")
        self.removed: set[str] = set()
        self.task: int | None = None
        self.copied: list[str] = []
        self.hashed: list[int] = []
        self.block: int | None = None
        self.summary = SUMMARY

    def ask(self, action: str, **_: Any) -> dict[str, Any]:
        assert action == "results"
        if self.hashed:
            return {"run": "r1", "size": 100, "hashed": self.hashed.pop(0)}
        files = [{"path": name, "size": len(text), **self.sum(text.encode())} for name, text in self.contents.items()]
        return {"run": "r1", "task": self.task, "directory": "/r1", "summary": self.summary, "files": files}

    def sum(self, content: bytes) -> dict[str, Any]:
        if self.block is None:
            return {"sha256": hashlib.sha256(content).hexdigest()}
        parts = [content[start : start + self.block] for start in range(0, len(content), self.block)]
        digests = b"".join(hashlib.sha256(part).digest() for part in parts)
        return {"sha256": hashlib.sha256(digests).hexdigest(), "block": self.block}

    def pull(self, _connection: Any, _source: str, files: Iterable[str], target: pathlib.Path, _report: Any) -> None:
        wanted = list(files)
        for name in wanted:
            if name in self.removed:
                continue
            self.copied.append(name)
            text = self.contents[name]
            if self.spoiled.get(name):
                self.spoiled[name] -= 1
                text = text.upper()
            (target / name).write_text(text)
            if self.cut == name:
                self.cut = None
                raise self.error
        if self.removed.intersection(wanted):
            raise IncompleteCopy("link_stat failed", "Exclude it in .steadignore.")


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Head:
    """Return a head node with three files."""
    found = Head(a="one", b="two", c="three")
    monkeypatch.setattr(transfer, "pull", found.pull)
    return found


def fetch(head: Head, into: pathlib.Path) -> results.Fetched:
    return results.fetch(head, "r1", into, Silent())  # type: ignore[arg-type]


def test_a_file_is_fetched_once(head: Head, tmp_path: pathlib.Path) -> None:
    assert [fetch(head, tmp_path).new, fetch(head, tmp_path).new] == [3, 0]
    assert head.copied == ["a", "b", "c"]
    assert results.is_complete(tmp_path / "r1", STATE)


def test_what_counts_as_fetched_is_on_the_disk(
    head: Head, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut, a file that is not on the disk would be empty, and count as fetched for ever."""
    on_disk: set[str] = set()
    recorded: list[set[str]] = []
    monkeypatch.setattr(os, "sync", lambda: on_disk.update(path.name for path in (tmp_path / "r1").iterdir()))
    write = store.write_json

    def record(path: pathlib.Path, value: dict[str, Any]) -> None:
        recorded.append(set(value["files"]) - on_disk)
        write(path, value)

    monkeypatch.setattr(store, "write_json", record)
    head.cut = "b"
    with pytest.raises(UnreachableError):
        fetch(head, tmp_path)
    fetch(head, tmp_path)

    assert recorded == [set()] * 5


class Watcher(Silent):
    """Records the progress that it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def began(self, what: str, size: int) -> None:
        self.told.append((what, size))

    def copied(self, part: float) -> None:
        self.told.append(part)

    def note(self, text: str) -> None:
        self.told.append(text)


def test_a_head_node_that_needs_time_for_checksums_is_asked_until_it_has_them(
    head: Head, tmp_path: pathlib.Path
) -> None:
    head.hashed = [25, 75]
    watcher = Watcher()

    assert results.fetch(head, "r1", tmp_path, watcher).new == 3  # type: ignore[arg-type]
    assert watcher.told == [("checking r1 on the cluster", 100), 0.25, 0.75, ("fetching r1", 11)]


def test_files_that_change_faster_than_they_are_hashed_are_not_waited_for(head: Head, tmp_path: pathlib.Path) -> None:
    head.hashed = [25, 25, 25]
    with pytest.raises(CheckFailed, match="files of r1 change while"):
        fetch(head, tmp_path)


def test_a_long_file_is_verified_by_its_blocks(head: Head, tmp_path: pathlib.Path) -> None:
    head.block = 2
    head.spoiled = {"c": 1}

    assert fetch(head, tmp_path).new == 3
    assert head.copied == ["a", "b", "c", "c"]


def test_one_task_is_not_the_whole_run(head: Head, tmp_path: pathlib.Path) -> None:
    head.task = 0
    fetch(head, tmp_path)
    part = results.is_complete(tmp_path / "r1", STATE)
    head.task = None
    fetch(head, tmp_path)
    head.task = 0
    fetch(head, tmp_path)

    assert [part, results.is_complete(tmp_path / "r1", STATE)] == [False, True]


@pytest.mark.parametrize("late", [{"counts": {"completed": 1}}, {"end": 5}])
def test_a_run_with_a_result_that_came_late_is_not_complete(
    head: Head, tmp_path: pathlib.Path, late: dict[str, Any]
) -> None:
    """A node that was cut off writes its results after Slurm gave it up."""
    head.summary = {**SUMMARY, "state": "lost", "counts": {"lost": 1}, "end": None}
    fetch(head, tmp_path)
    before = results.is_complete(tmp_path / "r1", State.read(head.summary))
    head.summary = {**head.summary, **late}
    then = results.is_complete(tmp_path / "r1", State.read(head.summary))
    fetch(head, tmp_path)

    assert [before, then, results.is_complete(tmp_path / "r1", State.read(head.summary))] == [True, False, True]


def test_a_run_that_an_earlier_version_fetched_is_complete(head: Head, tmp_path: pathlib.Path) -> None:
    fetch(head, tmp_path)
    record = tmp_path / "r1" / ".stead.json"
    store.write_json(record, {**store.read_json(record), "complete": True})

    assert results.is_complete(tmp_path / "r1", STATE)


def test_a_fetch_that_was_cut_goes_on(head: Head, tmp_path: pathlib.Path) -> None:
    head.cut = "b"
    with pytest.raises(UnreachableError):
        fetch(head, tmp_path)
    assert not results.is_complete(tmp_path / "r1", STATE)

    assert fetch(head, tmp_path).new == 1
    assert head.copied == ["a", "b", "c"]


def test_ctrl_c_waits_for_no_checksums(head: Head, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[pathlib.Path] = []

    def checksum(path: pathlib.Path, block: int | None) -> str:
        hashed.append(path)
        return manifest.checksum(path, block)

    monkeypatch.setattr(results, "checksum", checksum)
    head.cut, head.error = "b", Interrupted(signal.SIGINT)
    with pytest.raises(Interrupted):
        fetch(head, tmp_path)
    before = len(hashed)
    watcher = Watcher()

    assert (before, results.fetch(head, "r1", tmp_path, watcher).new) == (0, 1)  # type: ignore[arg-type]
    assert watcher.told == [("checking r1 on this computer", 6), 0.5, 1.0, ("fetching r1", 5)]
    assert len(hashed) == 3


def test_results_that_arrived_before_ctrl_c_are_of_their_run(head: Head, tmp_path: pathlib.Path) -> None:
    head.cut, head.error = "b", Interrupted(signal.SIGINT)
    with pytest.raises(Interrupted):
        fetch(head, tmp_path)
    head.summary = {**SUMMARY, "submitted": 5}

    with pytest.raises(UsageError, match="an earlier run of the same name"):
        fetch(head, tmp_path)


def test_a_file_that_arrived_wrong_is_copied_again(head: Head, tmp_path: pathlib.Path) -> None:
    head.spoiled = {"b": 1}
    fetch(head, tmp_path)

    assert (tmp_path / "r1" / "b").read_text() == "two"
    assert head.copied == ["a", "b", "c", "b"]


def test_a_file_that_is_always_wrong_is_not_believed(head: Head, tmp_path: pathlib.Path) -> None:
    head.spoiled = {"b": 99}
    with pytest.raises(CheckFailed, match="'b' of r1 differs from what the node wrote"):
        fetch(head, tmp_path)

    assert not (tmp_path / "r1" / "b").exists()
    assert not results.is_complete(tmp_path / "r1", STATE)


def test_a_result_that_was_removed_on_the_share_keeps_no_other_back(head: Head, tmp_path: pathlib.Path) -> None:
    head.removed = {"a"}
    with pytest.raises(CheckFailed, match="'a' of r1 differs from what the node wrote: link_stat failed") as error:
        fetch(head, tmp_path)

    assert "removed on the share" in error.value.hint
    assert [(tmp_path / "r1" / name).read_text() for name in "bc"] == ["two", "three"]
    assert head.copied == ["b", "c"]


def test_what_its_owner_changed_is_left_alone_and_what_they_removed_comes_again(
    head: Head, tmp_path: pathlib.Path
) -> None:
    fetch(head, tmp_path)
    (tmp_path / "r1" / "a").write_text("mine")
    (tmp_path / "r1" / "b").unlink()

    assert fetch(head, tmp_path).new == 1
    assert [(tmp_path / "r1" / name).read_text() for name in "abc"] == ["mine", "two", "three"]


def test_two_at_once_fetch_each_file_once(head: Head, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def slow(*arguments: Any) -> None:
        begun.set()
        time.sleep(0.3)
        head.pull(*arguments)

    monkeypatch.setattr(transfer, "pull", slow)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(fetch, head, tmp_path)
        begun.wait()
        second = pool.submit(fetch, head, tmp_path)

    assert [first.result().new, second.result().new] == [3, 0]
    assert head.copied == ["a", "b", "c"]


def test_a_run_that_cannot_be_fetched_keeps_no_other_back(
    head: Head, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head.spoiled = {"b": results.ATTEMPTS}
    monkeypatch.setattr(actions, "Connection", lambda *_: contextlib.nullcontext(head))
    out = io.StringIO()
    with pytest.raises(CheckFailed, match="'b' of r1 differs from what the node wrote"):
        actions.fetch(Console(file=out), Console(file=out), heads.Head("h"), ["r1", "r1"], tmp_path, everything=False)

    assert "r1: 1 file fetched" in out.getvalue()


def test_a_run_that_does_not_fit_keeps_no_other_back(
    head: Head, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = iter([0, 10**9])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=next(room)))
    monkeypatch.setattr(actions, "Connection", lambda *_: contextlib.nullcontext(head))
    out = io.StringIO()
    with pytest.raises(TaskError, match="only 0 are free"):
        actions.fetch(Console(file=out), Console(file=out), heads.Head("h"), ["r1", "r1"], tmp_path, everything=False)

    assert "r1: 3 files fetched" in out.getvalue()


@pytest.fixture
def mac(head: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the computer's file system ignore the case of names, but keep that in which a file was created."""

    def same(path: pathlib.Path) -> list[pathlib.Path]:
        return [other for other in path.parent.iterdir() if other.name.lower() == path.name.lower()]

    def pull(_connection: Any, _source: str, files: Iterable[str], target: pathlib.Path, _report: Any) -> None:
        for name in files:
            path = target / name
            (same(path) or [path])[0].write_text(head.contents[name])

    monkeypatch.setattr(os.path, "lexists", same)
    monkeypatch.setattr(transfer, "pull", pull)


@pytest.mark.usefixtures("mac")
def test_files_that_differ_only_in_case_do_not_delete_each_other_on_a_mac(head: Head, tmp_path: pathlib.Path) -> None:
    head.contents = {"b": "two", "data": "lower", "Data": "upper"}
    watcher = Watcher()
    fetched = results.fetch(head, "r1", tmp_path, watcher)  # type: ignore[arg-type]

    assert fetched.files == ["b", "Data"]
    assert (tmp_path / "r1" / "Data").read_text() == "upper"
    assert [text for text in watcher.told if str(text).startswith("not fetched: 'data'. ")]
    assert results.is_complete(tmp_path / "r1", STATE)


def test_files_that_differ_only_in_case_are_all_fetched_elsewhere(head: Head, tmp_path: pathlib.Path) -> None:
    head.contents = {"b": "two", "data": "lower", "Data": "upper"}

    assert fetch(head, tmp_path).files == ["b", "data", "Data"]
    assert sorted(path.name for path in (tmp_path / "r1").iterdir()) == [".stead.json", "Data", "b", "data"]


def test_another_run_of_the_same_name_replaces_no_results(head: Head, tmp_path: pathlib.Path) -> None:
    fetch(head, tmp_path)

    head.summary = {**SUMMARY, "submitted": 5}
    head.contents = {"a": "other"}
    with pytest.raises(UsageError, match="an earlier run of the same name"):
        fetch(head, tmp_path)
    assert not results.is_complete(tmp_path / "r1", dataclasses.replace(STATE, submitted=5))
    assert (tmp_path / "r1" / "a").read_text() == "one"


def test_a_link_among_the_results_leads_nowhere(head: Head, tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "key").write_text("mine")
    fetch(head, tmp_path)
    (tmp_path / "r1" / "link").symlink_to(tmp_path / "elsewhere")
    head.contents = {"link/key": "theirs"}
    with pytest.raises(UsageError, match="leads out of the results"):
        fetch(head, tmp_path)

    assert (tmp_path / "elsewhere" / "key").read_text() == "mine"


def test_where_nothing_can_be_written_is_said(head: Head, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot write .*: Not a directory"):
        fetch(head, tmp_path / "file")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "work/../../x", ".."])
def test_a_cluster_writes_nowhere_else(head: Head, tmp_path: pathlib.Path, path: str) -> None:
    head.contents = {path: "x"}
    with pytest.raises(UsageError, match="outside the run"):
        fetch(head, tmp_path)

    assert head.copied == []


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["pending", "pending"], "Nothing new: no run has ended\n"),
        (["completed", "pending"], "Nothing new: the results of 1 run are already in "),
    ],
)
def test_runs_that_wait_are_not_said_to_be_fetched(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, states: list[str], said: str
) -> None:
    found = [dataclasses.replace(STATE, state=state, tasks=()) for state in states]
    monkeypatch.setattr(actions, "Connection", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(actions, "_look", lambda *_: found)
    monkeypatch.setattr(results, "is_complete", lambda _, state: state.ended)
    out = io.StringIO()
    actions.fetch(Console(file=out), Console(file=out), heads.Head("h"), [], tmp_path, everything=True)

    assert out.getvalue().startswith(said)
