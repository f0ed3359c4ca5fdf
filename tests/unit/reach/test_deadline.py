"""Waiting ends when nothing is missing any more, or at the deadline."""

from __future__ import annotations

import time

import pytest

from ansible.module_utils.slurmstead.reach.deadline import wait_while


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves by what is slept; its one value is the time."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def test_what_is_there_is_not_waited_for(clock: list[float]) -> None:
    assert wait_while(lambda: "", seconds=10, every=2) == ""
    assert clock == [100.0]


def test_waiting_ends_when_nothing_is_missing(clock: list[float]) -> None:
    assert wait_while(lambda: clock[0] < 105, seconds=10, every=2) is False
    assert clock == [106.0]


def test_at_the_deadline_what_is_missing_is_returned_after_a_last_look(clock: list[float]) -> None:
    looks: list[float] = []

    def look() -> str:
        looks.append(clock[0])
        return f"missing at {clock[0]:.0f}"

    assert wait_while(look, seconds=5, every=2) == "missing at 106"
    assert looks == [100, 102, 104, 106]


def test_without_any_time_there_is_one_look(clock: list[float]) -> None:
    assert wait_while(lambda: "missing", seconds=-1, every=2) == "missing"
    assert clock == [100.0]
