"""Every seeded mistake is caught before any daemon is touched, on a controller with running and waiting jobs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.mistakes import MISTAKES, Mistake
from tests.native.cluster import Cluster
from tests.native.gate.program import run
from tests.native.root import RELEASES

CASES = [
    pytest.param(release, mistake, id=f"{release}-{mistake.name}")
    for release, version in RELEASES.items()
    for mistake in MISTAKES
    if not mistake.versions or version.startswith(mistake.versions)
]


def tried(cluster: Cluster, name: str) -> dict[str, Any]:
    """Make a mistake, and return what is said; no daemon may be another one after it."""
    before = cluster.daemon()
    said: dict[str, Any] = json.loads(run(cluster, "try_mistake", name))
    assert said["unchanged"]
    assert cluster.daemon() == before
    return said


@pytest.mark.parametrize(("release", "mistake"), CASES, indirect=["release"], scope="module")
def test_a_mistake_is_caught(busy: Cluster, mistake: Mistake) -> None:
    said = tried(busy, mistake.name)

    lines = said["refusals"] if mistake.refused else said["warnings"]
    assert bool(said["refusals"]) == mistake.refused, said
    assert any(re.search(said["expected"], line) for line in lines), said


def test_the_configuration_that_runs_passes(busy: Cluster) -> None:
    assert tried(busy, "")["refusals"] == []
