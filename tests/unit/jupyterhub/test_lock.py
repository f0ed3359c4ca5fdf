"""The locks of the role, as the controlling computer reads them for a machine."""

from __future__ import annotations

import importlib.util
import pathlib
import types

import pytest

from ansible.module_utils.slurmstead.jupyterhub import lock

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHONS = ("3.11.2", "3.13.5")


@pytest.fixture(scope="module")
def action() -> types.ModuleType:
    """The action plugin, which has the same name as the module."""
    path = ROOT / "plugins/action/jupyterhub_environment.py"
    spec = importlib.util.spec_from_file_location("jupyterhub_environment_action", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["hub", "kernel"])
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_what_was_asked_for_is_locked_for_each_machine(
    action: types.ModuleType, name: str, python: str, architecture: str
) -> None:
    words = (ROOT / f"roles/jupyterhub/files/{name}.in").read_text().split()
    asked = {word.split(">")[0].split("=")[0] for word in words}
    packages = action.wanted(
        (ROOT / f"roles/jupyterhub/files/{name}.txt").read_text(),
        action.locks.Machine(python, architecture),
        with_client=False,
    )

    lines = packages.text.splitlines()
    assert asked <= {line.partition("==")[0] for line in lines}
    assert all("--hash=sha256:" in line and ";" not in line for line in lines)


def test_a_machine_whose_python_is_too_old_is_refused() -> None:
    with pytest.raises(lock.LockError, match=r"needs Python 3\.11, but the machine has 3\.10\.12; use Debian 12"):
        lock.chosen("", lock.Machine("3.10.12", "x86_64"), lambda *_: True)


def test_hub_and_notebooks_have_the_same_versions(action: types.ModuleType) -> None:
    versions = {}
    for name in ("hub", "kernel"):
        text = (ROOT / f"roles/jupyterhub/files/{name}.txt").read_text()
        packages = action.wanted(text, action.locks.Machine(PYTHONS[0], "x86_64"), with_client=False)
        versions[name] = dict(line.split()[0].split("==") for line in packages.text.splitlines())

    for package in ("jupyterhub", "batchspawner"):
        assert versions["hub"][package] == versions["kernel"][package]


def test_another_client_is_another_environment(action: types.ModuleType) -> None:
    machine = action.locks.Machine(PYTHONS[0], "x86_64")
    one, two = (action.Packages(machine, "a==1 --hash=x\n", ("c-1-py3.whl", content)) for content in (b"1", b"2"))

    assert one.digest != two.digest
    assert one.text.startswith("a==1 --hash=x\nc==1 --hash=sha256:")


@pytest.mark.parametrize("line", ["jupyterhub", "jupyterhub>=5 --hash=sha256:00", "jupyterhub==5", "-r other.txt"])
def test_a_line_without_a_version_or_a_hash_is_refused(line: str) -> None:
    with pytest.raises(lock.LockError, match="expected name==version"):
        lock.chosen(f"{line}\n", lock.Machine(PYTHONS[0], "x86_64"), lambda marker, facts: True)
