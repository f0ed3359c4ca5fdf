"""Makes one mistake in the configuration of this machine, and prints what is said as JSON. It publishes nothing.

Runs on a control node with jobs; its argument is the name of the mistake, or empty for none. See program.py.
"""

from __future__ import annotations

import json
import pathlib
import socket
import sys

import mistakes

from ansible.module_utils.slurmstead.change import check as change_check
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.slurm.daemons import Slurm


def main() -> None:
    """Print whether it is refused, the lines that say why, and the pattern that one of them has to match."""
    slurm, store = Slurm(), Store(pathlib.Path("/etc/slurm"))
    state, good = slurm.state(), store.seen()
    model = conf_model.read(good["slurm.conf"])
    job = next(job for job in state.jobs if job.state == "RUNNING")
    chosen = [mistake for mistake in mistakes.MISTAKES if mistake.name == sys.argv[1]]
    with socket.create_server(("", 0)) as listener:
        names = {
            "busy": job.nodes[0],
            "missing": "nosuchnode",
            "node": next(iter(model.nodes)),
            "partition": job.partition,
            "taken": str(listener.getsockname()[1]),
        }
        files = chosen[0].files(good, names) if chosen else good
        verdict = change_check.check(good, files, slurm.version(), state, model.value("StateSaveLocation"))
    refusals = [str(finding) for finding in verdict.mistakes] or verdict.plan.refusals
    document = {
        "refusals": refusals,
        "warnings": [str(finding) for finding in verdict.warnings],
        "expected": chosen[0].expected(names).pattern if chosen else "",
        "unchanged": good == store.seen(),
    }
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main()
