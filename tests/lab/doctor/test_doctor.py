"""The doctor finds each of many real faults, names its cause, and is silent on a healthy cluster.

STEAD_LAB=NAME pytest tests/lab/doctor

Faults that do not hide each other are there at once, because each look costs seconds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import ROOT
from tests.lab.doctor.faults import CONSEQUENCES, QUIET, SILENCE, TRUST, Fault


@dataclasses.dataclass(frozen=True)
class Doctor:
    """What the doctor said; `seconds` is the time that it took."""

    code: int
    findings: list[dict[str, str]]
    seconds: float

    def has(self, host: str, about: str, seen: str) -> bool:
        """Say whether there is such a finding."""
        return any(
            (finding["host"], finding["about"]) == (host, about) and re.search(seen, finding["seen"])
            for finding in self.findings
        )


def doctor(lab: Any) -> Doctor:
    """Ask the doctor, as a person would."""
    started = time.monotonic()
    command = [str(ROOT / "scripts/stead"), "doctor", "-i", str(lab.inventory), "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout, done.stderr
    return Doctor(done.returncode, json.loads(done.stdout)["findings"], time.monotonic() - started)


def commands(faults: list[Fault], kind: str, join: str) -> dict[str, str]:
    """Return one command for each machine."""
    machines = dict.fromkeys(fault.machine for fault in faults)
    return {name: join.join(getattr(fault, kind) for fault in faults if fault.machine == name) for name in machines}


@contextlib.contextmanager
def broken(lab: Any, faults: list[Fault]) -> Iterator[None]:
    """Break many things for a while, on all machines at once."""
    inject, remove = commands(faults, "inject", "\n"), commands(faults, "remove", "\n")
    try:
        lab.everywhere(lambda name: lab.root(name, f"set -e\n{inject[name]}"), inject)
        yield
    finally:
        lab.everywhere(lambda name: lab.insist(name, f"{remove[name]}\ntrue"), remove)


@pytest.fixture(autouse=True)
def idle(lab: Any) -> Iterator[None]:
    """The cluster, idle before and after each test."""
    lab.wait_until_idle(60)
    yield
    # What the health check drained, it resumes; if slurmctld does not answer yet, when it runs again.
    check = "env -i SLURMD_NODENAME=$(hostname) /usr/local/lib/slurmstead/health-check || true"
    lab.everywhere(lambda name: lab.root(name, check), lab.workers)
    lab.wait_until_idle(180)


def test_nothing_is_said_of_a_healthy_cluster(lab: Any) -> None:
    found = doctor(lab)

    assert found.findings == []
    assert found.code == ExitCode.OK
    assert found.seconds < 120


@pytest.mark.parametrize("faults", [QUIET, TRUST, SILENCE], ids=["quiet", "trust", "silence"])
def test_every_fault_is_found_and_nothing_else(lab: Any, faults: list[Fault]) -> None:
    with broken(lab, faults):
        found = doctor(lab)
    where = {("node3", "node"): "node2"}
    expected = [(where.get((fault.machine, fault.about), fault.machine), fault.about, fault.seen) for fault in faults]

    assert [fault for fault in expected if not found.has(*fault)] == [], found.findings
    assert found.code == ExitCode.CHECK_FAILED
    known = {(host, about) for host, about, _ in expected}
    others = [finding for finding in found.findings if (finding["host"], finding["about"]) not in known]
    assert [
        finding for finding in others if not re.search(CONSEQUENCES.get(finding["about"], "^$"), finding["seen"])
    ] == []
