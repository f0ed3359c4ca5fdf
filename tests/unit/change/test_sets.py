"""At any moment Slurm finds one whole set of files, and the last good one can be found."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from ansible.module_utils.slurmstead.change import sets as change_sets
from ansible.module_utils.slurmstead.change.sets import Store

OLD = {"slurm.conf": "old", "cgroup.conf": "old"}
NEW = {"slurm.conf": "new", "cgroup.conf": "new", "gres.conf": "new"}


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Store:
    """A directory with a foreign file."""
    (tmp_path / "plugstack.conf").write_text("own")
    return Store(tmp_path)


def others(seen: dict[str, str]) -> dict[str, str]:
    assert seen.pop("plugstack.conf") == "own"
    return seen


def test_what_is_published_is_found_and_proven(store: Store) -> None:
    assert store.differs(OLD)
    assert store.publish(OLD) == ""
    assert (others(store.seen()), store.is_proven, store.proven()) == (OLD, False, None)
    store.prove()

    assert (store.is_proven, store.proven(), store.differs(OLD)) == (True, OLD, False)


def test_the_last_good_set_comes_back(store: Store) -> None:
    store.publish(OLD)
    store.prove()
    store.publish(NEW)
    assert not store.is_proven

    assert store.restore()
    assert (others(store.seen()), store.is_proven) == (OLD, True)
    assert store.publish(NEW) == ""
    store.prove()
    assert (others(store.seen()), store.proven()) == (NEW, NEW)


def test_an_edit_after_a_return_does_not_reach_the_good_set(store: Store) -> None:
    store.publish(OLD)
    store.prove()
    store.publish(NEW)
    store.restore()

    (store.directory / "slurm.conf").write_text("edited")

    assert (store.proven(), store.differs(OLD)) == (OLD, True)


def test_without_a_good_set_nothing_comes_back(store: Store) -> None:
    store.publish(OLD)

    assert not store.restore()
    assert others(store.seen()) == OLD


def test_files_of_before_are_taken_over_and_kept(store: Store) -> None:
    (store.directory / "slurm.conf").write_text("mine")
    (store.directory / "gres.conf").write_text("mine too")

    kept = store.publish(OLD)

    assert pathlib.Path(kept, "slurm.conf").read_text() == "mine"
    assert others(store.seen()) == {**OLD, "gres.conf": "mine too"}


@pytest.mark.parametrize("in_place", [True, False])
def test_an_edit_is_seen_put_right_and_kept(store: Store, in_place: bool) -> None:
    store.publish(OLD)
    store.prove()
    path = store.directory / "slurm.conf"
    if not in_place:
        path.unlink()
    path.write_text("edited")
    assert store.differs(OLD)
    assert store.proven() == OLD, "the good set is a copy"

    kept = store.publish(OLD)
    store.prove()

    assert pathlib.Path(kept, "slurm.conf").read_text() == "edited"
    assert (others(store.seen()), store.differs(OLD)) == (OLD, False)


def test_a_file_that_is_no_longer_managed_goes(store: Store) -> None:
    store.publish(NEW)
    store.prove()
    store.publish(OLD)

    assert others(store.seen()) == OLD
    assert not os.path.lexists(store.directory / "gres.conf")


def test_old_sets_do_not_pile_up(store: Store) -> None:
    for number in range(9):
        (store.directory / "cgroup.conf").unlink(missing_ok=True)
        (store.directory / "cgroup.conf").write_text("edited")
        store.publish({**OLD, "slurm.conf": str(number)})
        store.prove()

    assert len([path for path in store.sets.iterdir() if not path.is_symlink()]) <= 5


class PowerCutError(Exception):
    """The machine is off."""


@pytest.mark.slow
@pytest.mark.parametrize("start", ["nothing", "plain files", "published", "edited"])
def test_a_power_cut_leaves_one_set_or_the_other(
    start: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts the power before the first, second, … step that changes anything, until there is no further step."""
    steps = 0
    for cut in range(200):
        directory = tmp_path / str(cut)
        directory.mkdir()
        store = Store(directory)
        before: dict[str, str] = {} if start == "nothing" else OLD
        if start == "plain files":
            for name, text in OLD.items():
                (directory / name).write_text(text)
        elif start != "nothing":
            store.publish(OLD)
            store.prove()
        if start == "edited":
            (directory / "slurm.conf").unlink()
            (directory / "slurm.conf").write_text("edited")
            before = {**OLD, "slurm.conf": "edited"}
        left = [cut]

        def count(real: Any, left: list[int] = left) -> Any:
            def step(*arguments: Any, **named: Any) -> Any:
                if left[0] == 0:
                    raise PowerCutError
                left[0] -= 1
                return real(*arguments, **named)

            return step

        with monkeypatch.context() as patched:
            for name in ("rename", "replace", "symlink_to", "unlink", "mkdir"):
                patched.setattr(pathlib.Path, name, count(getattr(pathlib.Path, name)))
            patched.setattr(change_sets.durable, "sync", count(change_sets.durable.sync))
            try:
                store.publish(NEW)
                store.prove()
            except PowerCutError:
                steps += 1
            else:
                break
        seen = store.seen()
        assert seen in (before, NEW), f"cut before step {cut}: {seen}"

        store.publish(NEW)
        store.prove()
        assert (store.seen(), store.is_proven) == (NEW, True)
    assert steps > 20, "the cuts were not where anything is done"


def test_the_password_of_slurmdbd_is_in_no_set(tmp_path: pathlib.Path) -> None:
    store = Store(tmp_path)
    (tmp_path / "slurmdbd.conf").write_text("StoragePass=canary\n")

    store.publish(NEW)
    store.prove()

    assert "slurmdbd.conf" not in store.seen()
    assert not [path for path in store.sets.rglob("*.conf") if "canary" in path.read_text()]
