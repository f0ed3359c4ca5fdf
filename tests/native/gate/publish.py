"""Brings a slurm.conf with other keys to this control node, and prints what came of it as JSON.

Its arguments are the keys as JSON, and words: `check` for a dry run, `replace OLD NEW` for another text, `fail` for a
configuration that does not work, `die` for a run that is killed once slurmctld has loaded the files, `jump` for a clock
that jumps instead of a run, `images` for a configuration with images, `meanwhile COMMAND` for what happens before
slurmctld loads the files. See program.py.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

from ansible.module_utils.slurmstead.change import change, clock
from ansible.module_utils.slurmstead.change.change import FailedError, RefusedError, Run
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.daemons import Log, Slurm
from ansible.module_utils.slurmstead.slurm.jobs import State

LOG = "/var/log/slurmctld"
WANTED = pathlib.Path("/root/slurm.conf")
"""What the inventory would say."""


OCI = 'RunTimeRun="exec /sandbox %b %j"\nRunTimeQuery="echo {}"\nRunTimeKill="true"\nRunTimeDelete="true"\n'

NAME = "slurmctld(-wlm)?"
"""See cluster.NAME."""


class Daemon:
    """slurmctld without systemd, as slurm.daemons.Service wants it."""

    def __init__(self) -> None:
        self.log = Log(LOG)

    def restart(self) -> None:
        """Stop it, and start it."""
        self.log.mark()
        run("pkill", "-x", NAME)
        while self.state() == "running":
            pass
        with open(LOG, "ab") as log:
            subprocess.Popen(
                ["slurmctld", "-D"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def state(self) -> str:
        """Return running, or failed."""
        # One that has ended is kept by the program that started it, as a zombie.
        return "running" if run("pgrep", "-x", "--runstates", "R,S,D", NAME)[0] == 0 else "failed"

    def words(self) -> str:
        """Return its log since the restart."""
        return self.log.since_mark()

    def outlived_munged(self) -> bool:
        """Say whether munged was started after it; munged runs elsewhere, and stays."""
        return False


class Failing(Run):
    """A run whose new configuration does not work."""

    def _unhealthy(self, before: State) -> str:
        return "" if self.slurm.setting("KillWait") == "30 sec" else "the test says so"


class Dying(Run):
    """A run that is killed once slurmctld has loaded the new files."""

    def _prove(self, before: State) -> None:
        super()._prove(before) if not self.slurm.answers() else os._exit(0)


class Meanwhile(Run):
    """A run during which something else happens."""

    def _apply(self, *arguments: Any) -> None:
        subprocess.run(["sh", "-euc", sys.argv[-1]], check=True, stdout=subprocess.DEVNULL)
        super()._apply(*arguments)


KINDS = {"fail": Failing, "die": Dying, "meanwhile": Meanwhile}


def main() -> None:
    """Run it on what the inventory would say, with the keys."""
    keys, words = json.loads(sys.argv[1]), sys.argv[2:]
    kind = next((kind for word, kind in KINDS.items() if word in words), Run)
    if kind is Failing:
        change.HEALTHY = change.SLOW = 1
    directory = pathlib.Path("/etc/slurm")
    if not WANTED.exists():
        WANTED.write_text((directory / "slurm.conf").read_text())
    conf = WANTED.read_text()
    for key, value in keys.items():
        conf = f"{key}={value}\n" + re.sub(f"^{key}=.*\n", "", conf, flags=re.MULTILINE)
    if "replace" in words:
        conf = conf.replace(*words[words.index("replace") + 1 :][:2])
    files = {"slurm.conf": conf, "cgroup.conf": (directory / "cgroup.conf").read_text()}
    files["oci.conf"] = OCI if "images" in words else ""
    document = {"error": "", "plan": [], "warnings": []}
    store = Store(directory)
    try:
        if "jump" in words:
            document["warnings"] = clock.restart(Daemon(), Slurm(), store)
        else:
            outcome = kind(files, store, Daemon(), Slurm()).go("check" in words, when_idle=False)
            document.update(plan=outcome.plan, warnings=outcome.warnings)
    except (FailedError, RefusedError) as error:
        document["error"] = str(error)
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main()
