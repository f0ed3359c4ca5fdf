"""A job that asks for fast cores or for slow ones runs on these and on no others."""

from __future__ import annotations

from typing import Any

import pytest

SLOW = frozenset(range(4))
FAST = frozenset(range(4, 8))

pytestmark = [
    pytest.mark.parametrize("core_gres", [True], ids=["fast and slow"], indirect=True),
    pytest.mark.usefixtures("core_gres"),
]


@pytest.fixture(scope="session")
def gres(lab: Any, core_gres: bool) -> Any:
    """Options that ask for CPUs of a kind; before Slurm 23.11 a user has to say that they are meant."""
    version = lab.user("sinfo --version").split()[1]
    enforce = " --gres-flags=enforce-binding" if version < "23.11" else ""
    return lambda kind, count: f"--gres=core:{kind}:{count}{enforce}"


def test_fast_and_slow_cores_side_by_side(run: Any, hold: Any, gres: Any) -> None:
    assert hold(f"--ntasks=1 --cpus-per-task=4 {gres('fast', 4)}") == FAST

    assert run(f"--ntasks=1 --cpus-per-task=4 {gres('slow', 4)}") == [SLOW]


@pytest.mark.parametrize(("kind", "cores"), [("fast", FAST), ("slow", SLOW)])
def test_tasks_have_a_core_each_of_the_kind_that_was_asked_for(
    run: Any, gres: Any, kind: str, cores: frozenset[int]
) -> None:
    seen = run(f"--ntasks=2 --cpus-per-task=1 {gres(kind, 2)}")

    assert [len(task) for task in seen] == [1, 1]
    assert len(frozenset.union(*seen)) == 2
    assert frozenset.union(*seen) <= cores


def test_two_jobs_share_the_fast_cores(run: Any, hold: Any, gres: Any) -> None:
    held = hold(f"--ntasks=1 --cpus-per-task=2 {gres('fast', 2)}")

    assert held < FAST
    assert run(f"--ntasks=1 --cpus-per-task=2 {gres('fast', 2)}") == [FAST - held]


@pytest.mark.parametrize(("held", "kind"), [("fast", "fast"), ("", "slow")], ids=["same kind", "any kind"])
def test_a_job_waits_rather_than_run_on_the_other_kind(
    lab: Any, board: str, hold: Any, gres: Any, held: str, kind: str
) -> None:
    """A job that asks for no kind gets slow cores first."""
    hold(f"--ntasks=1 --cpus-per-task=4 {gres(held, 4) if held else ''}")

    done = lab.host(lab.control, "alice").run(
        f"timeout 60 srun --immediate=5 --nodelist={board} --ntasks=1 --cpus-per-task=1 {gres(kind, 1)} true"
    )

    assert done.rc != 0
    assert "Unable to allocate resources" in done.stderr


def test_more_than_there_are_is_refused(lab: Any, gres: Any) -> None:
    done = lab.host(lab.control, "alice").run(f"timeout 60 srun --ntasks=1 --cpus-per-task=5 {gres('fast', 5)} true")

    assert done.rc != 0
    assert "Requested node configuration is not available" in done.stderr
