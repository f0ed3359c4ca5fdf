"""All machines lose power at once, come back in any order, and are a cluster again without a hand.

The disk of the share is late as well: nobody waits for it at boot.
"""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest

SEED = int(os.environ.get("STEAD_SEED") or time.time())
"""Decides in which order the machines come back; STEAD_SEED repeats a run."""

LATE = "/etc/systemd/system/dev-share-share.device.d/test.conf"
"""On the node with the share."""

IDLE_SECONDS = 180
"""After the last machine came back."""


@pytest.fixture(scope="module")
def outage(lab: Any) -> dict[str, Any]:
    """A power cut in the middle of work, and the return; what was there before, and how long the cluster took."""
    lab.wait_until_idle(60)
    lab.user("echo 'before the cut' > before && sync before")
    boots = lab.everywhere(lambda name: lab.root(name, "cat /proc/sys/kernel/random/boot_id"))
    # Slurm writes down within 5 s that a job has started; one that it forgets so is started once more.
    job = lab.user(f"sbatch --parsable --no-requeue --nodes={len(lab.workers)} --output=/dev/null --wrap='sleep 60'")
    lab.user(f"until squeue --noheader --job={job} --states=running | grep -q .; do sleep 1; done")
    lab.root(lab.server, f"printf '[Unit]\\nJobRunningTimeoutSec=1ms\\n' > {LATE} && sync")
    lab.cut_power()
    order = random.Random(SEED).sample(lab.names, len(lab.names))
    print(f"STEAD_SEED={SEED}: {', '.join(order)}")
    for name in order:
        lab.boot(name)
    seconds = lab.wait_until_idle(IDLE_SECONDS)
    lab.root(lab.server, f"rm {LATE} && systemctl daemon-reload")
    print(f"idle {seconds:.0f} s after the last machine came back")
    return {"boots": boots, "seconds": seconds}


def test_every_worker_is_idle_without_a_hand(lab: Any, outage: dict[str, Any]) -> None:
    boots = lab.everywhere(lambda name: lab.root(name, "cat /proc/sys/kernel/random/boot_id"))

    assert not set(boots.values()) & set(outage["boots"].values()), "a machine did not lose its power"
    assert outage["seconds"] <= IDLE_SECONDS


@pytest.mark.usefixtures("outage")
def test_nothing_has_failed_to_start(lab: Any, node: str) -> None:
    assert lab.root(node, "systemctl list-units --state=failed --plain --no-legend") == ""


@pytest.mark.usefixtures("outage")
def test_the_share_is_there_with_what_was_written_before(lab: Any, node: str) -> None:
    assert lab.root(node, "sudo -u alice cat ~alice/before") == "before the cut"


@pytest.mark.usefixtures("outage")
def test_jobs_run_as_before(lab: Any) -> None:
    names = lab.user(f"srun --nodes={len(lab.workers)} hostname").split()

    assert sorted(names) == lab.workers


@pytest.mark.usefixtures("outage")
def test_a_script_runs_as_before(lab: Any) -> None:
    lab.user("sbatch --wait --output=after --wrap='echo after the cut'")

    assert lab.user("cat after && rm before after") == "after the cut"


@pytest.mark.usefixtures("outage")
def test_scratch_is_empty_again(lab: Any, worker: str) -> None:
    # sbatch --wait returns before the Epilog has run.
    lab.wait_until_idle(60)

    assert lab.root(worker, "find /scratch -maxdepth 1 -name 'job-*'") == ""


@pytest.mark.usefixtures("outage")
def test_only_a_machine_that_boots_restarts_when_it_stalls(lab: Any, node: str) -> None:
    """A boot that hangs is restarted; later, a stall may only mean that this computer was suspended."""
    arguments = lab.root(node, "cat /proc/cmdline")

    assert "panic_on_rcu_stall=1" in arguments
    assert lab.root(node, "cat /proc/sys/kernel/panic_on_rcu_stall") == "0"
