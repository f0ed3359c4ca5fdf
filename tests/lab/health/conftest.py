"""A cluster whose workers are idle before and after each test, and a worker to break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.health.checking import INTERVAL


@pytest.fixture(autouse=True)
def idle(lab: Any) -> Iterator[None]:
    """The cluster, idle before and after each test."""
    lab.wait_until_idle(3 * INTERVAL)
    yield
    lab.wait_until_idle(3 * INTERVAL)


@pytest.fixture
def victim(lab: Any) -> str:
    """A worker with a disk of its own for scratch."""
    return next(str(name) for name in lab.workers if lab.variables[name].get("scratch_disks"))
