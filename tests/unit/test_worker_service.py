"""Which workers are in service, which are not there, and which jobs are on them."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.slurm_jobs import Job, State
from ansible.module_utils.slurmstead.worker_service import drained, on, unready

OURS = "stead shutdown"
NODES = {
    "n1": {"State": "IDLE+DRAIN", "Reason": OURS},
    "n2": {"State": "MIXED+DRAIN", "Reason": "fan"},
    # 24.11 keeps the reason of a node that was resumed.
    "n3": {"State": "IDLE", "Reason": OURS},
    "n4": {"State": "DOWN*+DRAIN", "Reason": OURS},
    "n5": {"State": "IDLE*", "Reason": ""},
}


@pytest.mark.parametrize(("reason", "expected"), [(OURS, ["n1", "n4"]), (None, ["n1", "n2", "n4"])])
def test_what_was_set_down_is_known_by_its_reason_while_it_is_drained(reason: str | None, expected: list[str]) -> None:
    assert drained(NODES, [*NODES, "n9"], reason) == expected


def test_a_worker_that_is_not_there_is_named_with_its_state() -> None:
    assert unready(NODES, ["n1", "n4", "n5", "n9"]) == ["n4 (DOWN*+DRAIN)", "n5 (IDLE*)", "n9 (unknown to slurmctld)"]


def test_a_worker_is_waited_for_until_its_health_check_is_content_but_not_until_a_person_is() -> None:
    unfit = {"State": "IDLE+DRAIN", "Reason": "slurmstead: the clock is 12 s off"}

    assert unready({"n1": unfit, "n2": NODES["n2"]}, ["n1", "n2"]) == [f"n1 (IDLE+DRAIN, {unfit['Reason']})"]


def test_only_jobs_that_are_on_the_workers_count() -> None:
    here, there, waits = (
        Job("1", "RUNNING", "main", ("n1", "n2")),
        Job("2", "RUNNING", "main", ("n3",)),
        Job("3", "PENDING"),
    )

    assert on(State((here, there, waits)), ["n2", "n4"]) == (here,)
