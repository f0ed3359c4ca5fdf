"""Jobs that must survive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def submit(lab: Any) -> Iterator[Callable[..., list[str]]]:
    """Submit jobs that each fill a worker, for some seconds each; what is left of them goes in the end."""
    lab.wait_until_idle(180)

    def many(*seconds: int) -> list[str]:
        each = "sbatch --parsable --output=/dev/null --exclusive --export=ALL,CANARY=tweet-$((7*191)) --wrap='sleep {}'"
        return str(lab.user("; ".join(each.format(time) for time in seconds), seconds=300)).split()

    yield many
    lab.user("scancel --user=$USER")
    lab.wait_until_idle(240)
