"""Begins or ends a command for the machines that sleep, as the module power_missed does. It runs on control."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys

from ansible.module_utils.slurmstead.power import missed, shutdown
from ansible.module_utils.slurmstead.workers import drains

PLACE = pathlib.Path("/share/power")


def main() -> None:
    """The arguments: begin, wake or done; the command; names of workers."""
    shutdown.ANSWER, missed.PAUSE = 0.3, 0.3
    missed.FILE, drains.FILE = PLACE / "missed.json", PLACE / "drains.json"
    state, operation, *names = sys.argv[1:]
    sleepers = missed.Sleepers(names, operation, drains.Remembering())
    found = sleepers.done(False) if state == "done" else sleepers.begin(state == "wake", 60, False)
    print(json.dumps(dataclasses.asdict(found)))


if __name__ == "__main__":
    main()
