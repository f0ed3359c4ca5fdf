"""What `stead lab down` leaves."""

import pytest

from slurmstead.errors import ExitCode
from slurmstead.lab import machines
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
