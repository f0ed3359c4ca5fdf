# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""apt-get on this machine. A systemd unit changes the packages, so that a lost connection does not end dpkg."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from ansible.module_utils.slurmstead.packages import plan as apt_plan
from ansible.module_utils.slurmstead.packages.plan import Package, Plan
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.reach.deadline import wait_while

UNIT = "slurmstead-upgrade.service"
LOG = Path("/run/slurmstead-upgrade.log")
LOCK = Path("/var/lib/dpkg/lock-frontend")
JOURNAL = Path("/var/lib/dpkg/updates")
"""dpkg's journal; empty if dpkg has finished."""

ENDED = ("inactive", "failed")

UPGRADE = ("apt-get", "-o", "APT::Get::Upgrade-Allow-New=true", "--no-install-recommends", "--no-remove")
QUIET = {
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    # needrestart must not restart services: package_upgrade restarts its own in order, and the others keep running.
    "NEEDRESTART_MODE": "l",
    "NEEDRESTART_SUSPEND": "1",
    "UCF_FORCE_CONFFOLD": "1",
    "LC_ALL": "C.UTF-8",
}
KEEP_CONFFILES = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")

FETCH = 1800.0
"""Timeout in seconds for fetching lists or packages."""

INSTALL = 7200.0
"""Timeout in seconds for installing packages: kernels take many minutes on a small board."""

PAUSE = 1.0


class AptError(Exception):
    """apt-get failed; the text contains its output."""


def wait_for_lock(seconds: float) -> None:
    """Wait until no other package manager runs, and no earlier upgrade that lost its connection.

    Raises AptError.
    """
    if wait_while(lambda: _state() not in ENDED or _locked(), seconds, PAUSE):
        raise AptError(f"another package manager was running for {seconds:.0f} s; see `ps -ef | grep -E 'apt|dpkg'`")


def _state() -> str:
    """Return the state of our unit; empty if systemd is too busy to answer."""
    _, out, _ = run("systemctl", "show", "--property=ActiveState", "--value", UNIT, seconds=60)
    return out.strip()


def _locked() -> bool:
    with LOCK.open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def update(seconds: float) -> None:
    """Fetch the package lists; waits while another process does. Raises AptError."""
    until = time.monotonic() + seconds
    while True:
        code, out, err = run("apt-get", "update", "-o", "APT::Update::Error-Mode=any", seconds=FETCH)
        if code == 0:
            return
        said = _complaints(out + err)
        if "Could not get lock" not in said or time.monotonic() > until:
            raise AptError(f"the package lists could not be fetched: {said}")
        time.sleep(PAUSE)


def is_interrupted() -> bool:
    """Say whether dpkg runs or was interrupted, as by a power cut. Then apt installs nothing."""
    return JOURNAL.is_dir() and any(JOURNAL.iterdir())


def packages() -> dict[str, Package]:
    """Return the packages that dpkg knows; a journal that it left counts as a package without a state."""
    _, out, _ = run("dpkg-query", "--show", f"--showformat={apt_plan.FORMAT}", seconds=60)
    found = apt_plan.read_packages(out)
    if is_interrupted():
        found["dpkg"] = Package("", "dpkg", "unfinished")
    return found


def plan(new: Collection[str] = ()) -> Plan:
    """Return the plan of an upgrade now, or of an installation of new packages. Raises AptError."""
    verb, what = (["install", *new], "installation") if new else (["upgrade"], "upgrade")
    code, out, err = run(*UPGRADE, "--simulate", *verb, seconds=300)
    if code:
        raise AptError(f"apt-get could not simulate the {what}: {_complaints(out + err)}")
    return apt_plan.read_plan(out)


def fetch() -> None:
    """Fetch the packages without installing them. Raises AptError."""
    code, out, err = run(*UPGRADE, "--yes", "--download-only", "upgrade", seconds=FETCH)
    if code:
        raise AptError(f"the packages could not be fetched: {_complaints(out + err)}")


def command(names: Collection[str], lock: int) -> list[str]:
    """Return the command that upgrades some packages, or all; it waits `lock` seconds for another package manager."""
    more = ["-o", f"DPkg::Lock::Timeout={lock}", "-o", "APT::Keep-Downloaded-Packages=false"]
    verb = ["install", "--only-upgrade", *names] if names else ["upgrade"]
    return [*UPGRADE, "--yes", *KEEP_CONFFILES, *more, *verb]


def as_unit(before: Iterable[str], after: Iterable[str], wanted: list[str]) -> list[str]:
    """Return the command that runs another one as a unit; systemctl runs `before` first and, in any case, `after`."""
    return [
        *("systemd-run", "--quiet", f"--unit={UNIT}", "--description=Upgrade of the packages by stead"),
        *(f"--property=StandardOutput=append:{LOG}", "--property=StandardError=inherit"),
        *(f"--property=ExecStartPre=/usr/bin/systemctl {words}" for words in before),
        *(f"--property=ExecStopPost=-/usr/bin/systemctl {words}" for words in after),
        *(f"--setenv={name}={value}" for name, value in QUIET.items()),
        *wanted,
    ]


def install(names: Collection[str], before: Iterable[str], after: Iterable[str], lock: int) -> str:
    """Upgrade some packages, or all; return dpkg's output. See as_unit for `before` and `after`.

    Raises AptError.
    """
    # A package named in `apt-get install` would no longer count as installed automatically.
    _, automatic, _ = run("apt-mark", "showauto", *names, seconds=60) if names else (0, "", "")
    try:
        return _run(as_unit(before, after, command(names, lock)), "apt-get")
    finally:
        if automatic.split():
            run("apt-mark", "auto", *automatic.split(), seconds=60)


def complete() -> None:
    """Configure the packages that an interrupted dpkg left. Raises AptError."""
    _run(as_unit([], [], ["dpkg", "--force-confdef", "--force-confold", "--configure", "--pending"]), "dpkg")


def _run(unit: list[str], name: str) -> str:
    """Start the unit and wait for its end; return its output. Raises AptError."""
    run("systemctl", "reset-failed", UNIT)
    LOG.unlink(missing_ok=True)
    code, _, err = run(*unit, seconds=300)
    if code:
        raise AptError(f"{name} could not start: {err.strip()}")
    until = time.monotonic() + INSTALL
    while (state := _state()) not in ENDED:
        if time.monotonic() > until:
            raise AptError(f"{name} is still running after {INSTALL / 60:.0f} min; see {LOG}")
        time.sleep(PAUSE)
    said = LOG.read_text(errors="replace")
    if state == "failed":
        raise AptError(f"{name} failed: {_complaints(said)}; its full output is in {LOG}")
    return said


def _complaints(text: str, most: int = 3) -> str:
    """Return the error lines of an output or, without any, its last lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join([*_errors(lines)][:most] or lines[-most:]) or "it printed nothing"


def _errors(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith(("E: ", "dpkg: error")):
            yield line.removeprefix("E: ")
