"""A healthy cluster before and after each fault."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.lab.faults.cluster import failures

FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def tasks(lab: Any) -> list[str]:
    """The tasks of a run of site.yml, in their order."""
    found: list[str] = []
    run = lab.ansible(began=lambda task, _pid: found.append(task))
    assert run.code == 0, failures(run)
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test failed, for what has to be put right after it."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def healthy(lab: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """The cluster, idle before and after each fault; after a failure site.yml puts right what is left of it."""
    lab.wait_until_idle(180)
    yield
    if request.node.stash.get(FAILED, True):
        lab.insist(lab.control, "true", 300)
        print(lab.ansible().output[-3000:])
    lab.wait_until_idle(300)
