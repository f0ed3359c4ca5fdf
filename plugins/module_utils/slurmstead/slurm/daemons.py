# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller of this machine: starting it, and querying it."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm import decisions, users
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm.answers import (
    drains_since,
    read_listpids,
    read_nodes,
    read_partitions,
    read_settings,
    seconds,
)
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

UNIT = "slurmctld.service"
MUNGED = "munge.service"

STAMP = re.compile(r"^\[[^\]]*\] ", re.MULTILINE)
"""Beginning of a line in slurmctld's log (LogTimeFormat)."""


class Service(Protocol):
    """Starts slurmctld. Tests use an implementation without systemd."""

    def restart(self) -> None:
        """Begin to restart or start it; return before it is up."""

    def state(self) -> str:
        """Return running, starting, stopped or failed; after `restart`, the state of the new process."""

    def words(self) -> str:
        """Return its output since `restart`; before one, since this object was made."""

    def outlived_munged(self) -> bool:
        """Say whether munged was started after it.

        If munged does not answer for some minutes, slurmctld (22.05.8) stops polling the nodes, marks them down, and
        does not resume polling. Any process may call this.
        """


def main_process(unit: str) -> int:
    """Return the process ID of a unit's daemon, or 0."""
    _, out, _ = run("systemctl", "show", "--property=MainPID", "--value", unit)
    return int(out.strip() or 0)


class Systemd:
    """slurmctld as a systemd unit; `log` is its SlurmctldLogFile; without one, all its output is in the journal."""

    def __init__(self, log: str = "") -> None:
        self.log = Log(log)
        self.before = ""
        self.since = time.time()

    def _show(self) -> Mapping[str, str]:
        _, out, _ = run("systemctl", "show", "--property=ActiveState,SubState,MainPID,Job,NeedDaemonReload", UNIT)
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    def restart(self) -> None:
        """Begin to restart it without waiting: a hanging unit of type notify would delay a rollback by 90 s."""
        shown = self._show()
        self.before, self.since = shown.get("MainPID", "0"), time.time()
        self.log.mark()
        if shown.get("NeedDaemonReload") == "yes":
            run("systemctl", "daemon-reload", seconds=60)
        run("systemctl", "reset-failed", UNIT)
        run("systemctl", "restart", "--no-block", UNIT)

    def state(self) -> str:
        """Return running, starting, stopped or failed."""
        return state_of(self._show(), self.before)

    def words(self) -> str:
        """Return its lines in the journal and in its log since the restart, or since this object was made."""
        _, out, _ = run("journalctl", "--quiet", "--output=cat", f"--since=@{int(self.since)}", f"--unit={UNIT}")
        return out + self.log.since_mark()

    def outlived_munged(self) -> bool:
        """Say whether both run and munged was started later; compares microseconds since boot."""
        _, out, _ = run("systemctl", "show", "--property=ActiveEnterTimestampMonotonic", "--value", UNIT, MUNGED)
        entered = [int(line) for line in out.split()]
        return len(entered) == 2 and 0 < entered[0] < entered[1]


class Log:
    """The file to which a daemon logs instead of the journal, once it has read its configuration."""

    def __init__(self, path: str, size: int | None = None) -> None:
        """Mark its current end, or where it ended at this size."""
        self.path = path
        self.size = size or 0
        if size is None:
            self.mark()

    def mark(self) -> None:
        """Mark the current end of the file for `since_mark`."""
        with contextlib.suppress(OSError):
            self.size = os.stat(self.path).st_size

    def since_mark(self) -> str:
        """Return the lines written since the mark, without timestamps; after a rotation, all lines of the new file."""
        try:
            with open(self.path, errors="replace") as file:
                if os.fstat(file.fileno()).st_size >= self.size:
                    file.seek(self.size)
                return STAMP.sub("slurmctld: ", file.read())
        except OSError:
            return ""


def state_of(shown: Mapping[str, str], before: str) -> str:
    """Return the state of a unit from its properties; `before` is the main process before a restart, if there was one.

    >>> state_of({"ActiveState": "activating", "SubState": "auto-restart", "Job": "0"}, "7")
    'failed'
    >>> state_of({"ActiveState": "active", "SubState": "running", "MainPID": "7"}, "7")
    'starting'
    """
    active = shown.get("ActiveState")
    if shown.get("Job", "0") not in ("", "0"):
        # This includes a unit that waits for its automatic restart after a failure.
        return "starting"
    if active == "failed" or shown.get("SubState") == "auto-restart":
        return "failed"
    if active in ("active", "reloading"):
        return "starting" if before and shown.get("MainPID") in ("0", before) else "running"
    return "starting" if active in ("activating", "deactivating") else "stopped"


class Slurm:
    """The client commands of Slurm."""

    def version(self) -> str:
        """Return the version of the installed slurmctld, such as 22.05.8; empty if it is not installed."""
        code, out, _ = run("slurmctld", "-V")
        return out.split()[-1] if code == 0 and out.split() else ""

    def answers(self) -> bool:
        """Say whether the controller answers."""
        code, out, _ = run("scontrol", "ping")
        return code == 0 and " is UP" in out

    def state(self) -> State:
        """Return the jobs of the live controller; `heard` is False if it does not answer."""
        code, out, _ = run(*slurm_jobs.SQUEUE)
        return slurm_jobs.read_queue(out) if code == 0 else State(heard=False)

    def find_images(self, state: State) -> State:
        """Return the same jobs, and which of them have images."""
        code, out, _ = run("scontrol", "--oneliner", "--all", "show", "job")
        return slurm_jobs.find_images(state, None if code else out)

    def present(self) -> list[str]:
        """Return the numbers of the jobs that have processes on this node."""
        _, out, _ = run("scontrol", "listpids")
        return read_listpids(out)

    def owners(self) -> dict[str, int]:
        """Return the numeric IDs of users with jobs, by name."""
        _, out, _ = run("squeue", "--all", "--noheader", "--format=%u|%U")
        pairs = (line.strip().partition("|") for line in out.splitlines())
        return {name: int(number) for name, _, number in pairs if number.isdigit()}

    def unknown_users(self) -> list[str]:
        """Return the users of this machine whose jobs slurmctld refuses; see users.unknown."""
        return users.unknown(lambda *command: run(*command, seconds=users.SECONDS)[1], users.local())

    def nodes(self) -> dict[str, dict[str, str]]:
        """Return the fields of each node by name; empty if the controller does not answer. See read_nodes."""
        _, out, _ = run("scontrol", "--oneliner", "--all", "show", "node")
        return read_nodes(out)

    def partitions(self) -> dict[str, str]:
        """Return the state of each partition by name; empty if the controller does not answer."""
        _, out, _ = run("scontrol", "--oneliner", "--all", "show", "partition")
        return read_partitions(out)

    def shown(self) -> decisions.Shown:
        """Return its partitions and nodes with all that can be set at run time; empty if it does not answer."""
        answers = [run(*command) for command in decisions.SHOW]
        if any(code for code, _, _ in answers):
            return {}
        return decisions.read("".join(out for _, out, _ in answers))

    def started_at(self) -> float:
        """Return when slurmctld started (seconds since 1970), or 0. No version reports when it last read its files."""
        return seconds(self.setting("BOOT_TIME"))

    def setting(self, key: str) -> str:
        """Return the controller's value of a configuration key, such as `600 sec`; empty if unknown."""
        _, out, _ = run("scontrol", "show", "config")
        return read_settings(out).get(key, "")

    def log(self, size: int | None = None) -> Log:
        """Return its log; see Log."""
        return Log(self.setting("SlurmctldLogFile"), size)

    def hashes(self) -> str:
        """Return its HASH_VAL, which compares the loaded slurm.conf with the file here, such as `Match`."""
        return self.setting("HASH_VAL")

    def reconfigure(self) -> str:
        """Make all daemons reread the files; return the error, or nothing."""
        code, out, err = run("scontrol", "reconfigure", seconds=30)
        return "" if code == 0 else (err or out).strip() or f"scontrol reconfigure exited with {code}"

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        """Change the state of nodes; to resume them, use `resume`."""
        more = [f"Reason={reason}"] if reason else []
        run("scontrol", "update", f"NodeName={nodes}", f"State={state}", *more)

    def wake(self, names: Iterable[str]) -> None:
        """Power nodes up. One after the other: slurmctld refuses all for one that it cannot power up."""
        for name in names:
            run("scontrol", "update", f"NodeName={name}", "State=POWER_UP")

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Resume nodes that were seen drained; return those that an administrator has drained since.

        These are drained again, for the administrator's reason. Slurm has no condition for a resume, so the same
        scontrol shows the nodes directly before and after: 24.11 keeps the reason then. With 22.05 it is in slurmctld's
        log only, which is read if slurmctld runs on this machine.

        :param seen: their fields, as `nodes` returns them
        """
        names, log = compress(seen), self.log()
        show = f"show node {names}"
        _, out, _ = run("scontrol", "--oneliner", text=f"{show}\nupdate NodeName={names} State=RESUME\n{show}\n")
        drains = drains_since(seen, out, log.since_mark())
        for name, reason in sorted(drains.items()):
            self.update(name, "DRAIN", reason)
        return sorted(drains)

    def reboot(self, node: str, reason: str = "") -> str:
        """Request the reboot of a node after its jobs have ended; return the error, or nothing.

        With a reason, the node accepts no new jobs and is resumed afterwards. Without one its state does not change;
        use that for a node that an administrator drained.
        """
        words = ["ASAP", "nextstate=RESUME", f"reason={reason}"] if reason else []
        code, out, err = run("scontrol", "reboot", *words, node)
        return "" if code == 0 else (err or out).strip() or f"scontrol reboot exited with {code}"

    def cancel_reboot(self, node: str) -> None:
        """Cancel a requested reboot while the node still waits for its jobs."""
        run("scontrol", "cancel_reboot", node)

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Cancel jobs."""
        run("scancel", *(job.task for job in jobs))
