"""Looks at all machines once for each line that it reads, with shorter times. It runs on the control node.

slurmstead-power.service is a new process for each look, which takes longer; nothing but files is kept here either.
"""

from __future__ import annotations

import pathlib
import sys

from ansible.module_utils.slurmstead.power import decide, shutdown, watch
from ansible.module_utils.slurmstead.workers import drains

PLACE = pathlib.Path("/share/power")


def main() -> None:
    """Look again and again; the arguments are times of `decide` in seconds, such as QUIET=2."""
    for word in sys.argv[1:]:
        name, _, value = word.partition("=")
        setattr(decide, name, float(value))
    shutdown.ANSWER = 0.3
    watch.CONFIGURATION, watch.STATE, watch.LOG = PLACE / "power.json", PLACE, PLACE / "power.log"
    drains.FILE = PLACE / "drains.json"
    for _ in sys.stdin:
        watch.main()
        print("looked", flush=True)


if __name__ == "__main__":
    main()
