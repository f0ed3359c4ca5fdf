# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A change on trial: the machine itself takes it back unless it is confirmed in time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ansible.module_utils.slurmstead.reach.commands import run

SECONDS = 90.0
"""Of a command of systemd or nft; systemd itself waits as long for a unit."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """A trial in a directory, whose file `new` exists while it lasts.

    Rollback and confirmation each begin by renaming `new`, so only one of them happens.
    """

    directory: Path
    unit: str
    """name of the systemd timer and service that roll back"""
    restore: str
    """words for sh that restore what was before; they run in the directory"""

    @property
    def new(self) -> Path:
        """The file that exists during a trial."""
        return self.directory / "new"

    @property
    def words(self) -> str:
        """Words for sh that roll back; they fail without a trial."""
        return f"cd {self.directory} && mv new rejected && {self.restore}"

    def arm(self, seconds: int) -> str:
        """Let systemd roll back after that many seconds; return its error, empty without one."""
        later = ("--collect", f"--unit={self.unit}", f"--on-active={seconds}", "--timer-property=AccuracySec=1s")
        code, out, err = run("systemd-run", "--quiet", *later, "sh", "-c", self.words, seconds=SECONDS)
        return (err.strip() or out.strip() or f"systemd-run exited with {code}") if code else ""

    def roll_back(self) -> bool:
        """Roll back now; return whether there was a trial."""
        run("systemctl", "stop", f"{self.unit}.timer")
        code, _, _ = run("sh", "-c", self.words)
        return not code

    def confirm(self) -> Path:
        """End the trial and return the file that was `new`.

        :raises FileNotFoundError: it was rolled back before
        """
        new = self.new.rename(self.directory / "confirmed")
        run("systemctl", "stop", f"{self.unit}.timer")
        return new
