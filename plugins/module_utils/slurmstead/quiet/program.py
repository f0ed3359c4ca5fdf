# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The program of a quiet node: `begin JOB` in Prolog, `end JOB` in Epilog, and `end` when the machine shuts down.

What it changes is in a file before it is changed, so another call can put it back. A boot does the same as `end`: no
setting survives it, nor does the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import syslog
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ansible.module_utils.slurmstead.quiet import kernel, units
from ansible.module_utils.slurmstead.quiet.kernel import Wanted, Write
from ansible.module_utils.slurmstead.quiet.units import Timer

ROOT = Path("/")
SETTINGS = ROOT / "etc/slurmstead/quiet.json"
STATE = ROOT / "run/slurmstead-quiet.json"
"""The health check reads the job in it, too."""
LOCK = ROOT / "run/slurmstead-quiet.lock"
SYSTEMCTL_SECONDS = 20
NO_JOB = "0"
"""The number with which the health check tries Prolog and Epilog."""


class Settings(NamedTuple):
    """What the role wrote."""

    kernel: Wanted
    services: tuple[str, ...] = ()
    """Services that are frozen during a job."""
    keep: tuple[str, ...] = ()
    """Units that are left alone."""


class State(NamedTuple):
    """What was changed, and for which job."""

    job: str
    files: tuple[Write, ...] = ()
    timers: tuple[Timer, ...] = ()
    frozen: tuple[str, ...] = ()

    def adding(self, files: Iterable[Write] = (), timers: Iterable[Timer] = (), frozen: Iterable[str] = ()) -> State:
        """Return the state with further changes; what an earlier job found stays."""
        paths = {write.path: write for write in self.files}
        for write in files:
            old = paths[write.path].old if write.path in paths else write.old
            paths[write.path] = write._replace(old=old)
        names = {timer.name: timer for timer in (*timers, *self.timers)}
        return State(self.job, (*paths.values(),), (*names.values(),), (*dict.fromkeys((*self.frozen, *frozen)),))


def begin(job: str) -> None:
    """Make the node quiet for a job."""
    wanted = settings()
    state = (recall() or State(job))._replace(job=job)
    problems: list[str] = []
    for find in (kernel.threads, kernel.settings):
        writes, missing = find(ROOT, wanted.kernel)
        state = state.adding(files=writes)
        remember(state)
        problems += missing + kernel.apply(ROOT, writes)
    timers = units.timers(systemctl("show", *_fields(units.TIMER_FIELDS), "*.timer") or "", wanted.keep)
    state = state.adding(timers=timers)
    remember(state)
    systemctl("stop", *(timer.name for timer in timers))
    names = {*wanted.services, *(timer.service for timer in state.timers)} - {"", *wanted.keep}
    running = units.running(systemctl("show", *_fields(units.SERVICE_FIELDS), *sorted(names)) or "")
    frozen = [service.name for service in running if service.started]
    freezing = {one.name: kernel.freezing(ROOT, one.group) for one in running}
    # Of all, because systemd does not thaw a service that is still freezing.
    state = state.adding(files=[write for writes in freezing.values() for write in writes], frozen=frozen)
    remember(state)
    for name in freezing.keys() - {*frozen}:
        problems += kernel.apply(ROOT, freezing[name])
    for name in frozen:
        systemctl("freeze", name)
    log(f"job {job} is alone: {summary(state)}{'; '.join(['', *problems])}")


def end(job: str = "") -> None:
    """Put everything back, if it was changed for this job; without a job, in any case.

    The file stays if systemd did not answer in time; then the health check calls again.
    """
    state = recall()
    if state is None or job not in ("", state.job):
        return
    answers = [systemctl("thaw", name) for name in state.frozen]
    problems = kernel.restore(ROOT, state.files)
    before = {timer.name: timer.enabled for timer in state.timers}
    shown = systemctl("show", *_fields(units.TIMER_FIELDS), *before)
    if shown is not None:
        # --no-block: when the machine shuts down, systemd refuses the start, and must not wait for it.
        shown = systemctl("start", "--no-block", *units.unchanged(before, shown))
    if None in (*answers, shown):
        return
    STATE.unlink(missing_ok=True)
    log(f"job {state.job} has ended, put back: {summary(state)}{'; '.join(['', *problems])}")


def summary(state: State) -> str:
    """Return a short list of what was changed.

    >>> summary(State("7", timers=(Timer("a.timer", "enabled", "a.service"),), frozen=("cron.service",)))
    '0 settings, 1 timers, cron.service'
    """
    return ", ".join([f"{len(state.files)} settings, {len(state.timers)} timers", *state.frozen])


def settings() -> Settings:
    """Read what the role wrote; defaults without it."""
    try:
        found = json.loads(SETTINGS.read_text())
    except FileNotFoundError:
        found = {}
    wanted = Wanted(**{name: found[name] for name in Wanted._fields if name in found})
    return Settings(wanted, tuple(found.get("services", ())), tuple(found.get("keep", ())))


def recall() -> State | None:
    """Return what is changed now."""
    try:
        found = json.loads(STATE.read_text())
        return State(
            found["job"],
            tuple(Write(*one) for one in found["files"]),
            tuple(Timer(*one) for one in found["timers"]),
            tuple(found["frozen"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(state: State) -> None:
    """Keep it until the next boot."""
    new = STATE.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(state._asdict(), file)
    new.replace(STATE)


def systemctl(verb: str, *words: str) -> str | None:
    """Return what systemctl prints; None if it took too long. A failure is logged. Without a unit it does nothing."""
    if not any(not word.startswith("--") for word in words):
        return ""
    command = ["systemctl", verb, *words]
    try:
        done = subprocess.run(
            command,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SYSTEMCTL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log(f"systemctl {verb}: {error}")
        return None if isinstance(error, subprocess.TimeoutExpired) else ""
    if done.returncode:
        log(f"systemctl {verb} {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def log(text: str) -> None:
    """Tell the system's log."""
    syslog.openlog("slurmstead-quiet")
    syslog.syslog(text)


def main() -> None:
    """Begin or end."""
    verb, *rest = [*sys.argv[1:], ""]
    job = rest[0] if rest else ""
    if verb not in ("begin", "end") or (job and not job.isdigit()) or (verb == "begin" and not job):
        sys.exit("usage: quiet begin JOB | quiet end [JOB]")
    if job == NO_JOB:
        return
    with open(os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begin(job) if verb == "begin" else end(job)


def _fields(names: Iterable[str]) -> list[str]:
    return [f"--property={name}" for name in names]
