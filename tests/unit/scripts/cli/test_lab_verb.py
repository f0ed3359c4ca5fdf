"""What `stead lab down` leaves, and which lab the advice of other verbs names."""

import pytest

from slurmstead.errors import ExitCode
from slurmstead.lab import machines, snapshots
from slurmstead.paths import lab_directory


@pytest.mark.parametrize("left", [False, True])
def test_a_machine_that_is_not_in_the_inventory_is_named(project, stead, capsys, monkeypatch, left):
    monkeypatch.setattr(machines, "down", lambda *_: None)
    if left:
        (lab_directory("mine") / "node4").mkdir(parents=True)
        (lab_directory("mine") / "node4/ssh_config").touch()

    code = stead("lab", "down", "--name", "mine")

    assert code == (ExitCode.CHECK_FAILED if left else ExitCode.OK)
    assert ("the lab mine still has node4: not in " in capsys.readouterr().err) is left


named = pytest.mark.parametrize(("words", "of_lab"), [(["--name", "mine"], " --name mine"), ([], "")])


@named
def test_a_frozen_lab_is_thawed_by_its_name(project, stead, capsys, monkeypatch, words, of_lab):
    monkeypatch.setattr(snapshots, "freeze", lambda *_: None)

    stead("lab", "freeze", "before", *words)
    assert capsys.readouterr().out.endswith(f"go back: scripts/stead lab thaw before{of_lab}\n")


@named
@pytest.mark.parametrize("verb", [["status"], ["ssh", "node1"]])
def test_a_missing_lab_is_created_by_its_name(project, stead, capsys, verb, words, of_lab):
    stead("lab", *verb, *words)
    assert capsys.readouterr().err.endswith(f"Create it: scripts/stead lab up{of_lab}\n")


@pytest.mark.parametrize("verb", [["demo"], ["lab", "up"]])
def test_a_lab_of_another_image_is_removed_by_its_name(project, stead, capsys, verb):
    (lab_directory("mine") / "node1").mkdir(parents=True)
    (lab_directory("mine") / "node1/image").write_text("/images/bookworm-amd64-baked-0123456789ab")

    assert stead(*verb, "--release", "trixie", "--name", "mine") == ExitCode.USAGE
    assert "Remove the lab first (scripts/stead lab down --name mine)" in capsys.readouterr().err
