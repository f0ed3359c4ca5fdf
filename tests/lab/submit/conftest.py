"""The lab's cluster as its users have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import client


@pytest.fixture
def cluster(lab: Any, tmp_path: Path) -> Iterator[client.Cluster]:
    """The lab's cluster; each test has its own directory for runs."""
    with client.connected(lab, tmp_path) as found:
        yield found
