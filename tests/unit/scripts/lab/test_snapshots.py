"""Snapshots of a lab: what is refused before a machine is touched, and which disks a snapshot keeps."""

import errno
import json
import os
import pathlib
import signal

import pytest

from slurmstead.errors import Interrupted, MachineError, UsageError
from slurmstead.lab import snapshots


@pytest.fixture
def lab(tmp_path: pathlib.Path) -> pathlib.Path:
    """The directory of a lab with node1, which is off, and a snapshot of it."""
    for home in (tmp_path / "node1", tmp_path / "snapshots" / "converged.a1" / "node1"):
        home.mkdir(parents=True)
        (home / "ssh_config").touch()
        for disk in ("root.qcow2", "node1-disk0.raw"):
            (home / disk).write_text(disk)
    (tmp_path / "snapshots/converged.a1/node1.memory").touch()
    (tmp_path / "snapshots/converged.a1/machines.json").write_text(json.dumps({"node1": ["qemu"]}))
    return tmp_path


def test_the_snapshots_of_a_lab_are_listed_without_those_that_were_not_completed(lab: pathlib.Path) -> None:
    (lab / "snapshots" / "unfinished.b2").mkdir()

    assert snapshots.labels(lab) == ["converged"]
    assert snapshots.labels(lab / "none") == []


@pytest.mark.parametrize("label", ["", "A", "a.b", "../a", "a" * 32])
def test_a_label_that_no_path_should_hold_is_refused(lab: pathlib.Path, label: str) -> None:
    with pytest.raises(UsageError, match="is not a valid label") as caught:
        snapshots.freeze(lab, label)
    assert "lower-case" in caught.value.hint


def test_a_machine_that_is_off_cannot_be_frozen(lab: pathlib.Path) -> None:
    with pytest.raises(MachineError, match="node1 must run") as caught:
        snapshots.freeze(lab)
    assert "lab up" in caught.value.hint
    assert snapshots.labels(lab) == ["converged"]


def test_a_freeze_that_is_interrupted_among_its_moves_makes_the_snapshot(
    lab: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_machines", lambda _: {"node1": os.getpid()})
    monkeypatch.setattr(snapshots, "_save", lambda *_: None)
    monkeypatch.setattr(snapshots.machines, "end", lambda _: os.kill(os.getpid(), signal.SIGINT))

    with pytest.raises(Interrupted) as caught:
        snapshots.freeze(lab)

    assert "lab thaw converged" in caught.value.hint
    assert snapshots.labels(lab) == ["converged"]
    assert not (lab / "snapshots/converged.a1/machines.json").exists()
    assert not (lab / "node1").exists()


def test_a_full_disk_does_not_end_the_machines(lab: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(snapshots, "_machines", lambda _: {"node1": os.getpid()})
    monkeypatch.setattr(snapshots, "_save", lambda *_: None)
    monkeypatch.setattr(pathlib.Path, "write_text", full)

    with pytest.raises(OSError, match="No space left"):
        snapshots.freeze(lab, "other")

    assert (lab / "node1").exists()
    assert not list(lab.glob("snapshots/other.*"))


def test_containers_cannot_be_frozen(lab: pathlib.Path) -> None:
    (lab / "bridge").touch()

    with pytest.raises(UsageError, match="containers, which cannot be frozen") as caught:
        snapshots.freeze(lab)
    assert "--native" in caught.value.hint


def test_a_lab_that_does_not_exist_cannot_be_frozen(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        snapshots.freeze(tmp_path)


def test_an_unknown_label_is_answered_with_those_that_exist(lab: pathlib.Path) -> None:
    with pytest.raises(UsageError, match=r"no snapshot 'other'; it has: converged"):
        snapshots.thaw(lab, "other")


def test_a_lab_with_another_machine_is_not_thawed(lab: pathlib.Path) -> None:
    (lab / "node9").mkdir()
    (lab / "node9" / "ssh_config").touch()

    with pytest.raises(UsageError, match="does not contain node9"):
        snapshots.thaw(lab)


@pytest.mark.parametrize("pid", [None, "4194305", str(os.getpid())], ids=["never ran", "ended", "another process"])
def test_without_its_switch_a_lab_is_not_thawed(lab: pathlib.Path, pid: str | None) -> None:
    if pid:
        (lab / "switch.pid").write_text(pid)

    with pytest.raises(MachineError, match="the switch of the lab .* does not run") as caught:
        snapshots.thaw(lab)

    assert "lab up" in caught.value.hint
    assert (lab / "node1" / "root.qcow2").exists(), "the machine was touched"


def test_a_thawed_machine_has_the_command_that_it_had_before() -> None:
    plain = ["qemu", "-name", "node1", "-append", "root=/dev/vda rw"]

    for words in (plain, [*plain, "-S", "-incoming", "fd:7"]):
        assert snapshots.plain_command("".join(f"{word}\0" for word in words).encode()) == plain


def test_what_a_replaced_snapshot_leaves_is_the_disk_below_later_ones(lab: pathlib.Path) -> None:
    snapshots._forget(lab / "snapshots/converged.a1/machines.json")

    left = sorted(path.name for path in (lab / "snapshots").rglob("*") if path.is_file())
    assert left == ["root.qcow2", "ssh_config"]
    assert snapshots.labels(lab) == []
