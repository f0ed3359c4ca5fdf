"""`stead reboot`: workers reboot one after the other, jobs end first, and an administrator's drain outlives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.errors import ExitCode


def test_a_job_that_outlives_the_deadline_keeps_its_node_from_the_reboot(
    lab: Any, stead: Callable[..., Any], submit: Callable[..., str], job_state: Any, boot_ids: Any
) -> None:
    busy = lab.workers[0]
    before = boot_ids()
    job = submit(busy, 600)

    done = stead("reboot", busy, "--deadline", "0")

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"{busy} was not rebooted and goes on as before: job {job} (running on {busy}) did not end" in done.stdout
    assert job_state(job) == "RUNNING"
    assert lab.root(lab.control, f"sinfo --noheader --nodes={busy} --format=%T") == "mixed"
    assert boot_ids() == before


@pytest.mark.kernel  # A container has the uptime of this computer, so slurmctld does not see its reboot.
def test_nodes_reboot_in_turn_when_their_jobs_have_ended_and_stay_as_drained_as_they_were(
    lab: Any, stead: Callable[..., Any], submit: Callable[..., str], drained: Any, ended_once: Any, boot_ids: Any
) -> None:
    busy, resting, other = lab.workers
    boots = boot_ids()
    drained(resting, "fan [loud]")
    job = submit(busy, 90)
    waiting = submit(busy, 1, "--exclusive", wait=False)

    done = stead("reboot", busy, resting)

    assert done.returncode == ExitCode.OK, done.stdout
    assert f"{busy} waits for job {job} (running on {busy})" in done.stdout
    assert f"{resting} is back after" in done.stdout
    assert ended_once(job)
    assert ended_once(waiting)
    after = boot_ids()
    assert {name for name in lab.names if boots[name] != after[name]} == {busy, resting}
    assert lab.root(lab.control, f"sinfo --noheader --nodes={resting} --format='%T %E'") == "drained fan [loud]"
    uptime = {name: float(lab.root(name, "cut -d' ' -f1 /proc/uptime")) for name in (busy, resting)}
    assert uptime[busy] > uptime[resting], "both rebooted at once"
    assert lab.root(lab.control, f"sinfo --noheader --nodes={other} --format=%T") == "idle"
