"""A cluster that is whole: what the runs after a fault have to bring about."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from tests.lab.run import Run

USABLE = ("idle", "mixed", "allocated")


def states(lab: Any) -> dict[str, str]:
    """Return the state of each worker as sinfo shows it; with what went wrong for its name if nobody answers."""
    try:
        lines = lab.root(lab.control, "timeout 20 sinfo --noheader --Node --format='%N %T'", seconds=30).splitlines()
    except (AssertionError, RuntimeError) as error:
        return {str(error): "no answer"}
    return dict(line.split(" ", 1) for line in lines)


def wait_until_usable(lab: Any, seconds: float = 240, drained: Iterable[str] = ()) -> None:
    """Wait until all workers can be given jobs, except those that an administrator drained."""
    until = time.monotonic() + seconds
    out = set(drained)

    def good(name: str, state: str) -> bool:
        return state in (("drained", "draining") if name in out else USABLE)

    while True:
        seen = states(lab)
        if seen.keys() == set(lab.workers) and all(good(*pair) for pair in seen.items()):
            return
        assert time.monotonic() < until, f"the workers are not usable after {seconds:.0f} s: {seen}"
        time.sleep(2)


def reasons(lab: Any) -> str:
    """Return sinfo's reasons why nodes get no jobs: a line for each, with its name."""
    return str(lab.root(lab.control, "sinfo -R --noheader --format='%N %E'"))


def said(run: Run) -> str:
    """Return what a run printed, and a line `node1: role : Task` for each change."""
    changes = [f"{host}: {task}" for host, tasks in run.changed.items() for task in tasks]
    return "\n".join([run.output, *changes])


def converge(lab: Any) -> Run:
    """Run site.yml, which has to do all that is owed."""
    run: Run = lab.ansible()
    assert run.code == 0, f"site.yml ended with {run.code}: {failures(run)}"
    return run


def second_run(lab: Any) -> dict[str, list[str]]:
    """Return what another run of site.yml still changes, by machine."""
    return converge(lab).changed


def failures(run: Run) -> str:
    """Return the words of the tasks that failed."""
    lines = run.output.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("fatal: ")]
    return "\n".join("\n".join(lines[start : start + 6]) for start in starts) or run.output[-2000:]
