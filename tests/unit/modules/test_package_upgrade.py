"""What is replaced by itself and without slurmctld, and what an upgrade says in the end."""

from __future__ import annotations

import pathlib
from collections.abc import Collection
from typing import Any

import pytest

from ansible.module_utils.slurmstead.packages import apt
from ansible.module_utils.slurmstead.packages import daemons as own_daemons
from ansible.module_utils.slurmstead.packages.plan import Package, Plan, Step

OLD = {
    "libssl3": Package("3.0.16", "openssl", "installed"),
    "munge": Package("0.5.15-2", "munge", "installed"),
    "slurmctld": Package("22.05.8-4", "slurm-wlm", "installed"),
}
STEPS = {name: Step(name, package.version, f"{package.version}+1") for name, package in OLD.items()}


class Machine:
    """A machine on which apt does as it is told; `calls` are the arguments of each transaction."""

    def __init__(self, *wanted: str) -> None:
        self.wanted, self.calls = list(wanted), []
        self.known = dict(OLD)

    def plan(self, new: Collection[str] = ()) -> Plan:
        self.new = list(new)
        return Plan(tuple(STEPS[name] for name in self.wanted))

    def install(self, names: Collection[str], before: list[str], after: list[str], lock: int) -> str:
        self.calls.append((names, before, after))
        for name in names or self.wanted:
            self.known[name] = Package(STEPS[name].after, OLD[name].source, "installed")
        return "Configuration file '/etc/default/munge'\n" if "munge" in names else ""


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch, run_module: Any) -> Any:
    """Upgrade a machine on which some daemons run."""

    def run(machine: Machine, *daemons: str, **options: Any) -> Any:
        for name in ("plan", "install"):
            monkeypatch.setattr(apt, name, getattr(machine, name))
        monkeypatch.setattr(apt, "packages", lambda: dict(machine.known))
        monkeypatch.setattr(own_daemons, "running", lambda: dict.fromkeys(daemons, 1))
        monkeypatch.setattr(own_daemons, "renew", lambda before: sorted(before))
        return run_module("package_upgrade", **{"node": "n1", "state": "installed", **options})

    return run


def test_slurm_and_munge_are_replaced_by_themselves_and_without_slurmctld(upgrade: Any) -> None:
    machine = Machine("libssl3", "munge", "slurmctld")

    done = upgrade(machine, "munge", "slurmctld")

    stop, start = ["stop slurmctld.service"], ["try-restart munge.service", "start slurmctld.service"]
    assert machine.calls == [(["munge", "slurmctld"], stop, start), ([], [], [])]
    assert done.changed
    assert done.result["packages"]["munge"] == ["0.5.15-2", "0.5.15-2+1"]
    assert "n1: 3 packages upgraded" in done.result["said"]
    assert "n1: /etc/default/munge was changed by hand and is kept" in done.result["said"]


def test_an_upgrade_that_fails_keeps_what_people_decided(
    upgrade: Any, load_module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Decisions:
        kept = False

        def __init__(self, *_: object) -> None:
            pass

        def keep(self, *_: object, minutes: int) -> list[str]:
            del minutes
            return []

        def finish(self) -> list[str]:
            return ["the partition x is DOWN, as it was"]

    def failing(*_: object) -> str:
        raise apt.AptError("no space left on device")

    machine = Machine("slurmctld")
    monkeypatch.setattr(load_module("package_upgrade"), "Decisions", Decisions)
    monkeypatch.setattr(machine, "install", failing)
    done = upgrade(machine, "slurmctld")

    assert done.failed
    assert "no space left on device\nthe partition x is DOWN, as it was" in done.result["msg"]


@pytest.mark.parametrize(
    ("wanted", "daemons", "calls"),
    [
        (["libssl3"], ["slurmctld"], [([], [], [])]),
        (["munge"], ["munge", "slurmd"], [(["munge"], [], ["try-restart munge.service"])]),
        ([], ["slurmd"], []),
    ],
)
def test_slurmctld_is_stopped_for_nothing_else(
    upgrade: Any, wanted: list[str], daemons: list[str], calls: list[Any]
) -> None:
    machine = Machine(*wanted)

    upgrade(machine, *daemons)

    assert machine.calls == calls


def test_a_dry_run_shows_the_versions_and_installs_nothing(upgrade: Any) -> None:
    machine = Machine("munge")

    done = upgrade(machine, "munge", check=True)

    assert machine.calls == []
    assert done.changed
    assert done.result["diff"] == {"before": "munge 0.5.15-2\n", "after": "munge 0.5.15-2+1\n"}


def test_a_failure_says_what_apt_said(upgrade: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> str:
        raise apt.AptError("apt-get failed: no space left on device")

    machine = Machine("munge")
    machine.install = fail  # type: ignore[method-assign]

    done = upgrade(machine, "munge")

    assert done.failed
    assert done.message == "n1: apt-get failed: no space left on device"


def test_new_packages_are_not_installed_if_they_would_upgrade_slurm(
    upgrade: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("wait_for_lock", "update"):
        monkeypatch.setattr(apt, name, lambda seconds: None)
    machine = Machine("libssl3", "slurmctld")
    wanted = {"state": "spared", "packages": ["slurmdbd"]}

    refused = upgrade(machine, **wanted)

    assert machine.new == ["slurmdbd"]
    assert "to install slurmdbd, apt would also upgrade slurmctld" in refused.message
    assert not upgrade(Machine("libssl3"), **wanted).failed


def test_what_a_power_cut_interrupted_is_completed_once(
    run_module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "0000").write_text("Package: munge\n")
    ran: list[list[str]] = []

    def unit(command: list[str], name: str) -> str:
        ran.append(command[command.index(name) :])
        (tmp_path / "0000").unlink()
        return ""

    monkeypatch.setattr(apt, "JOURNAL", tmp_path)
    monkeypatch.setattr(apt, "_run", unit)
    monkeypatch.setattr(apt, "wait_for_lock", lambda seconds: None)
    wanted = {"node": "n1", "state": "completed"}

    assert run_module("package_upgrade", check=True, **wanted).changed
    assert ran == []
    assert run_module("package_upgrade", **wanted).changed
    assert not run_module("package_upgrade", **wanted).changed
    assert ran == [["dpkg", "--force-confdef", "--force-confold", "--configure", "--pending"]]
