"""What tests of native clusters share."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.native.cluster import Cluster
from tests.native.root import RELEASES

FIRST, *OTHERS = RELEASES


@pytest.fixture(scope="module", params=[FIRST, *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS)])
def release(request: pytest.FixtureRequest) -> str:
    """Each release of Debian in turn; CI has time for the first."""
    return str(request.param)


@pytest.fixture(scope="module")
def four(release: str) -> Iterator[Cluster]:
    """A cluster of four nodes; a test leaves all of them idle."""
    with Cluster(release, 4) as cluster:
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the daemons' logs and what Slurm says to the report of a failure."""
    report = yield
    if report.failed:
        report.sections += [(f"the cluster with {one.release}", one.report()) for one in Cluster.running]
    return report
