"""A fault of a machine, and what a cluster has to make of it."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.lab.faults.canaries import Canaries, canaries
from tests.lab.faults.cluster import converge, failures, reasons, said, second_run, wait_until_usable
from tests.lab.faults.trials import Trials, trials

NOTHING_FAILED = r"PLAY RECAP(?![\s\S]*(?:failed|unreachable)=[1-9])"
"""As `told`: the run that ended was a good one."""


def nothing(_lab: Any) -> None:
    """What there is to see besides."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """Shell commands of root, and what a run of site.yml says while the fault is there.

    Without `heal` that run itself has to put it right. `told` is a regular expression for its output, for lines such
    as `node1: os : Start chrony now and at boot`, one for each change, and for what sinfo gives as reasons then.
    `drained` is the worker that stays so.
    """

    name: str
    machine: str
    inject: str
    heal: str = ""
    told: str = ""
    drained: str = ""
    after: Callable[[Any], None] = nothing
    clean: str = ""
    """What is left to remove in the end."""


@contextlib.contextmanager
def broken(lab: Any, faults: Sequence[Fault]) -> Iterator[None]:
    """Break things on all machines at once, and heal what is to be healed in the end."""
    machines = list(dict.fromkeys(fault.machine for fault in faults))

    def commands(name: str, kind: str) -> str:
        return "\n".join(getattr(fault, kind) for fault in faults if fault.machine == name)

    try:
        lab.everywhere(lambda name: lab.root(name, f"set -e\n{commands(name, 'inject')}", seconds=240), machines)
        yield
    finally:
        lab.everywhere(lambda name: lab.insist(name, f"{commands(name, 'heal')}\ntrue"), machines)


def recover(lab: Any, noted: Trials, alive: Canaries, *lost_power: str) -> None:
    """See that one run makes the cluster whole, and the next changes nothing."""
    converge(lab)
    wait_until_usable(lab)
    noted.recovered()
    assert second_run(lab) == {}
    alive.check(lab, *lost_power)


def survive(lab: Any, faults: Sequence[Fault]) -> dict[str, str]:
    """Have a cluster suffer faults that do not interfere; returns why one of them was not survived, by its name.

    A run under the faults names them or puts them right; then all is whole, and another run changes nothing.
    """
    drained = [fault.drained for fault in faults if fault.drained]
    heals = any(fault.heal for fault in faults)
    with canaries(lab) as alive, trials(lab, *(fault.name for fault in faults)) as noted:
        try:
            with broken(lab, faults):
                if not heals:
                    noted.over()
                run = lab.ansible()
                text = f"{said(run)}\n{reasons(lab)}"
                for fault in faults:
                    if not re.search(fault.told, text):
                        noted.blame(fault.name, f"nobody said {fault.told!r}")
                if noted.lost:
                    print(failures(run))
                assert heals or run.code == 0, run.output
            if heals:
                noted.over()
                converge(lab)
            wait_until_usable(lab, drained=drained)
            noted.recovered()
            for fault in faults:
                fault.after(lab)
            assert second_run(lab) == {}
            alive.check(lab)
        finally:
            for fault in faults:
                if fault.clean:
                    lab.insist(fault.machine, fault.clean)
    return noted.lost
