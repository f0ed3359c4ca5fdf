"""A trial's rollback and confirmation, in a real directory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible.module_utils.slurmstead.reach.trial import Trial


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A trial that has begun."""
    (tmp_path / "new").write_text("text")
    return Trial(tmp_path, "slurmstead-test-of-a-trial", "echo >> restored")


def test_only_the_first_rollback_restores(trial: Trial) -> None:
    codes = [subprocess.run(["sh", "-c", trial.words], stderr=subprocess.DEVNULL).returncode for _ in range(2)]

    assert (codes[0], codes[1] != 0) == (0, True)
    assert (trial.directory / "restored").read_text() == "\n"


def test_a_confirmed_trial_is_not_rolled_back(trial: Trial) -> None:
    text = trial.confirm().read_text()

    assert (text, trial.roll_back(), (trial.directory / "restored").exists()) == ("text", False, False)


def test_a_trial_that_was_rolled_back_cannot_be_confirmed(trial: Trial) -> None:
    assert trial.roll_back()
    with pytest.raises(FileNotFoundError):
        trial.confirm()
