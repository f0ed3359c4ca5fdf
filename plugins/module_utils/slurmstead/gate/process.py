# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""slurmctld in separate namespaces: starts it, monitors it, queries it, and ends it with all its child processes."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.gate import files as gate_files

SLURMCTLD = "/usr/sbin/slurmctld"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# Job scripts are mounted read-only from their place. The shell must not exec: as the first process of its
# namespace it ends all others with it, and unlike slurmctld it keeps the signal at its parent's death when it changes
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


class TooLongError(Exception):
    """The deadline passed; the text says during what."""


@contextlib.contextmanager
def slurmctld(directory: pathlib.Path, files: Mapping[str, str], live: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run it during the block; it also ends with this process."""
    # glibc resolves names only if there is an address other than loopback's.
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
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End all processes. When a namespace's first process ends, the kernel ends the others, before unshare notices."""
    children = _children(process)
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    if not children:
        process.kill()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _children(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the child process of unshare. Some boards' kernels cannot list children (CONFIG_PROC_CHILDREN)."""
    found = []
    # A pattern with a file in it fails in Python 3.11 when a process ends at that moment.
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # proc(5): the name, in parentheses, may contain any byte; then follow state and parent.
            if (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == str(process.pid):
                found.append(int(path.name))
    return found


def _addresses(files: Mapping[str, str]) -> list[str]:
    named = gate_files.addresses(files)
    if not named:
        host = conf_model.read(files.get("slurm.conf", "")).value("SlurmctldHost").partition(",")[0]
        with contextlib.suppress(OSError):
            named = [socket.gethostbyname(host)]
    return named


def pause(process: subprocess.Popen[bytes], until: float, what: str) -> None:
    """Wait a little. Raises EOFError when slurmctld has ended."""
    if process.poll() is not None:
        raise EOFError
    if time.monotonic() > until:
        raise TooLongError(what)
    time.sleep(0.02)


def first(process: subprocess.Popen[bytes], until: float) -> int:
    """Return the ID of the process in the namespaces that becomes slurmctld."""
    while not (children := _children(process)):
        pause(process, until, "start")
    return children[0]


def listens(pid: int, port: int) -> bool:
    """Say whether a process's network has a listener on a port. proc(5): state 0A of /proc/net/tcp listens."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def ask(process: subprocess.Popen[bytes], command: list[str], configuration: str, until: float) -> str:
    """Return the output of a client of the gated slurmctld; without an answer, try again.

    A client would wait for a slurmctld that has ended, so both are monitored.
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
                    pause(process, until, "answer")
            finally:
                client.kill()
                client.wait()
            if client.returncode == 0:
                output.seek(0)
                return output.read()
        pause(process, until, "answer")
