"""site.yml --limit works on one machine alone: it is completed, and no other is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

FILE = "/etc/default/slurmd"
SCAR = "# changed by hand"


@pytest.fixture
def scarred(lab: Any) -> Iterator[tuple[str, str]]:
    """The machine that is worked on and another one, both with a change that site.yml would undo."""
    chosen, other = lab.workers[0], lab.workers[1]
    for name in (chosen, other):
        lab.root(name, f"echo '{SCAR}' >> {FILE}")
    yield chosen, other
    lab.root(other, f"sed -i '/^{SCAR}$/d' {FILE}")


def test_one_machine_is_completed_and_no_other_is_touched(lab: Any, scarred: tuple[str, str]) -> None:
    chosen, _ = scarred
    others = [name for name in lab.names if name != chosen]
    files = lab.everywhere(lab.tree, others)
    pids = lab.pids()

    run = lab.ansible("--limit", chosen)

    assert run.code == 0, run.output
    assert list(run.recap) == [chosen]
    assert run.changed == {chosen: ["slurmd : Configure slurmd and its health check"]}
    assert SCAR not in lab.root(chosen, f"cat {FILE}")
    assert lab.everywhere(lab.tree, others) == files
    assert {name: lab.pids()[name] for name in others} == {name: pids[name] for name in others}
    lab.wait_until_idle(60)


def test_a_machine_that_left_the_cluster_comes_back_alone(lab: Any) -> None:
    """As one whose disk was replaced would, but for the packages."""
    chosen = lab.workers[0]
    lab.root(
        chosen, "systemctl disable --now slurmd munge share.automount && rm /etc/munge/munge.key /etc/default/slurmd"
    )

    run = lab.ansible("--limit", chosen)

    assert run.code == 0, run.output
    lab.wait_until_idle(120)
    assert lab.user(f"srun --nodelist={chosen} hostname") == chosen
