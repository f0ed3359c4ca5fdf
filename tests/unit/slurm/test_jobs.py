"""What squeue prints of jobs, read."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.slurm.jobs import Job, State, lost, read_queue


def test_the_queue_is_read() -> None:
    text = (
        "2|OUT_OF_MEMORY|main|n[1-3]|2|OutOfMemory|alice|smoke-a-memory-1\n"
        "21|PENDING|main||20_[3-9]|Resources|bob|a|b\n"
        "squeue: warning of a library\n"
        "22|RUNNING|main|n1|22|None|alice\n"
        "9|RUNNING|main|[|9|None|root|in a name\n"
    )

    assert read_queue(text) == State(
        (
            Job("2", "OUT_OF_MEMORY", "main", ("n1", "n2", "n3"), "OutOfMemory", "2", "alice", "smoke-a-memory-1"),
            Job("21", "PENDING", "main", (), "Resources", "20_[3-9]", "bob", "a|b"),
            Job("22", "RUNNING", "main", ("n1",), "None", "22", "alice"),
        )
    )


@pytest.mark.parametrize("number", ["7", "5_2(7)", "5+2(7)"])
@pytest.mark.parametrize(
    "line",
    [
        "slurmctld: requeue job JobId={} due to failure of node n1",
        "slurmctld: requeue JobId={} due to failure of node n1",
        "slurmctld: Requeue job JobId={} due to node failure",
        "slurmctld: Requeue het job leader JobId={} due to node failure on JobId=8",
        "slurmctld: _job_complete: requeue JobId={} due to node failure",
    ],
)
def test_a_job_that_slurmctld_gave_up_is_lost(line: str, number: str) -> None:
    before, now = Job("7", "RUNNING", "main", ("n1",)), Job("7", "PENDING", "main", reason="BeginTime")

    assert lost([before], {"7": now}, log=lambda: line.format(number)) == [
        (before, "removed from its nodes and requeued")
    ]


@pytest.mark.parametrize(
    "log",
    [
        "slurmctld: Requeuing JobId=7",
        "slurmctld: preempted JobId=7 has been requeued to reclaim resources for JobId=8\nslurmctld: Requeuing JobId=7",
        "slurmctld: _job_complete: requeue JobId=7 per user/system request",
        "slurmctld: requeue job JobId=77 due to failure of node n1",
    ],
)
def test_a_job_that_was_requeued_on_request_is_not_lost(log: str) -> None:
    before, now = Job("7", "RUNNING", "main", ("n1",)), Job("7", "PENDING", "main", reason="BeginTime")

    assert lost([before], {"7": now}, log=lambda: log) == []
