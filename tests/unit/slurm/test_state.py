"""The state is read whole while it is being replaced, and put back as a whole for its owner alone."""

from __future__ import annotations

import os
import pathlib
import threading

import pytest

from ansible.module_utils.slurmstead.slurm import state as controller_state


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    """A state as slurmctld leaves it, with two jobs."""
    state = tmp_path / "state"
    for job in ("hash.1/job.11", "hash.2/job.12"):
        (state / job).mkdir(parents=True)
        (state / job / "script").write_text("#!/bin/sh\n")
    for name in ("job_state", "job_state.old", "job_state.new", "node_state", "clustername"):
        (state / name).write_text(name)
    return state


def save(directory: pathlib.Path, name: str, content: bytes) -> None:
    """Replace a file as save_buf_to_state in slurm's src/common/state_save.c does."""
    new, old, path = (directory / f"{name}{suffix}" for suffix in (".new", ".old", ""))
    new.write_bytes(content)
    old.unlink(missing_ok=True)
    os.link(path, old)
    path.unlink()
    os.link(new, path)
    new.unlink()


def test_what_is_half_written_or_old_is_left_out(directory: pathlib.Path) -> None:
    assert sorted(controller_state.read(directory)) == [
        "clustername",
        "hash.1/job.11/script",
        "hash.2/job.12/script",
        "job_state",
        "node_state",
    ]


def test_a_file_that_is_being_replaced_is_read_whole(directory: pathlib.Path) -> None:
    contents = [bytes([number]) * 200_000 for number in range(8)]
    end = threading.Event()

    def slurmctld() -> None:
        while not end.is_set():
            for content in contents:
                save(directory, "job_state", content)

    save(directory, "job_state", contents[0])
    thread = threading.Thread(target=slurmctld)
    thread.start()
    try:
        seen = [controller_state.read(directory)["job_state"] for _ in range(100)]
    finally:
        end.set()
        thread.join()

    assert all(content in contents for content in seen)
    assert len(set(seen)) > 1


def test_jobs_that_were_lost_in_a_replacement_are_those_before(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_state, "PAUSE", 0)
    (directory / "job_state").unlink()

    assert controller_state.read(directory)["job_state"] == b"job_state.old"


def test_one_waits_until_the_jobs_are_written(directory: pathlib.Path) -> None:
    time = 1000.0

    def sleep(seconds: float) -> None:
        nonlocal time
        time += seconds
        if time > 1002:
            os.utime(directory / "job_state", (time, time))

    os.utime(directory / "job_state", (900, 900))
    controller_state.wait_until_saved(directory, lambda: time, sleep)

    assert 1002 < time < 1003


def test_one_waits_no_longer_than_slurmctld_does(directory: pathlib.Path) -> None:
    time = 1000.0

    def sleep(seconds: float) -> None:
        nonlocal time
        time += seconds

    os.utime(directory / "job_state", (900, 900))
    controller_state.wait_until_saved(directory, lambda: time, sleep)

    assert 1006 <= time < 1007


def test_what_is_put_back_is_what_was_read(directory: pathlib.Path, tmp_path: pathlib.Path) -> None:
    files, target = controller_state.read(directory), tmp_path / "var" / "slurmctld"

    kept = controller_state.place(files, target, os.getuid(), os.getgid())

    assert controller_state.read(target) == files
    assert kept == ""
    modes = {oct(path.stat().st_mode & 0o7777) for path in (target, *target.rglob("*")) if path.is_dir()}
    assert modes == {"0o700"}
    assert {oct(path.stat().st_mode & 0o7777) for path in target.rglob("*") if path.is_file()} == {"0o600"}


def test_what_was_there_is_kept_beside_it(directory: pathlib.Path) -> None:
    kept = controller_state.place({"job_state": b"new"}, directory, os.getuid(), os.getgid())

    assert controller_state.read(directory) == {"job_state": b"new"}
    assert (pathlib.Path(kept) / "node_state").read_text() == "node_state"


def test_a_file_system_of_its_own_keeps_the_previous_state_within(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be renamed to the file system above, and the mount point itself not at all."""
    monkeypatch.setattr(os.path, "ismount", lambda path: pathlib.Path(path) == directory)
    times = iter(("1", "2"))
    monkeypatch.setattr(controller_state.time, "strftime", lambda _: next(times))
    (directory / "lost+found").mkdir()
    inode = directory.stat().st_ino
    first = controller_state.place({"job_state": b"new"}, directory, os.getuid(), os.getgid())
    again = controller_state.place({"job_state": b"newer"}, directory, os.getuid(), os.getgid())

    assert (directory / "job_state").read_text() == "newer"
    assert (pathlib.Path(first) / "node_state").read_text() == "node_state"
    assert pathlib.Path(first).parent == pathlib.Path(again).parent == directory
    assert directory.stat().st_ino == inode


def test_what_an_interrupted_restore_left_is_no_part_of_the_next(directory: pathlib.Path) -> None:
    left = directory.with_name(f".{directory.name}.restored")
    left.mkdir()
    (left / "resv_state").touch()

    controller_state.place({"job_state": b"new"}, directory, os.getuid(), os.getgid())

    assert sorted(controller_state.read(directory)) == ["job_state"]
    assert not left.exists()
