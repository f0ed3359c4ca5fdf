"""An archive is put in place as a whole, once, and before slurmctld can start. systemctl is imitated."""

from __future__ import annotations

import getpass
import pathlib
import stat
import types
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.conf.finding import Finding
from ansible.module_utils.slurmstead.gate.gate import Passage
from ansible.module_utils.slurmstead.identity import munge
from ansible.module_utils.slurmstead.slurm import state as controller_state
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

LoadModule = Callable[[str], types.ModuleType]


@pytest.fixture
def ran(load_module: LoadModule, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that were run; each succeeds."""
    found: list[tuple[str, ...]] = []

    def run(*command: str, seconds: float) -> tuple[int, str, str]:
        del seconds
        found.append(command)
        return 0, "", ""

    monkeypatch.setattr(load_module("cluster_restore"), "run", run)
    return found


@pytest.fixture
def owned() -> dict[str, Any]:
    """What the archive says about the owner of slurmdbd.conf: nothing, as the archives of earlier versions."""
    return {}


@pytest.fixture
def put(
    load_module: LoadModule, ran: list[tuple[str, ...]], tmp_path: pathlib.Path, owned: dict[str, Any]
) -> Callable[[], list[str]]:
    """Put an archive in place below a directory."""
    module, me = load_module("cluster_restore"), getpass.getuser()
    conf = f"SlurmUser={me}\nStateSaveLocation={tmp_path}/state\n"
    files = {
        "state/job_state": b"jobs",
        "munge.key": b"key",
        "slurm/slurm.conf": conf.encode(),
        "slurm/topology.conf": b"SwitchName=a\n",
        "slurm/slurmdbd.conf": b"StoragePass=canary\n",
    }
    manifest: dict[str, Any] = {
        "state_directory": f"{tmp_path}/state",
        "managed": ["slurm.conf"],
        "owned": {"topology.conf": [me, "no-such-group", 0o640], **owned},
        "created": "2026-11-21T15:20:31Z",
    }

    def call() -> list[str]:
        notes: list[str] = module.put(Store(tmp_path / "etc"), manifest, files, "digest", tmp_path / "munge.key", me)
        assert module.is_done(Store(tmp_path / "etc"), manifest, "digest")
        assert not module.is_done(Store(tmp_path / "etc"), manifest, "another")
        return notes

    return call


def test_everything_is_in_place_and_slurmctld_is_stopped(
    put: Callable[[], list[str]], ran: list[tuple[str, ...]], load_module: LoadModule, tmp_path: pathlib.Path
) -> None:
    assert put() == [load_module("cluster_restore").OLD_KEY]

    store = Store(tmp_path / "etc")
    assert controller_state.read(tmp_path / "state") == {"job_state": b"jobs"}
    assert munge.is_right(b"key", tmp_path / "munge.key", getpass.getuser())
    assert (store.is_proven, sorted(store.managed())) == (True, ["slurm.conf"])
    assert store.seen()["topology.conf"] == "SwitchName=a\n"
    assert ran == [("systemctl", "stop", "slurmctld.service")]


def test_what_was_there_is_kept_and_said(put: Callable[[], list[str]], tmp_path: pathlib.Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "job_state").write_bytes(b"empty queue")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "slurm.conf").write_text("ClusterName=fresh\n")
    (tmp_path / "etc" / "topology.conf").write_text("SwitchName=b\n")
    (tmp_path / "munge.key").write_bytes(b"key")

    kept = [pathlib.Path(note.rpartition(" ")[2]) for note in put()]

    assert (kept[0] / "job_state").read_bytes() == b"empty queue"
    assert (kept[1] / "slurm.conf").read_text() == "ClusterName=fresh\n"
    assert Store(tmp_path / "etc").seen()["topology.conf"] == "SwitchName=b\n"


def test_a_restore_that_brings_an_old_key_back_says_how_to_replace_it(
    put: Callable[[], list[str]], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "munge.key").write_bytes(b"newer")

    (note,) = put()

    assert note.endswith("if the key was replaced since this backup, run `scripts/stead rotate-key` now")
    assert (tmp_path / "munge.key").read_bytes() == b"key"


def test_a_restore_that_was_cut_knows_that_the_jobs_are_its_own(
    put: Callable[[], list[str]], load_module: LoadModule, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    module, store = load_module("cluster_restore"), Store(tmp_path / "etc")
    with monkeypatch.context() as patched:
        patched.setattr(Store, "publish", cut)
        with pytest.raises(KeyboardInterrupt):
            put()
    assert store.recall(module.RESTORING) == {"sha256": "digest"}

    put()
    assert store.recall(module.RESTORING) == {}


def test_an_archive_whose_state_is_gone_is_put_in_place_again(
    put: Callable[[], list[str]], load_module: LoadModule, tmp_path: pathlib.Path
) -> None:
    put()
    (tmp_path / "state" / "job_state").unlink()

    module = load_module("cluster_restore")
    assert not module.is_done(Store(tmp_path / "etc"), {"state_directory": f"{tmp_path}/state"}, "digest")


def test_slurmctld_that_does_not_stop_leaves_everything_as_it_was(
    put: Callable[[], list[str]], load_module: LoadModule, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(load_module("cluster_restore"), "run", lambda *_, seconds: (1, "", f"after {seconds:.0f} s"))

    with pytest.raises(OSError, match="slurmctld does not stop: after 120 s"):
        put()

    assert list(tmp_path.iterdir()) == []


def test_files_get_the_mode_that_they_had_and_an_unknown_group_gets_nothing(
    put: Callable[[], list[str]], tmp_path: pathlib.Path
) -> None:
    put()

    assert stat.S_IMODE((tmp_path / "etc" / "topology.conf").stat().st_mode) == 0o600


@pytest.mark.parametrize("owned", [{}, {"slurmdbd.conf": [getpass.getuser(), "no-such-group", 0o600]}])
def test_only_its_owner_can_read_a_restored_slurmdbd_conf(put: Callable[[], list[str]], tmp_path: pathlib.Path) -> None:
    put()

    path = tmp_path / "etc" / "slurmdbd.conf"
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("StoragePass=canary\n", 0o600)


class Silent(Slurm):
    """An installed slurmctld that does not run."""

    def answers(self) -> bool:
        return False

    def version(self) -> str:
        return "22.05.8"


def test_a_saved_queue_is_unknown_unless_slurmctld_loads_it_or_says_that_it_is_damaged(
    load_module: LoadModule, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    module, conf = load_module("cluster_restore"), {"slurm.conf": ""}
    full, damaged = State((Job("7", "PENDING", "main"),)), Finding(f"slurmctld says: {controller_state.DAMAGED}")

    def here(passage: Passage) -> State:
        monkeypatch.setattr(module.gate_gate, "passage", lambda *_: passage)
        found: State = module.here(conf, Silent(), tmp_path)
        return found

    assert here(Passage()) == State()
    (tmp_path / "job_state").touch()
    assert here(Passage(queue=full)) == full
    assert not here(Passage((Finding("slurmctld did not start in time"),))).heard
    assert here(Passage((damaged,))) == State()
    assert not module.here({}, Silent(), tmp_path).heard
