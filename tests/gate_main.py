"""Makes every mistake in the configuration of this machine, and prints what is said as JSON. It publishes nothing.

Runs on a control node with jobs; see tests/gate_program.py.
"""

from __future__ import annotations

import json
import pathlib
import socket
import sys
from typing import Any

import mistakes

from ansible.module_utils.slurmstead.change import check as change_check
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.daemons import Slurm


def controllers() -> list[str]:
    """Return the process numbers of slurmctld."""
    return sorted(run("pgrep", "-x", "slurmctld")[1].split())


def main() -> None:
    """Print a document with the version, the process numbers before and after, and a result for each mistake."""
    slurm = Slurm()
    version, state, before = slurm.version(), slurm.state(), controllers()
    good = Store(pathlib.Path("/etc/slurm")).seen()
    model = conf_model.read(good["slurm.conf"])
    job = next(job for job in state.jobs if job.state == "RUNNING")
    with socket.create_server(("", 0)) as listener:
        names = {
            "busy": job.nodes[0],
            "missing": "nosuchnode",
            "node": next(iter(model.nodes)),
            "partition": job.partition,
            "taken": str(listener.getsockname()[1]),
        }
        results = [tried(mistake, good, names, version, slurm) for mistake in mistakes.MISTAKES]
        fine = change_check.check(good, good, version, slurm.state(), where(good))
    document = {
        "version": version,
        "before": before,
        "after": controllers(),
        "unchanged": good == Store(pathlib.Path("/etc/slurm")).seen(),
        "good": [str(finding) for finding in fine.mistakes],
        "gate_seconds": fine.gate_seconds,
        "results": [result for result in results if result],
    }
    json.dump(document, sys.stdout)


def where(files: dict[str, str]) -> str:
    """Return the directory of the live state."""
    return conf_model.read(files["slurm.conf"]).value("StateSaveLocation")


def tried(
    mistake: Any, good: dict[str, str], names: dict[str, str], version: str, slurm: Slurm
) -> dict[str, Any] | None:
    """Make one mistake; None where it is none in this version."""
    if mistake.versions and not version.startswith(mistake.versions):
        return None
    verdict = change_check.check(good, mistake.files(good, names), version, slurm.state(), where(good))
    refusals = [str(finding) for finding in verdict.mistakes] or verdict.plan.refusals
    lines = refusals if mistake.refused else [str(finding) for finding in verdict.warnings]
    return {
        "name": mistake.name,
        "refused": bool(refusals),
        "right": bool(refusals) == mistake.refused and any(mistake.expected(names).search(line) for line in lines),
        "lines": lines,
    }


if __name__ == "__main__":
    main()
