# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Settings of the kernel for a job that is alone, and how they are put back. A path is relative to a root directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

CPU = "sys/devices/system/cpu"
SMT = f"{CPU}/smt/control"
NO_TURBO = f"{CPU}/intel_pstate/no_turbo"
BOOST = f"{CPU}/cpufreq/boost"
PARANOID = "proc/sys/kernel/perf_event_paranoid"
NMI_WATCHDOG = "proc/sys/kernel/nmi_watchdog"

PERFORMANCE = "performance"
OWN_EVENTS = 1
"""The level of perf_event_paranoid at which users may count events of their own processes, also in the kernel."""


class Write(NamedTuple):
    """A file whose content differs from what a job needs."""

    path: str
    old: str
    new: str


class Wanted(NamedTuple):
    """What a quiet job needs; None leaves a setting as it is."""

    turbo: bool | None = False
    smt: bool | None = None
    perf: bool = False


Found = tuple[list[Write], list[str]]
"""What has to be written, and why something cannot be."""


def threads(root: Path, wanted: Wanted) -> Found:
    """Return what switches SMT. It decides which CPUs have further settings, so it is applied first."""
    now = _read(root, SMT)
    new = "on" if wanted.smt else "off"
    if wanted.smt is None or now is None or now == new:
        return [], []
    if now in ("on", "off"):
        return [Write(SMT, now, new)], []
    # Hardware without it has it off.
    return [], [f"SMT cannot be on: {now}"] if wanted.smt else []


def settings(root: Path, wanted: Wanted) -> Found:
    """Return what sets the governor, turbo and the rights to count events."""
    writes = list(_governors(root))
    missing = [] if writes else ["no governor"]
    if wanted.turbo is not None:
        turbo = list(_turbo(root, wanted.turbo))
        missing += [] if turbo else ["turbo cannot be set"]
        writes += turbo
    writes += _events(root) if wanted.perf else []
    return [write for write in writes if write.old != write.new], missing


def freezing(root: Path, group: str) -> list[Write]:
    """Return what freezes a control group, such as `/system.slice/apt-daily.service`; needs version 2."""
    path = f"sys/fs/cgroup{group}/cgroup.freeze"
    return [Write(path, "0", "1")] if _read(root, path) == "0" else []


def apply(root: Path, writes: Iterable[Write]) -> list[str]:
    """Write new values; returns what failed."""
    return [said for write in writes if (said := _put(root, write.path, write.new))]


def restore(root: Path, writes: Iterable[Write]) -> list[str]:
    """Put old values back, except where another process has changed a value meanwhile; returns what failed."""
    # The last one first: a preference can be set only after its governor.
    mine = (write for write in reversed(list(writes)) if _read(root, write.path) == write.new)
    return [said for write in mine if (said := _put(root, write.path, write.old))]


def _policies(root: Path) -> Iterator[str]:
    for path in sorted(root.glob(f"{CPU}/cpufreq/policy*")):
        yield str(path.relative_to(root))


def _governors(root: Path) -> Iterator[Write]:
    for policy in _policies(root):
        if PERFORMANCE in (_read(root, f"{policy}/scaling_available_governors") or "").split():
            # The governor changes the preference, and not every driver changes it back.
            for path in (f"{policy}/energy_performance_preference", f"{policy}/scaling_governor"):
                if (now := _read(root, path)) is not None:
                    yield Write(path, now, PERFORMANCE)


def _turbo(root: Path, on: bool) -> Iterator[Write]:
    each = [f"{policy}/boost" for policy in _policies(root)]
    for paths, values in (([NO_TURBO], ("1", "0")), ([BOOST], ("0", "1")), (each, ("0", "1"))):
        found = [(path, now) for path in paths if (now := _read(root, path)) is not None]
        yield from (Write(path, now, values[on]) for path, now in found)
        if found:
            return


def _events(root: Path) -> list[Write]:
    level, watchdog = _read(root, PARANOID), _read(root, NMI_WATCHDOG)
    strict = level is not None and level.lstrip("-").isdigit() and int(level) > OWN_EVENTS
    writes = [Write(PARANOID, level, str(OWN_EVENTS))] if level is not None and strict else []
    # It occupies a counter.
    return writes + ([Write(NMI_WATCHDOG, watchdog, "0")] if watchdog == "1" else [])


def _read(root: Path, path: str) -> str | None:
    try:
        return (root / path).read_text().strip()
    except OSError:
        return None


def _put(root: Path, path: str, value: str) -> str:
    try:
        # The file is not created: a CPU can be gone.
        with open(os.open(root / path, os.O_WRONLY | os.O_TRUNC), "w") as file:
            file.write(value)
    except OSError as error:
        return f"/{path}: {value}: {error.strerror}"
    return ""
