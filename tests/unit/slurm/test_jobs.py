"""What squeue prints of jobs, read."""

from __future__ import annotations

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


def test_a_job_that_its_owner_requeued_and_holds_is_not_lost() -> None:
    before = Job("7", "RUNNING", "main", ("n1",))

    assert lost([before], {"7": Job("7", "PENDING", "main", reason="JobHeldUser")}) == []
    assert lost([before], {"7": Job("7", "PENDING", "main", reason="BeginTime")})
