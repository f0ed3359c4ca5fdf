"""Runs that are interrupted at a random moment. The seed decides which machine is hit, and at which task."""

from __future__ import annotations

import pytest

from tests.lab.faults.conftest import healthy, pytest_runtest_makereport, tasks

__all__ = ["healthy", "pytest_runtest_makereport", "tasks"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run choose the seeds of what is random."""
    parser.addoption("--first-seed", type=int, default=1, metavar="N", help="first seed of the tests that are random")
    parser.addoption("--seeds", type=int, default=1, metavar="N", help="number of seeds that they run with")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a `seed` with each of them."""
    if "seed" in metafunc.fixturenames:
        # Another directory's run that comes here has not read these options.
        first = int(metafunc.config.getoption("--first-seed", 1))
        count = int(metafunc.config.getoption("--seeds", 1))
        metafunc.parametrize("seed", range(first, first + count))
