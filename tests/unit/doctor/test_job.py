"""What is said about a job that waits, from what slurmctld shows of jobs and nodes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.doctor import job as doctor_job
from ansible.module_utils.slurmstead.slurm.requests import Request

NODE = {"NodeName": "n1", "CPUTot": "4", "CPUAlloc": "0", "RealMemory": "1000", "AllocMem": "0", "State": "IDLE"}
NODE |= {"Partitions": "main,long", "ActiveFeatures": "arm64", "Gres": "core:fast:4(S:0)", "Reason": ""}


def asks(**more: Any) -> Request:
    """A job that any node could run."""
    given = {"number": "7", "task": "7", "state": "PENDING", "user": "ann", "partitions": ("main",)}
    return Request(**{**given, "memory_per_node": 100, **more})


@pytest.mark.parametrize(
    ("wants", "has", "expected"),
    [
        ({}, {}, ("free", "has room")),
        ({"partitions": ("gpu",)}, {}, ("never", "not in the partition gpu")),
        ({"cpus": 8, "most_nodes": 1}, {}, ("never", "only 4 CPUs")),
        ({"cpus": 8}, {}, ("free", "has room")),
        ({"cpus_per_node": 8}, {}, ("never", "only 4 CPUs")),
        ({"memory_per_node": 2000}, {}, ("never", "only 1000 MiB of memory")),
        (
            {"memory_per_node": 0, "memory_per_cpu": 300, "cpus_per_node": 4},
            {},
            ("never", "only 1000 MiB of memory"),
        ),
        ({"features": "big&arm64"}, {}, ("never", "without the feature big")),
        ({"gres": {"core:fast": 4}}, {}, ("free", "has room")),
        ({"gres": {"core": 4}}, {}, ("free", "has room")),
        ({"gres": {"gpu": 1}}, {"Gres": "(null)"}, ("never", "without 1 gpu")),
        ({"excluded": ("n1",)}, {}, ("never", "not among the nodes that it asks for")),
        ({"required": ("n2",), "most_nodes": 1}, {}, ("never", "not among the nodes that it asks for")),
        ({}, {"State": "IDLE+DRAIN", "Reason": "fan"}, ("out", "idle+drain: fan")),
        ({}, {"State": "DOWN*"}, ("out", "down*")),
        ({"cpus": 2, "most_nodes": 1}, {"CPUAlloc": "3"}, ("busy", "1 of 4 CPUs and 1000 of 1000 MiB are free")),
        ({}, {"AllocMem": "950"}, ("busy", "4 of 4 CPUs and 50 of 1000 MiB are free")),
        (
            {"memory_per_node": 0},
            {"AllocMem": "950"},
            ("busy", "it asks for all memory, 50 of 1000 MiB are free"),
        ),
    ],
)
def test_a_node_suits_a_job_or_lacks_something(
    wants: dict[str, Any], has: dict[str, str], expected: tuple[str, str]
) -> None:
    assert doctor_job.suits(asks(**wants), {**NODE, **has}) == expected


def test_nodes_that_are_the_same_for_a_job_are_one_line() -> None:
    nodes = {f"n{number}": {**NODE, "NodeName": f"n{number}"} for number in range(1, 4)}
    nodes["n3"]["CPUTot"] = "1"

    told = doctor_job.explain(asks(cpus=2, most_nodes=1), nodes, [])

    assert "Could run it now: n[1-2] (has room)" in told.lines
    assert "Cannot run it: n3 (only 1 CPU)" in told.lines
    assert not told.hopeless


@pytest.mark.parametrize(
    ("wants", "why"),
    [
        ({"memory_per_node": 2000}, "no node has what it asks for"),
        ({"nodes": 2, "most_nodes": 2}, "it asks for 2 nodes, and only 1 have what it asks for"),
        ({"cpus": 8}, "it asks for 8 CPUs, and these nodes have 4"),
    ],
)
def test_a_job_that_no_set_of_nodes_can_run_is_hopeless(wants: dict[str, Any], why: str) -> None:
    told = doctor_job.explain(asks(**wants), {"n1": NODE}, [])

    assert told.lines[-1] == f"It can never run: {why}. Change its request, or cancel it."
    assert told.hopeless


def test_jobs_ahead_are_ordered_and_their_number_is_bounded() -> None:
    rows = [f"{number}|PENDING|main|9|N/A|bob|" for number in (6, 5, 4, 3, 2)]
    queue = doctor_job.read_others("\n".join([*rows, "8|PENDING|main|9|N/A|bob|", "9|PENDING|gpu|99|N/A|bob|"]))

    told = doctor_job.explain(asks(priority=9, reason="Priority"), {"n1": NODE}, queue)

    assert "Ahead of it: job 2 of bob, job 3 of bob, job 4 of bob and 2 more." in told.lines


def test_a_slurmctld_that_does_not_answer_is_not_an_unknown_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_job, "run", lambda *_: (1, "", "Unable to contact slurm controller"))

    told = doctor_job.look("7")

    assert told["lines"] == ("slurmctld does not answer: Unable to contact slurm controller",)
