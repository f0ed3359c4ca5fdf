"""What an administrator set at run time stays noted until slurmctld has it again."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from ansible.module_utils.slurmstead.change import decisions as change_decisions
from ansible.module_utils.slurmstead.change.decisions import NOTE, Decisions
from ansible.module_utils.slurmstead.change.sets import Store

CLOSED = {"changed": {"PartitionName=main": {"State": ["UP", "DOWN"]}}, "created": {}}
FILES = {"slurm.conf": "ClusterName=c\n"}


class Slurm:
    """slurmctld, which shows its partitions after the first questions, and answers a ping or not."""

    def __init__(self, unheard: int, pings: bool) -> None:
        self.unheard = unheard
        self.pings = pings

    def shown(self) -> dict[str, dict[str, str]]:
        self.unheard -= 1
        return {} if self.unheard >= 0 else {"PartitionName=main": {"State": "UP"}}

    def answers(self) -> bool:
        return self.pings


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that were run."""
    ran: list[str] = []

    def run(*command: str) -> tuple[int, str, str]:
        ran.append(" ".join(command))
        return 0, "", ""

    monkeypatch.setattr(change_decisions, "run", run)
    return ran


def noted(directory: pathlib.Path, unheard: int, pings: bool) -> Decisions:
    """The decisions after a run that was killed."""
    store, slurm = Store(directory), Slurm(unheard, pings)
    store.note(NOTE, CLOSED)
    client: Any = slurm
    return Decisions(store, client)


@pytest.mark.parametrize("pings", [False, True], ids=["off", "back a moment later"])
def test_the_note_of_a_killed_run_outlives_a_slurmctld_that_does_not_answer(
    tmp_path: pathlib.Path, ran: list[str], pings: bool
) -> None:
    decisions = noted(tmp_path, 99, pings)

    assert decisions.keep(FILES) == [
        "PartitionName=main State=DOWN: was set at run time before an interrupted run and is not set again yet, "
        "because slurmctld did not answer; this run or the next sets it again when slurmctld answers"
    ]
    assert decisions.store.recall(NOTE) == CLOSED
    assert decisions.finish() == []
    assert (decisions.store.recall(NOTE), ran) == (CLOSED, [])


def test_it_is_set_again_as_soon_as_slurmctld_answers(tmp_path: pathlib.Path, ran: list[str]) -> None:
    decisions = noted(tmp_path, 1, pings=True)

    assert len(decisions.keep(FILES)) == 1
    assert len(decisions.finish()) == 1
    assert ran == [
        "scontrol update PartitionName=main State=DOWN",
        "scontrol delete ReservationName=slurmstead-reload",
    ]
    assert not decisions.kept
