# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Steps common to starting a virtual machine and starting a container."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator


class MachineError(Exception):
    """A machine that could not be started; the text says why."""


def run(*command: str, cwd: pathlib.Path | None = None, timeout: float = 60) -> str:
    """Run a command and return its output.

    :raises MachineError: it failed; the text is its error output
    """
    done = subprocess.run(command, cwd=cwd, timeout=timeout, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise MachineError(f"{command[0]} failed ({done.returncode}): {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[None]:
    """Hold a lock that ends with this process, however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def process_of(pid_file: pathlib.Path) -> int | None:
    """Return the process ID in a pid file, if that process is still the one started with this file or its directory."""
    try:
        pid = int(pid_file.read_text())
        arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if {str(pid_file).encode(), str(pid_file.parent).encode()} & {*arguments} else None


def end_process(pid: int, seconds: float = 10) -> None:
    """End a process and wait until it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + seconds
    while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def free_port() -> int:
    """Return a TCP port of loopback on which no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def make_lab_key(directory: pathlib.Path) -> pathlib.Path:
    """Create the login key for all machines of a lab, unless it exists; return its path."""
    key = directory / "key"
    with locked(directory / "key.lock"):
        if not key.exists():
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "slurmstead-lab", "-f", str(key))
    return key


def make_host_key(home: pathlib.Path, name: str) -> str:
    """Create a machine's host key and a `known_hosts` file with it; return the private key."""
    host_key = home / "host_key"
    host_key.unlink(missing_ok=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(host_key))
    public = host_key.with_suffix(".pub").read_text().split()
    (home / "known_hosts").write_text(f"{name} {public[0]} {public[1]}\n")
    return host_key.read_text()
