"""A worker that leaves a lab and comes back, and the others, which are left alone."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

FIREWALL = "/etc/slurmstead/firewall.nft"

STARTS = "systemctl show --property=Id,InvocationID munge slurmd chrony"
"""Not their processes: when slurmd of 24.11 loads a configuration, it replaces its own, and jobs go on."""

BUSY = ("allocated", "mixed")
"""States of a worker with a job on some of its CPUs: slurmctld counts these some time after it took the worker back."""


class Others:
    """The workers that an operation on one of them has to leave alone."""

    def __init__(self, lab: Any, chosen: str) -> None:
        self.lab = lab
        self.names = [name for name in lab.workers if name != chosen]
        self.before = self._seen()

    def _seen(self) -> dict[str, Any]:
        """Return what each has in /etc and /usr/local, and the starts of its daemons."""
        starts = self.lab.everywhere(lambda name: self.lab.root(name, STARTS), self.names)
        trees = self.lab.everywhere(self.lab.tree, self.names)
        # Every machine has to know from which addresses it accepts packets.
        return {n: ({path: tree[path] for path in tree if path != FIREWALL}, starts[n]) for n, tree in trees.items()}

    def assert_untouched(self) -> None:
        """Files and daemons are as before."""
        assert self._seen() == self.before


class KnownHosts:
    """The file that holds the host key of a machine of the lab."""

    def __init__(self, lab: Any, name: str) -> None:
        self.path = pathlib.Path(lab.directory / name / "known_hosts")
        self.text = self.path.read_text()

    def forget(self) -> None:
        """Know nothing of the machine."""
        self.path.write_text("")

    def restore(self) -> None:
        """Know the machine by the key that it had when this began."""
        self.path.write_text(self.text)


def fingerprint(lab: Any, name: str) -> str:
    """Return the fingerprint of the host key that a machine was made with."""
    command = ["ssh-keygen", "-l", "-f", str(lab.directory / name / "host_key.pub")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1]
