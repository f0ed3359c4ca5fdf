# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Lets the installed slurmctld load a configuration, in separate namespaces, on a copy of the live state.

It has an isolated network, its own process IDs and mounts, its own state, pid file and log, and no authentication: it
can reach neither the live daemon nor a node, and it ends with the process that started it.
"""

from __future__ import annotations

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf import needs as conf_needs
from ansible.module_utils.slurmstead.conf.finding import Finding
from ansible.module_utils.slurmstead.gate import files as gate_files
from ansible.module_utils.slurmstead.gate import process as gate_process
from ansible.module_utils.slurmstead.gate import verdict as gate_verdict
from ansible.module_utils.slurmstead.slurm import decisions
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm.jobs import State

SECONDS = 60.0
"""Seconds for the whole gate. It takes 0.3 s on a machine that is not emulated."""

PREFIX = "slurmstead-gate-"
PLACE = "/run"
"""In memory, because slurmctld syncs its state to the disk."""

PARTS = (
    *("job_state", "node_state", "part_state", "resv_state"),
    # Without last_tres, slurmctld does not start if slurmdbd is unreachable (_init_tres in src/slurmctld/controller.c).
    *("assoc_mgr_state", "assoc_usage", "last_tres", "qos_usage"),
)
"""State files to copy in addition to `clustername` and `last_config_lite`. Not triggers, because they run programs."""

SPANK = "plugstack.conf"
"""Only slurmd and srun use it; if it includes other files, slurmctld reports errors."""


@dataclass(frozen=True)
class Passage:
    """The result: without findings the configuration may be published."""

    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    queue: State = State(heard=False)
    """The jobs that slurmctld loaded from the state."""
    shown: decisions.Shown = field(default_factory=dict)
    """Its partitions and nodes; empty if it did not start."""


def passage(
    files: Mapping[str, str], version: str, live: State, state_directory: str, seconds: float = SECONDS
) -> Passage:
    """Let slurmctld load a set of files, and return its verdict.

    `files` are all files of slurm.conf's directory, by name. `state_directory` holds the live daemon's state; it need
    not exist. `live` are the jobs that must survive.

    Raises OSError if the gate cannot be built.
    """
    started = time.monotonic()
    _sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=PLACE) as name:
        directory = pathlib.Path(name)
        _furnish(directory, files, pathlib.Path(state_directory))
        with gate_process.slurmctld(directory, files, state_directory) as process:
            found, queue, shown = _watch(process, directory, files, version, started + seconds)
        log = (directory / "log").read_text(errors="replace")
    said = gate_verdict.findings(log, files)
    if found is not None:
        return Passage(tuple([*said] or [found]), (), time.monotonic() - started)
    jobs = gate_verdict.job_findings(log, live, queue)
    return Passage(tuple(jobs), tuple(said), time.monotonic() - started, queue, shown)


def _sweep() -> None:
    """Remove the remains of a gate whose caller was killed."""
    for path in pathlib.Path(PLACE).glob(f"{PREFIX}*"):
        if time.time() - path.stat().st_mtime > 10 * SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _furnish(directory: pathlib.Path, files: Mapping[str, str], live: pathlib.Path) -> None:
    """Write the files and the copy of the state into a directory that only SlurmUser can enter."""
    etc, state = directory / "etc", directory / "state"
    etc.mkdir()
    for name, text in files.items():
        if name == SPANK:
            continue
        own = gate_files.gated(text, str(directory)) if name == "slurm.conf" else text
        (etc / name).write_text(own, errors="surrogateescape")
    state.mkdir(mode=0o700)
    for part in (*PARTS, "clustername", "last_config_lite"):
        _copy(live / part, state / part)
    try:
        owner = pwd.getpwnam(conf_model.read(files.get("slurm.conf", "")).value("SlurmUser", "root")).pw_uid
    except KeyError:
        # slurmctld itself reports this.
        return
    for path in (directory, state, *state.iterdir()):
        os.chown(path, owner, -1)


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a file of the state; slurmctld replaces it by unlink and link, so it can be missing for a moment."""
    for _ in range(5):
        try:
            shutil.copyfile(source, target)
            return
        except FileNotFoundError:
            if not source.parent.is_dir() or not source.with_name(f"{source.name}.old").exists():
                return
            time.sleep(0.05)


def _watch(
    process: subprocess.Popen[bytes], directory: pathlib.Path, files: Mapping[str, str], version: str, until: float
) -> tuple[Finding | None, State, decisions.Shown]:
    """Wait until it answers; return the findings, or its queue.

    Also returns its partitions and nodes. Before 23.11, also rehearses `scontrol reconfigure`, because it can crash
    slurmctld.
    """
    try:
        inside = gate_process.first(process, until)
        while not gate_process.listens(inside, gate_files.port(files)):
            gate_process.pause(process, until, "start")
        asked = ["nsenter", f"--target={inside}", "--net"]
        configuration = str(directory / "etc" / "slurm.conf")
        queue = gate_process.ask(process, [*asked, *slurm_jobs.SQUEUE], configuration, until)
        shown = "".join(gate_process.ask(process, [*asked, *words], configuration, until) for words in decisions.SHOW)
        if not conf_needs.forks(version):
            gate_process.ask(process, [*asked, "scontrol", "reconfigure"], configuration, until)
            queue = gate_process.ask(process, [*asked, *slurm_jobs.SQUEUE], configuration, until)
        return None, slurm_jobs.read_queue(queue), decisions.read(shown)
    except EOFError:
        said = gate_verdict.died_of((directory / "log").read_text(errors="replace"))
        return Finding(f"slurmctld does not start with this configuration and its saved queue: {said}"), State(), {}
    except gate_process.TooLongError as error:
        said = gate_verdict.died_of((directory / "log").read_text(errors="replace"))
        return Finding(f"slurmctld did not {error} in time; its last output: {said}"), State(), {}
