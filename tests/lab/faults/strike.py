"""A fault that strikes when a task of site.yml begins, chosen by a seed, while the run has something to do."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable, Iterable
from typing import Any

from tests.lab.faults.canaries import Canaries
from tests.lab.faults.cluster import converge, failures, second_run, wait_until_usable
from tests.lab.faults.trials import Trials
from tests.lab.run import Run

SCAR = "# changed by hand"
EVERYWHERE = ("/etc/hosts", "/etc/logrotate.d/slurmstead")
ON_WORKERS = ("/etc/default/slurmstead-scratch",)

PASSING, LASTING = 24000, 25000
"""MaxJobCount of the run that is struck, which restarts slurmctld, and of all others."""

SECONDS = 1500.0
"""Of a run under a fault: each of its tasks may wait a minute for a machine that is silent."""

GONE = re.compile("UNREACHABLE!|EOF on stream|Connection timed out|does not answer")
"""How the accelerator, Ansible and Slurmstead say that a machine is not there."""

PART = re.compile(r"^(?=fatal|ok|changed|skipping|TASK|PLAY|RUNNING|\[WARNING\]|\[ERROR\])", re.MULTILINE)
"""Where something else begins in Ansible's output."""


@dataclasses.dataclass
class Strike:
    """Is called when a task begins, with the process id of ansible-playbook; acts once, when its turn has come."""

    turn: int
    act: Callable[[int], None]
    begun: int = 0
    task: str = ""

    def __call__(self, task: str, pid: int) -> None:
        """Take note of a task."""
        if self.begun == self.turn:
            self.task = task
            print(f"struck at task {self.turn}, {task}")
            self.act(pid)
        self.begun += 1


def choose(fault: str, seed: int, tasks: list[str], machines: Iterable[str]) -> tuple[int, str]:
    """Return the turn of the task and the machine that a seed stands for; another fault strikes elsewhere."""
    chance = random.Random(f"{fault} {seed}")
    return chance.randrange(len(tasks)), chance.choice(list(machines))


def _scarred(lab: Any, name: str) -> str:
    return " ".join((*EVERYWHERE, *(ON_WORKERS if name in lab.workers else ())))


def struck(lab: Any, strike: Strike) -> Run:
    """Run site.yml with work on every machine and a change of slurm.conf, until the strike and beyond."""
    put = "for file in {0}; do echo '{1}' >> $file; done; sync {0}"
    lab.everywhere(lambda name: lab.root(name, put.format(_scarred(lab, name), SCAR)))
    change = json.dumps({"slurm_config": lab.slurm_config(MaxJobCount=PASSING)})
    run: Run = lab.ansible("--extra-vars", change, began=strike, seconds=SECONDS)
    assert strike.task, f"the run ended before task {strike.turn}: {failures(run)}"
    return run


def is_named(run: Run, name: str) -> bool:
    """Say whether a run tells of a machine that it was not there."""
    parts = (" ".join(part.split()) for part in PART.split(run.output))
    told = [part for part in parts if part.startswith(("fatal: ", "[WARNING]", "[ERROR]"))]
    return any(re.search(rf"\b{re.escape(name)}\b", part) and GONE.search(part) for part in told)


def is_good_or_names(run: Run, name: str) -> bool:
    """Say whether a run needed a machine no more when it went, or tells of it."""
    return run.code == 0 or is_named(run, name)


def recover(lab: Any, noted: Trials, alive: Canaries, *lost_power: str) -> None:
    """See that one run makes the cluster whole, and leaves nothing of the struck run; the next changes nothing."""
    converge(lab)
    wait_until_usable(lab)
    noted.recovered()
    shown = lab.root(lab.control, "scontrol show config | sed -n 's/^MaxJobCount *= //p'")
    assert shown == str(LASTING), f"slurmctld has MaxJobCount {shown}"
    look = "grep -l '{1}' {0} || test $? = 1"
    left = lab.everywhere(lambda name: lab.root(name, look.format(_scarred(lab, name), SCAR)))
    assert not any(left.values()), f"not put right: {left}"
    assert second_run(lab) == {}
    alive.check(lab, *lost_power)
