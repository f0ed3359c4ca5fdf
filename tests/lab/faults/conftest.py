"""A healthy cluster before and after each fault."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.lab.faults.cluster import failures

FAILED = pytest.StashKey[bool]()


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
