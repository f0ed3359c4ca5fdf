"""What scontrol prints of nodes: the health check, which runs on its own, reads it as the rest does."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.slurm.answers import flags, read_nodes
from tests.unit.test_health_check import health


@pytest.mark.parametrize("state", ["IDLE", "IDLE*+DRAIN", "MIXED+DRAIN+INVALID_REG", "DOWN~+POWERED_DOWN", "IDLE%"])
@pytest.mark.parametrize(
    "after",
    [
        "",
        " Reason=fan [root@2026-11-20T09:00:00]",
        " Reason=a [b] c [slurm@2026-11-20T09:00:00] Comment=State=DOWN",
        " Reason=Low RealMemory (reported:900 < 100.00% of configured:1900) [slurm@2026-11-20T09:00:00]",
    ],
)
def test_the_health_check_reads_a_node_as_the_rest_does(state: str, after: str) -> None:
    line = f"NodeName=n1 CPUTot=4 RealMemory=1900 State={state} ThreadsPerCore=1{after}"
    shown = read_nodes(line)["n1"]

    signed = (shown["ReasonSetByUser"], shown["ReasonChangedAt"])
    assert health.parse(line) == (flags(shown), 4, 1900, shown["Reason"], *signed)


def test_a_reason_that_nobody_signed_ends_where_a_comment_begins() -> None:
    assert read_nodes("NodeName=n1 State=DOWN Reason=not known Comment=x")["n1"]["Reason"] == "not known"
