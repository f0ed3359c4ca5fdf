"""site.yml finds a cluster on which several things went wrong: one run puts them right and says so.

STEAD_LAB=NAME pytest tests/lab/faults
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.faults.drift import DRIFT
from tests.lab.faults.fault import survive


@pytest.mark.kernel  # A container has no clock of its own.
def test_one_run_puts_everything_right_that_nobody_wanted(lab: Any) -> None:
    assert survive(lab, DRIFT) == {}
