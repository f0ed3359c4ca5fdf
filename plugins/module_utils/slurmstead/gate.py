# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Has the installed slurmctld load a configuration, in namespaces of its own, on a copy of the live state.

It has a network that leads nowhere, process numbers and mounts of its own, its own state, pid file and log, and no
authentication: it can reach neither the live daemon nor a node, and it ends with whoever started it.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible.module_utils.slurmstead import conf_model, conf_needs, gate_files, gate_verdict, slurm_jobs
from ansible.module_utils.slurmstead.conf_finding import Finding
from ansible.module_utils.slurmstead.slurm_jobs import State

SLURMCTLD = "/usr/sbin/slurmctld"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

SECONDS = 60.0
"""For everything. It takes 0.3 s where nothing is emulated."""

PLACE = "/run"
"""In memory: slurmctld writes its state as if for ever."""

PARTS = ("job_state", "node_state", "part_state", "resv_state", "assoc_mgr_state", "assoc_usage", "qos_usage")
"""Files of the state that are copied beside `clustername` and `last_config_lite`. Not triggers: they run programs."""

SPANK = "plugstack.conf"
"""slurmd and srun act on it; what it includes, slurmctld complains of."""

# The scripts of jobs are read where they are, and cannot be written. The shell stays: as the first process of its
# namespace it takes all others with it, and unlike slurmctld it keeps the signal at its parent's death when it changes
# its user (prctl(2), PR_SET_PDEATHSIG).
START = """
set -e
ip link set lo up
for address in $ADDRESSES; do ip address add "$address" dev lo 2>/dev/null || true; done
for scripts in "$LIVE"/hash.*; do
    [ -d "$scripts" ] || continue
    mkdir -p "$GATE/state/${scripts##*/}"
    mount --bind "$scripts" "$GATE/state/${scripts##*/}"
    mount -o remount,bind,ro "$GATE/state/${scripts##*/}"
done
"$SLURMCTLD" -D -f "$GATE/etc/slurm.conf"
exit $?
"""


@dataclass(frozen=True)
class Passage:
    """How it went: with no findings the configuration may be published."""

    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    seconds: float = 0.0


class _TooLongError(Exception):
    """The deadline passed; the text says in what."""


def passage(
    files: Mapping[str, str], version: str, live: State, state_directory: str, seconds: float = SECONDS
) -> Passage:
    """Let slurmctld load a set of files, and say what it thinks of them.

    `files` are all files of the directory of slurm.conf by name. `state_directory` is where the live daemon's state is;
    it need not exist. `live` are the jobs that must still be there.

    Raises OSError where the gate cannot be built.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="slurmstead-gate-", dir=PLACE) as name:
        directory = pathlib.Path(name)
        _furnish(directory, files, pathlib.Path(state_directory))
        with _slurmctld(directory, files, state_directory) as process:
            found, queue = _watch(process, directory, files, version, started + seconds)
        log = (directory / "log").read_text(errors="replace")
    said = gate_verdict.findings(log, files)
    if found is not None:
        return Passage(tuple([*said] or [found]), (), time.monotonic() - started)
    jobs = gate_verdict.job_findings(log, live, queue)
    return Passage(tuple(jobs), tuple(said), time.monotonic() - started)


def _furnish(directory: pathlib.Path, files: Mapping[str, str], live: pathlib.Path) -> None:
    """Put the files and the copy of the state in place, for the user that slurmctld becomes."""
    directory.chmod(0o755)
    etc, state = directory / "etc", directory / "state"
    etc.mkdir()
    for name, text in files.items():
        if name == SPANK:
            continue
        (etc / name).write_text(gate_files.gated(text, str(directory)) if name == "slurm.conf" else text)
    state.mkdir(mode=0o700)
    for part in (*PARTS, "clustername", "last_config_lite"):
        _copy(live / part, state / part)
    try:
        owner = pwd.getpwnam(conf_model.read(files.get("slurm.conf", "")).value("SlurmUser", "root")).pw_uid
    except KeyError:
        # slurmctld says so itself.
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


@contextlib.contextmanager
def _slurmctld(directory: pathlib.Path, files: Mapping[str, str], live: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run it; it ends with the block, and with this process."""
    # glibc resolves names only where there is an address that is not the loopback's.
    own = ["192.0.2.1/32", *(f"{address}/{128 if ':' in address else 32}" for address in _addresses(files))]
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
    environment = {
        **{"PATH": PATH, "LC_ALL": "C", "SLURMCTLD": SLURMCTLD},
        **{"ADDRESSES": " ".join(own), "LIVE": live, "GATE": str(directory)},
    }
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--mount-proc", "sh", "-c", START],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=directory,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _addresses(files: Mapping[str, str]) -> list[str]:
    named = gate_files.addresses(files)
    if not named:
        host = conf_model.read(files.get("slurm.conf", "")).value("SlurmctldHost").partition(",")[0]
        with contextlib.suppress(OSError):
            named = [socket.gethostbyname(host)]
    return named


def _watch(
    process: subprocess.Popen[bytes], directory: pathlib.Path, files: Mapping[str, str], version: str, until: float
) -> tuple[Finding | None, State]:
    """Wait until it answers; return what is wrong, or its queue.

    Before 23.11, what the workers are told with is rehearsed as well: a reconfigure can end slurmctld.
    """
    try:
        inside = _child(process, until)
        while not _listens(inside, gate_files.port(files)):
            _pause(process, until, "start")
        asked = ["nsenter", f"--target={inside}", "--net"]
        configuration = str(directory / "etc" / "slurm.conf")
        queue = _ask(process, [*asked, *slurm_jobs.SQUEUE], configuration, until)
        if not conf_needs.forks(version):
            _ask(process, [*asked, "scontrol", "reconfigure"], configuration, until)
            queue = _ask(process, [*asked, *slurm_jobs.SQUEUE], configuration, until)
        return None, slurm_jobs.read_queue(queue)
    except EOFError:
        said = gate_verdict.died_of((directory / "log").read_text(errors="replace"))
        return Finding(f"slurmctld does not start with it: {said}"), State()
    except _TooLongError as error:
        said = gate_verdict.died_of((directory / "log").read_text(errors="replace"))
        return Finding(f"slurmctld did not {error} in time; it last said: {said}"), State()


def _pause(process: subprocess.Popen[bytes], until: float, what: str) -> None:
    """Wait a little. Raises EOFError when slurmctld has ended."""
    if process.poll() is not None:
        raise EOFError
    if time.monotonic() > until:
        raise _TooLongError(what)
    time.sleep(0.02)


def _child(process: subprocess.Popen[bytes], until: float) -> int:
    """Return the number of the process in the namespaces, which becomes slurmctld."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while True:
        with contextlib.suppress(OSError):
            numbers = children.read_text().split()
            if numbers:
                return int(numbers[0])
        _pause(process, until, "start")


def _listens(pid: int, port: int) -> bool:
    """Say whether a process's network has a listener on a port. proc(5): state 0A of /proc/net/tcp listens."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def _ask(process: subprocess.Popen[bytes], command: list[str], configuration: str, until: float) -> str:
    """Return what a client of the gated slurmctld prints; one that is not answered is asked again.

    A client waits for a slurmctld that has ended, so that both are looked at.
    """
    while True:
        with tempfile.TemporaryFile("w+") as output:
            client = subprocess.Popen(
                command,
                env={"PATH": PATH, "LC_ALL": "C", "SLURM_CONF": configuration},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
            )
            try:
                while client.poll() is None:
                    _pause(process, until, "answer")
            finally:
                client.kill()
                client.wait()
            if client.returncode == 0:
                output.seek(0)
                return output.read()
        _pause(process, until, "answer")
