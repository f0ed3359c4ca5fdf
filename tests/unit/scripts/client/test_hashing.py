"""Checksums of a task that left no manifest: a request takes a limited time, and the next one continues."""

import errno
import os
from typing import Any, BinaryIO

import pytest

from slurmstead.client.remote import hashing, main, manifest, store
from slurmstead.client.remote.store import Store

from .conftest import FakeSlurm
from .test_submission import submit


@pytest.fixture
def killed(store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the store with a run of 10 bytes in two files whose node failed; a request has time for 4 bytes."""
    submit(store)
    fake_slurm.state = "NODE_FAIL"
    work = store.run("r1") / "work"
    work.mkdir()
    (work / "long").write_text("abcdefghi")
    (work / "short").write_text("j")
    (work / "empty").write_text("")
    monkeypatch.setattr(hashing, "BLOCK", 4)
    monkeypatch.setattr(main, "HASH_SECONDS", 0)
    return store


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the files of which blocks are hashed, in their order."""
    names: list[str] = []
    digest = manifest.digest

    def recorded(file: BinaryIO, size: int) -> bytes:
        names.append(os.path.basename(file.name))
        return digest(file, size)

    monkeypatch.setattr(manifest, "digest", recorded)
    return names


def ask(place: Store) -> dict[str, Any]:
    return main.answer(place, {"action": "results", "job": "r1"}, b"")


def test_each_request_continues_the_last_one_even_inside_a_file(killed: Store, read: list[str]) -> None:
    answers = [ask(killed) for _ in range(4)]

    assert [(answer["hashed"], answer["size"]) for answer in answers[:3]] == [(4, 10), (8, 10), (9, 10)]
    assert "files" not in answers[2]
    assert [entry["path"] for entry in answers[3]["files"]] == ["work/empty", "work/long", "work/short"]
    assert read == ["long", "long", "long", "short"]


def test_what_is_hashed_is_not_hashed_for_the_next_fetch(
    killed: Store, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "HASH_SECONDS", 60)
    first = ask(killed)
    read.clear()

    assert ask(killed) == first
    assert read == []


def test_a_file_that_changed_is_hashed_again(killed: Store, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ask(killed)
    path = killed.run("r1") / "work" / "long"
    path.write_text("ABCDEFGHI")
    os.utime(path, ns=(0, 1))
    monkeypatch.setattr(main, "HASH_SECONDS", 60)
    read.clear()
    entry = ask(killed)["files"][1]

    assert read == ["long", "long", "long", "short"]
    assert entry["sha256"] == manifest.checksum(path, entry["block"])


def test_a_checksum_of_one_block_is_that_of_the_file(killed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "HASH_SECONDS", 60)
    work = killed.run("r1") / "work"
    entries = {os.path.basename(entry["path"]): entry for entry in ask(killed)["files"]}

    assert {name for name, entry in entries.items() if "block" in entry} == {"long"}
    assert [entries[name]["sha256"] for name in ("short", "empty")] == [
        manifest.checksum(work / name) for name in ("short", "empty")
    ]
    assert entries["long"]["sha256"] != manifest.checksum(work / "long")


def test_a_full_disk_keeps_no_results_back(killed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EDQUOT, "quota exceeded")

    monkeypatch.setattr(store, "write", full)

    assert len(ask(killed)["files"]) == 3
