"""Which signals end a command."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.runner.interruption import Cancellation, signals_to


@pytest.fixture(params=[signal.SIG_DFL, signal.SIG_IGN], ids=["as usual", "nohup"])
def hangup(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return the handler of SIGHUP before a command starts."""
    before = signal.signal(signal.SIGHUP, request.param)
    yield request.param
    signal.signal(signal.SIGHUP, before)


def test_a_command_ends_on_a_hangup_unless_it_is_ignored(hangup, stead):
    stead("--help")
    assert (signal.getsignal(signal.SIGHUP) == signal.SIG_IGN) == (hangup == signal.SIG_IGN)


def test_a_run_ends_on_a_hangup_unless_it_is_ignored(hangup):
    with signals_to(Cancellation()):
        assert (signal.getsignal(signal.SIGHUP) == signal.SIG_IGN) == (hangup == signal.SIG_IGN)
    assert signal.getsignal(signal.SIGHUP) == hangup
