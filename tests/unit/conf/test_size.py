"""What depends on the number of nodes keeps its promise for every number."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.conf import size
from ansible.module_utils.slurmstead.storage import nfs

SIZES = (1, 4, 63, 64, 65, 256, 257, 512, 601, 2000, 5000)


@pytest.mark.parametrize("nodes", SIZES)
def test_no_more_than_ten_health_checks_a_second(nodes: int) -> None:
    seconds = size.health_check_interval(nodes)

    assert (nodes / seconds <= 10, seconds >= 60) == (True, True)


@pytest.mark.parametrize("nodes", SIZES)
def test_a_message_reaches_all_nodes_over_one_other_at_most(nodes: int) -> None:
    width = size.tree_width(nodes) or 16

    assert width + width * width >= nodes


def test_the_scheduler_pauses_longer_the_more_nodes_there_are() -> None:
    pauses = [[int(word.partition("=")[2]) for word in size.scheduler_parameters(nodes).split(",")] for nodes in SIZES]

    assert pauses == sorted(pauses)
    # Slurm's defaults, and the value of its guide for many short jobs.
    assert pauses[-1] == [3, 60, 2_000_000]
    assert pauses[1][:2] == [0, 1]


@pytest.mark.parametrize("clients", [1, 8, 64, 128])
def test_each_client_of_the_share_can_have_two_requests_served(clients: int) -> None:
    assert nfs.threads(clients) >= 2 * clients


def test_one_more_client_rarely_restarts_the_server() -> None:
    numbers = [nfs.threads(clients) for clients in range(1, 2000)]

    assert len(set(numbers)) == 5
    assert max(numbers) == 256
