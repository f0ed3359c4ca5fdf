"""A worker calls itself by the name of another one, as a copy of its disk would.

STEAD_LAB=NAME pytest tests/lab/faults/test_duplicate_name.py
"""

from __future__ import annotations

from typing import Any

from tests.lab.faults.fault import Fault, survive

TOLD = "os : Write name, addresses, time source and access rules"


def test_each_machine_has_its_own_name_again(lab: Any) -> None:
    copy, original = lab.workers[:2]

    def names(_lab: Any) -> None:
        said = lab.everywhere(lambda name: lab.root(name, "uname -n && cat /etc/hostname").split())
        assert said == {name: [name, name] for name in lab.names}

    fault = Fault(
        "duplicate host name",
        copy,
        f"hostnamectl set-hostname {original}",
        told=f"{copy}: {TOLD}",
        after=names,
    )

    assert survive(lab, [fault]) == {}
