"""A node that Slurm drained by itself is resumed when slurmd has put right why; slurmctld's clients are imitated."""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

DRAINED = {
    "State": "MIXED+DRAIN",
    "Reason": "Duplicate jobid",
    "ReasonSetByUser": "slurm",
    "ReasonChangedAt": "2026-11-20T09:00:00",
    "SlurmdStartTime": "2026-11-20T09:00:12",
}


class Clients:
    """What slurmctld has, and what the node has at each look; the last one lasts."""

    def __init__(self, shown: dict[str, str], *looks: list[str]) -> None:
        self.shown = shown
        self.looks = list(looks)
        self.updates: list[tuple[str, str]] = []

    def nodes(self) -> dict[str, dict[str, str]]:
        """As scontrol shows them."""
        return {"n1": self.shown}

    def state(self) -> State:
        """Job 7 is where it should be, and the number of job 8 was given to another one."""
        return State((Job("7", "RUNNING", nodes=("n1",)), Job("8", "PENDING")))

    def present(self) -> list[str]:
        """Jobs of which the node has processes."""
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Resume; no administrator drains meanwhile."""
        self.update(compress(seen), "RESUME")
        return []

    def update(self, nodes: str, state: str) -> None:
        """Resume."""
        self.updates.append((nodes, state))


@pytest.fixture
def take_back(
    monkeypatch: pytest.MonkeyPatch, load_module: Callable[[str], types.ModuleType], run_module: Callable[..., Any]
) -> Callable[..., Any]:
    """Run the module with clients; nobody sleeps."""
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def run(clients: Clients, timeout: int = 60, check: bool = False) -> Any:
        monkeypatch.setattr(load_module("slurm_outdated_drain"), "Slurm", lambda: clients)
        return run_module("slurm_outdated_drain", node="n1", timeout=timeout, check=check)

    return run


def test_a_node_is_resumed_once_it_has_no_job_that_slurmctld_does_not_know(take_back: Callable[..., Any]) -> None:
    clients = Clients(DRAINED, ["7", "8"], ["7", "8"], ["7"])

    done = take_back(clients)

    assert done.changed
    assert clients.looks == [["7"]]
    assert clients.updates == [("n1", "RESUME")]


def test_a_node_that_keeps_such_a_job_stays_drained_and_is_named_with_it(take_back: Callable[..., Any]) -> None:
    clients = Clients(DRAINED, ["7", "8"])

    done = take_back(clients, timeout=0)

    assert not done.changed
    assert clients.updates == []
    assert done.result["unknown"] == ["8"]


def test_a_dry_run_resumes_nothing(take_back: Callable[..., Any]) -> None:
    clients = Clients(DRAINED, [])

    assert take_back(clients, check=True).changed
    assert clients.updates == []


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param({**DRAINED, "Reason": "fan"}, id="another reason"),
        pytest.param({**DRAINED, "ReasonSetByUser": "ann"}, id="an-administrator"),
        pytest.param({**DRAINED, "SlurmdStartTime": "2026-11-20T08:59:59"}, id="slurmd of before"),
    ],
)
def test_any_other_drain_stays(take_back: Callable[..., Any], shown: dict[str, str]) -> None:
    clients = Clients(shown, [])

    assert not take_back(clients, timeout=0).changed
    assert clients.updates == []
