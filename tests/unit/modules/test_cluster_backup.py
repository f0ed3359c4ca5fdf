"""What is read of a control node, and how the archive gets its name."""

from __future__ import annotations

import importlib.util
import pathlib
import types
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.backup import archive as backup_archive
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

ACTION = pathlib.Path(__file__).parents[3] / "plugins" / "action" / "cluster_backup.py"

LoadModule = Callable[[str], types.ModuleType]


class Silent:
    """A slurmctld that does not answer."""

    def answers(self) -> bool:
        return False

    def version(self) -> str:
        return "22.05.8"


class Live(Silent):
    """One that has jobs."""

    def answers(self) -> bool:
        return True

    def state(self) -> State:
        return State((Job("1", "RUNNING"), Job("2", "PENDING"), Job("3", "COMPLETED")))

    def owners(self) -> dict[str, int]:
        return {"alice": 2001}


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> pathlib.Path:
    """The files of a control node, with a set that was proven and one that was not."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "job_state").write_bytes(b"jobs")
    (tmp_path / "munge.key").write_bytes(b"key")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "topology.conf").write_text("SwitchName=a\n")
    store = Store(tmp_path / "etc")
    store.publish({"slurm.conf": f"StateSaveLocation={tmp_path}/state\n"})
    store.prove()
    store.publish({"slurm.conf": "StateSaveLocation=/elsewhere\n"})
    return tmp_path


def collected(module: types.ModuleType, machine: pathlib.Path, slurm: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    return backup_archive.unpack(module.collect("lab", Store(machine / "etc"), slurm, machine / "munge.key"))


@pytest.mark.parametrize(
    ("slurm", "jobs", "owners"), [(Silent(), None, {}), (Live(), {"running": 1, "pending": 1}, {"alice": 2001})]
)
def test_an_archive_has_what_makes_the_cluster(
    load_module: LoadModule,
    machine: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    slurm: Any,
    jobs: dict[str, int] | None,
    owners: dict[str, int],
) -> None:
    module = load_module("cluster_backup")
    monkeypatch.setattr(module.controller_state, "SAVED_WITHIN", 0)

    manifest, files = collected(module, machine, slurm)

    assert files == {
        "munge.key": b"key",
        "state/job_state": b"jobs",
        "slurm/slurm.conf": f"StateSaveLocation={machine}/state\n".encode(),
        "slurm/topology.conf": b"SwitchName=a\n",
    }
    assert (manifest["cluster"], manifest["slurm"], manifest["managed"]) == ("lab", "22.05.8", ["slurm.conf"])
    assert (manifest["jobs"], manifest["owners"]) == (jobs, owners)


@pytest.mark.parametrize("missing", ["munge.key", "state/job_state", "etc/slurm.conf"])
def test_half_a_cluster_is_no_archive(load_module: LoadModule, machine: pathlib.Path, missing: str) -> None:
    (machine / missing).unlink()
    if missing.startswith("etc"):
        Store(machine / "etc").good.unlink()
    if missing.startswith("state"):
        (machine / "state").rmdir()

    with pytest.raises((OSError, KeyError)):
        collected(load_module("cluster_backup"), machine, Silent())


@pytest.fixture
def write() -> Callable[[pathlib.Path, bytes], None]:
    """The function of the action plugin that writes an archive."""
    spec = importlib.util.spec_from_file_location("action_cluster_backup", ACTION)
    assert spec is not None
    assert spec.loader is not None
    action = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(action)
    found: Callable[[pathlib.Path, bytes], None] = action.write
    return found


def test_an_archive_is_its_owners_alone(write: Callable[..., None], tmp_path: pathlib.Path) -> None:
    packed = backup_archive.pack(dict.fromkeys(backup_archive.NEEDED, ""), {})

    write(tmp_path / "a.tar.gz", packed)

    assert (tmp_path / "a.tar.gz").stat().st_mode & 0o7777 == 0o600
    assert (tmp_path / "a.tar.gz").read_bytes() == packed


def test_an_archive_that_cannot_be_read_back_replaces_none(write: Callable[..., None], tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"before")

    with pytest.raises(backup_archive.DamagedError):
        write(tmp_path / "a.tar.gz", b"half")

    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


def test_an_archive_has_the_password_of_slurmdbd_and_its_mode(load_module: LoadModule, machine: pathlib.Path) -> None:
    (machine / "etc" / "slurmdbd.conf").write_text("StoragePass=canary\n")
    (machine / "etc" / "slurmdbd.conf").chmod(0o600)

    manifest, files = collected(load_module("cluster_backup"), machine, Silent())

    assert files["slurm/slurmdbd.conf"] == b"StoragePass=canary\n"
    assert manifest["owned"]["slurmdbd.conf"][2] == 0o600
    assert sorted(manifest["owned"]) == ["slurmdbd.conf", "topology.conf"]
