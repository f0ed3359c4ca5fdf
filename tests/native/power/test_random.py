"""Random histories of a rack, with a real Slurm: each ends with no job lost, and Slurm, devices and machines agreeing.

STEAD_POWER_SEQUENCES is the number of histories, STEAD_POWER_SEED the first seed; a seed always gives the same actions,
but not the same moments.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from ansible.module_utils.slurmstead.workers.reasons import DOES_NOT_WAKE
from tests.native.power.conftest import PLACE, Rack

FIRST = int(os.environ.get("STEAD_POWER_SEED", "0"))
SEQUENCES = range(FIRST, FIRST + int(os.environ.get("STEAD_POWER_SEQUENCES", "2")))
STEPS = 12
SAVED = 12.0
"""Seconds after which slurmctld has saved a new job or a job's end; one that is killed before forgets it.

A job that has ended then stays on its node until slurmctld asks that for its jobs, or until the node boots.
"""

FAULTY = f"""
cd {PLACE}
case $(cat $POWER_NODE.fault 2>/dev/null) in
refuses) [ $1 = status ] || exit 2 ;;
locked) exit 2 ;;
lies) [ $1 = status ] || exit 0 ;;
slow) sleep 1.5 ;;
esac
"""
FAULTS = ("refuses", "locked", "lies", "slow")


class History:
    """One history: what happens is drawn by `chance`."""

    def __init__(self, rack: Rack, seed: int) -> None:
        self.rack, self.chance = rack, random.Random(seed)
        self.jobs: list[str] = []
        self.submitted = time.time()
        self.told: list[str] = []
        device = rack.cluster.run("cat", f"{PLACE}/device")
        rack.cluster.run("tee", f"{PLACE}/device", text=FAULTY + device)

    def step(self) -> None:
        """Let something happen, and let the program look a few times."""
        name = self.chance.choice(sorted(self.rack.cluster.nodes))
        what = self.chance.choice(("job", "job", "button", "plug", "fault", "works", "kill", "drain", "resume", "run"))
        self.told.append(f"{what} {name}")
        getattr(self, what)(name)
        for _ in range(self.chance.randint(1, 6)):
            self.rack.look()
            time.sleep(0.3)

    def job(self, name: str) -> None:
        where = [f"--nodelist={name}"] if self.chance.random() < 0.5 else []
        self.jobs.append(self.rack.submit(*where, f"--wrap=sleep {self.chance.choice((0, 1, 4))}"))
        self.submitted = time.time()

    def button(self, name: str) -> None:
        if name not in self.rack.on:
            self.rack.press(name)

    def plug(self, name: str) -> None:
        if name in self.rack.on:
            self.rack.pull(name)

    def fault(self, name: str) -> None:
        self.rack.cluster.run("tee", f"{PLACE}/{name}.fault", text=self.chance.choice(FAULTS))

    def works(self, name: str) -> None:
        self.rack.cluster.run("rm", "-f", f"{PLACE}/{name}.fault")

    def kill(self, name: str) -> None:
        del name
        self.rack.until(self._is_saved, 100, "slurmctld has saved its jobs")
        self.rack.cluster.stop("control", "KILL")
        self.rack.look()
        self.rack.cluster.start("control")

    def drain(self, name: str) -> None:
        self.rack.cluster.tried("scontrol", "update", f"nodename={name}", "state=drain", "reason=fan")

    def resume(self, name: str) -> None:
        """What a person does with a node that Slurm, or the program, has given up, or another person has drained."""
        if {"DRAIN", "DOWN"} & {word.rstrip("*") for word in self.rack.state(name).split("+")}:
            self.rack.cluster.tried("scontrol", "update", f"nodename={name}", "state=resume")

    def run(self, name: str) -> None:
        """A command, for which not all machines are awake; what they miss is done by a later one."""
        del name
        self.rack.miss("begin", "up")
        self.rack.miss("done", "up", sorted(self.rack.on))

    def _is_saved(self) -> bool:
        ask = ("env", "SLURM_TIME_FORMAT=%s", "squeue", "--noheader", "--states=completed", "--format=%e")
        ends = map(float, self.rack.cluster.run(*ask).split())
        return max([self.submitted, *ends]) + SAVED < time.time()

    def settled(self) -> bool:
        """Whether every job has ended and every machine sleeps; a person helps where a person has to."""
        shown = self.rack.shown()
        for name, node in shown.items():
            if "DRAIN" in node["State"] or DOES_NOT_WAKE in node["Reason"]:
                self.resume(name)
        # slurmctld that was killed when a job had just begun may begin it again, which the node refuses.
        for line in self.rack.cluster.run("squeue", "--noheader", "--states=pending", "--format=%i %r").splitlines():
            job, reason = line.split(maxsplit=1)
            if "held" in reason:
                self.rack.cluster.tried("scontrol", "release", job)
        # One that is down as well would get no jobs.
        asleep = ["POWERED_DOWN" in one["State"] and not one["State"].startswith("DOWN") for one in shown.values()]
        return all(asleep) and not self.rack.on and all(self.rack.has_ended(job) for job in self.jobs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEQUENCES)
def test_a_random_history_ends_with_all_jobs_done_and_all_machines_asleep(rack: Rack, seed: int) -> None:
    history = History(rack, seed)
    for _ in range(STEPS):
        history.step()
    for name in rack.cluster.nodes:
        history.works(name)
    rack.until(history.settled, 400, f"seed {seed} settles after {', '.join(history.told)}; jobs {history.jobs}")

    assert history.settled()
