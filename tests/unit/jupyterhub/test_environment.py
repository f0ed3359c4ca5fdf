"""Environments of notebooks side by side, and which are removed."""

from __future__ import annotations

import os
import pathlib
import tarfile
import time

import pytest

from ansible.module_utils.slurmstead.jupyterhub import environment
from ansible.module_utils.slurmstead.jupyterhub.environment import COMPLETE, KEPT, REPLACED, Environments, InstallError


def complete(directory: pathlib.Path, name: str, wheels: pathlib.Path | None = None) -> Environments:
    """Return an environment that seems to be installed, with a wheel of the client."""
    (directory / name / "wheels").mkdir(parents=True)
    (directory / name / "wheels" / f"slurmstead_client-{name}.whl").write_text(name)
    (directory / name / COMPLETE).touch()
    return Environments(directory, name, wheels)


def test_a_run_shows_what_it_changes_and_the_next_one_changes_nothing(tmp_path: pathlib.Path) -> None:
    one = complete(tmp_path, "one", tmp_path / "published")

    assert one.differences() == [
        f"{tmp_path}/current -> one",
        f"{tmp_path}/published: the wheels of one",
    ]
    one.switch()
    one.publish()
    assert one.differences() == []


def test_a_replaced_environment_stays_for_notebooks_that_run(tmp_path: pathlib.Path) -> None:
    complete(tmp_path, "one").switch()
    complete(tmp_path, "two").switch()
    complete(tmp_path, "three").switch()

    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "three", "current"}
    assert os.readlink(tmp_path / "current") == "three"


def test_what_was_replaced_long_ago_is_removed_by_the_next_replacement(tmp_path: pathlib.Path) -> None:
    complete(tmp_path, "one").switch()
    complete(tmp_path, "two").switch()
    old = time.time() - KEPT - 60
    os.utime(tmp_path / "one" / REPLACED, (old, old))

    complete(tmp_path, "three").switch()

    assert {path.name for path in tmp_path.iterdir()} == {"two", "three", "current"}


def test_an_environment_that_is_wanted_again_is_current_and_stays(tmp_path: pathlib.Path) -> None:
    one = complete(tmp_path, "one")
    one.switch()
    complete(tmp_path, "two").switch()
    one.switch()

    assert one.is_current
    assert not (tmp_path / "one" / REPLACED).exists()


def test_users_find_the_wheels_of_the_current_client_only(tmp_path: pathlib.Path) -> None:
    published = tmp_path / "published"
    complete(tmp_path, "one", published).publish()
    complete(tmp_path, "two", published).publish()

    assert [path.name for path in published.iterdir()] == ["slurmstead_client-two.whl"]


@pytest.mark.parametrize("name", ["../evil.whl", "/etc/evil.whl", "program"])
def test_an_archive_writes_nothing_but_wheels_into_its_directory(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with tarfile.open(tmp_path / "wheels.tar", "w") as archive:
        archive.add(tmp_path / "file", name)
    (tmp_path / "target").mkdir()

    with pytest.raises(InstallError, match="is not a wheel"):
        environment._unpack(tmp_path / "wheels.tar", tmp_path / "target")


def test_an_installation_that_fails_is_not_complete(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(tmp_path / "wheels.tar", "w"):
        pass
    monkeypatch.setattr(environment, "PYTHON", "/bin/false")
    one = Environments(tmp_path, "one")

    with pytest.raises(InstallError, match="/bin/false exited with 1"):
        one.install(tmp_path / "wheels.tar", "")
    assert not one.is_installed
