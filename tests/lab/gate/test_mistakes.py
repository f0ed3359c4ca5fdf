"""Every seeded mistake is caught before any daemon is touched, on a controller with running and waiting jobs.

STEAD_LAB=NAME pytest tests/lab/gate
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gate_program import program
from tests.mistakes import MISTAKES, Mistake


@pytest.fixture(scope="module")
def document(lab: Any) -> Iterator[dict[str, Any]]:
    """What a run over all mistakes prints."""
    lab.wait_until_idle(180)
    number = lab.user("sbatch --parsable --output=/dev/null --wrap='sleep 3600'")
    waits = lab.user("sbatch --parsable --output=/dev/null --begin=now+3600 --wrap=true")
    try:
        until = time.monotonic() + 60
        while lab.user(f"squeue --noheader --format=%T --jobs={number}") != "RUNNING":
            assert time.monotonic() < until, f"job {number} does not start"
            time.sleep(1)
        yield lab.python(lab.control, program(), seconds=900)
    finally:
        lab.user(f"scancel {number} {waits}")
        lab.wait_until_idle(180)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_caught(document: dict[str, Any], mistake: Mistake) -> None:
    results = [result for result in document["results"] if result["name"] == mistake.name]

    assert results or not document["version"].startswith(mistake.versions), "it was not tried"
    assert all(result["right"] for result in results), results


def test_nothing_was_touched(document: dict[str, Any]) -> None:
    assert document["before"] == document["after"]
    assert document["unchanged"]


def test_the_configuration_that_runs_passes(document: dict[str, Any]) -> None:
    assert document["good"] == []
