"""A machine more costs a fraction of a cluster. It destroys the lab and makes it again,
which takes longer on a slow computer than other tests may.

STEAD_LAB=NAME pytest -s -o faulthandler_timeout=5400 tests/lab/first_run
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.lab import machines as stead_lab
from slurmstead.paths import PLAYBOOKS
from tests.lab.operations.nodes import KnownHosts, Others, fingerprint

SHARE, SHARE_OF_CONTAINERS = 0.4, 0.75
"""How much of the time of the first run a machine more may take.

Containers install packages in seconds, so what a run does once weighs more.
"""


def make_anew(lab: Any, name: str = "all") -> None:
    """Destroy machines with all their disks, and boot them from the image that has no package of the cluster."""
    kind = "container" if stead_lab.is_native(lab.directory) else "machine"
    image = ("--extra-vars", json.dumps({"lab_image": "clean", "lab_kind": kind}))
    for playbook in ("destroy-lab.yml", "create-lab.yml"):
        run = lab.ansible("--limit", name, *image, str(PLAYBOOKS / playbook), plain=True, seconds=1800)
        assert run.code == 0, run.output[-5000:]


@pytest.fixture
def timed(stead: Callable[..., Any]) -> Callable[..., tuple[float, str]]:
    """Run a verb, which has to end well, and return its seconds and what it said."""

    def run(*arguments: str) -> tuple[float, str]:
        started = time.monotonic()
        done = stead(*arguments, seconds=2400)
        assert done.returncode == ExitCode.OK, done.stdout
        return time.monotonic() - started, done.stdout

    return run


def test_a_machine_more_takes_a_fraction_of_the_first_run_and_touches_no_other_worker(
    lab: Any, timed: Callable[..., tuple[float, str]]
) -> None:
    chosen = lab.workers[-1]
    make_anew(lab)
    first, _ = timed("up")
    lab.wait_until_idle(180)
    timed("remove-node", chosen)
    make_anew(lab, chosen)
    KnownHosts(lab, chosen).forget()
    others = Others(lab, chosen)

    added, said = timed("add-node", chosen, "--host-key", fingerprint(lab, chosen))

    assert lab.user(f"srun --nodelist={chosen} --mem=50 hostname") == chosen
    others.assert_untouched()
    (summary,) = (line for line in said.splitlines() if line.startswith("add-node.yml: done in "))
    assert chosen in summary
    assert not [name for name in others.names if name in summary]
    print(f"first run {first:.0f} s, a machine more {added:.0f} s: {added / first:.0%}")
    share = SHARE_OF_CONTAINERS if stead_lab.is_native(lab.directory) else SHARE
    assert added < share * first
