"""Which upgrades leave daemons that understand each other, at each moment."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.packages import order as upgrade_order

NODES = {"n1": "22.05.8", "n2": "22.05.8"}
ALL = ("head", "n1", "n2")

ALLOWED = {
    "a fix of the same version": ("22.05.8", NODES, dict.fromkeys(ALL, "22.05.8-4+deb12u4")),
    "a fix on a worker only": ("22.05.8", NODES, {"n1": "22.05.8-4+deb12u4"}),
    "a newer version everywhere": ("22.05.8", NODES, dict.fromkeys(ALL, "23.11.4-1")),
    "a newer version on the controller": ("22.05.8", NODES, {"head": "23.11.4-1"}),
    "the workers after the controller": ("23.11.4", NODES, {"n1": "23.11.4-1", "n2": "23.11.4-1"}),
    "nothing of Slurm": ("22.05.8", NODES, {}),
    "a version that is not known here, unchanged": ("26.05.1", {"n1": "26.05.1"}, dict.fromkeys(ALL[:2], "26.05.2")),
}


@pytest.mark.parametrize(("controller", "nodes", "after"), ALLOWED.values(), ids=ALLOWED)
def test_an_order_in_which_all_understand_each_other_is_allowed(
    controller: str, nodes: dict[str, str], after: dict[str, str]
) -> None:
    assert upgrade_order.problems("head", controller, nodes, after) == []


def test_workers_that_would_be_newer_than_the_controller_are_refused() -> None:
    assert upgrade_order.problems("head", "22.05.8", NODES, {"n1": "23.02.0-1"}) == [
        "n1: would get Slurm 23.02, but head has 22.05, which understands nothing newer than itself; "
        "upgrade head first, or correct the package sources of n1"
    ]


def test_workers_that_would_be_newer_than_what_the_controller_gets_are_refused() -> None:
    (line,) = upgrade_order.problems("head", "22.05.8", NODES, {"head": "23.11.4-1", "n2": "24.11.5-1"})

    assert line.startswith("n2: would get Slurm 24.11, but head would have 23.11")


def test_a_worker_that_is_off_keeps_the_controller_from_what_would_not_understand_it() -> None:
    found = upgrade_order.problems("head", "23.11.4", {"n1": "23.11.4", "off": "22.05.8"}, {"head": "24.11.5-4"})

    assert found == [
        "off: has Slurm 22.05, which slurmctld 24.11 on head would not understand (it understands 23.02 to 24.11); "
        "jobs there would be lost. Upgrade in smaller steps, or reinstall both"
    ]


@pytest.mark.parametrize(
    ("now", "then", "why"),
    [
        (
            "22.05.8",
            "24.11.5-4",
            "head: would get slurmctld 24.11, which cannot read the state of 22.05 (it understands 23.02",
        ),
        ("24.11.5", "22.05.8-4", "head: would get slurmctld 22.05, which cannot read the state of 24.11; correct"),
        ("22.05.8", "26.05.1-1", "head: would get slurmctld 26.05, which cannot read the state of 22.05 as far as"),
    ],
)
def test_a_slurmctld_that_cannot_read_the_state_is_refused(now: str, then: str, why: str) -> None:
    assert upgrade_order.problems("head", now, {}, {"head": then})[0].startswith(why)
