# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Stops a run before its next task if it no longer holds the cluster lock, see reach/cluster_lock.py."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_lease
type: aggregate
short_description: Stop a run that has lost the cluster lock
description:
  - Before a task starts on a machine, checks that the run holds the machine's lease. A machine that did not answer when
    the cluster was locked is locked now. If another run has taken a lock of this run, ends with exit code 4.
"""

import importlib
import os
import pathlib
import time
from typing import Any, NoReturn

import ansible.module_utils
from ansible.plugins.callback import CallbackBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
constants = importlib.import_module("ansible.constants")
lock = importlib.import_module("ansible.module_utils.slurmstead.reach.cluster_lock")

LOADED = "SLURMSTEAD_LEASE_IS_CHECKED"
"""Variable of the environment that shows the action cluster_lock that this plugin is active."""

FRESH = 30.0
"""Seconds for which a machine that did not answer is not tried again."""

ANSWER = 75.0
"""Seconds for a machine to answer; longer than the watcher waits."""

PAUSE = 0.05
FAILED = 4
"""Exit code, as that of a failed task."""


def directory() -> pathlib.Path:
    """Return the directory of the run's leases; ansible-core removes it when the run ends."""
    return pathlib.Path(constants.DEFAULT_LOCAL_TMP) / "cluster-lock"


class CallbackModule(CallbackBase):
    """Is called in the process of ansible-playbook, before the process of a task starts."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "cluster_lease"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.had_any = False
        os.environ[LOADED] = "1"

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """Return if the task may start on the host."""
        leases = self._read()
        if leases is None:
            return
        name = host.get_name()
        if task.delegate_to:
            # Other machines than control are not delegates; this computer needs no lock.
            name = "" if task.delegate_to == "localhost" else next(iter(leases.until), "")
        if name in leases.until and not leases.holds(name, lock.now()):
            self._ask(name)

    def _read(self) -> Any:
        leases = lock.read(directory() / "leases.json")
        if leases is not None:
            if leases.lost:
                self._stop(f"the cluster lock was lost to {leases.lost}")
            self.had_any = self.had_any or any(leases.until.values())
        return leases

    def _ask(self, name: str) -> None:
        """Make the watcher lock a machine. Returns also if the machine does not answer, which Ansible will report."""
        at = lock.now()
        (directory() / "ask.new").write_text(str(at))
        (directory() / "ask.new").replace(directory() / "ask")
        while lock.now() < at + ANSWER:
            leases = self._read()
            if leases.holds(name, lock.now()):
                return
            if leases.tried.get(name, 0.0) > at - FRESH:
                if name in leases.why:
                    self._stop(f"{name} answers but cannot be locked: {leases.why[name]}")
                if self.had_any and not any(leases.holds(other, lock.now()) for other in leases.until):
                    self._stop("no machine answers any more, so the cluster lock cannot be renewed")
                return
            time.sleep(PAUSE)
        self._stop(f"the cluster lock on {name} could not be renewed within {ANSWER:.0f} s")

    def _stop(self, why: str) -> NoReturn:
        """End the run. An exception of another kind would be a warning."""
        self._display.error(f"{why}; this run stopped before its next task. Run the same command again to continue.")
        raise SystemExit(FAILED)
