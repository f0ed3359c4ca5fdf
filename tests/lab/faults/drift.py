"""Changes that site.yml fixes, or respects because an administrator made them; for inventory/lab."""

from __future__ import annotations

import re
from typing import Any

from tests.lab.doctor.faults import OTHER
from tests.lab.faults.fault import Fault


def _still_drained(lab: Any) -> None:
    said = lab.root(lab.control, "sinfo --noheader --nodes=node2 --format='%T %E'").strip()
    assert re.fullmatch("drain(ed|ing) fan", said), said


def _right_time(lab: Any) -> None:
    # Seconds, as ssh to an emulated machine takes some.
    apart = lab.everywhere(lambda name: int(lab.root(name, "date +%s")), ["node3", "node4"])
    assert abs(apart["node3"] - apart["node4"]) < 10, apart


def _settings(lab: Any) -> None:
    assert "MaxJobCount             = 1000000" in lab.root(lab.control, "scontrol show config")


DRIFT = [
    Fault(
        "slurm.conf edited by hand",
        "node3",
        "echo MaxJobCount=7 >> /etc/slurm/slurm.conf",
        told="the files found are in /etc/slurm/slurmstead/",
        after=_settings,
    ),
    Fault(
        "wrong MUNGE key on a worker",
        "node1",
        f"{OTHER} && systemctl restart munge",
        told="node1: munge : Install the key",
    ),
    Fault(
        "munged without its socket",
        "node4",
        "rm -r /run/munge",
        told="node4: munge : Install the key",
    ),
    Fault(
        "package removed",
        "node2",
        "DEBIAN_FRONTEND=noninteractive apt-get -y -q remove slurmd",
        told="node2: packages : Install missing packages",
    ),
    Fault(
        "worker drained by an administrator",
        "node3",
        "scontrol update nodename=node2 state=drain reason=fan",
        told="node2 fan",
        drained="node2",
        after=_still_drained,
        clean="scontrol update nodename=node2 state=resume",
    ),
    Fault(
        "clock of a worker off by 10 minutes",
        "node4",
        "systemctl stop chrony && date -s '+10 minutes'",
        told="node4: os : Start chrony now and at boot",
        after=_right_time,
    ),
]
"""One of each kind on a machine of its own; but what a person drained, a person may have taken apart."""
