# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The cluster lock: a lock on the control node, held while a process on this computer lives.

A watcher on this computer keeps a connection to a holder on the control node, which holds a lock of flock(2). When the
watched process ends, for whatever reason, the watcher ends, and with it the connection, the holder and the lock. When
the network or this computer fails, the holder receives no heartbeats.
"""

from __future__ import annotations

import pathlib

PATH = pathlib.Path("/run/slurmstead/lock")

HEARTBEAT = 5
"""Seconds."""

SILENCE = 60
"""Seconds without a heartbeat after which the holder releases the lock."""

HELD = "held"
"""The holder's output when it has the lock; otherwise it prints the description of the other run."""

HOLDER = f"""
import fcntl, os, select, sys
path = "{PATH}"
os.makedirs(os.path.dirname(path), exist_ok=True)
with open(path, "a+") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        sys.exit(print(file.read() or "another run"))
    file.truncate(0)
    file.write(sys.argv[1])
    file.flush()
    print({HELD!r}, flush=True)
    while select.select([0], [], [], {SILENCE})[0] and os.read(0, 1024):
        pass
    file.truncate(0)
"""

WATCHER = f"""
import os, subprocess, sys, time
watched, command = int(sys.argv[1]), sys.argv[2:]
with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0) as connection:
    while connection.poll() is None:
        try:
            os.kill(watched, 0)
            for _ in range({HEARTBEAT}):
                time.sleep(1)
                os.kill(watched, 0)
            connection.stdin.write(b".")
        except OSError:
            break
"""


def holder() -> str:
    """Return the description of the run that holds this cluster's lock; empty if none does. For the control node."""
    try:
        return PATH.read_text()
    except OSError:
        return ""


def successor(before: str) -> str:
    """Return the run that has taken over the lock from a given holder; empty if none has.

    For modules that wait on the control node, because they outlive a killed ansible-playbook.
    """
    now = holder()
    return now if now != before else ""


def answer(said: str, me: str) -> str:
    """Return the holder's output; HELD also if it names this run, an earlier playbook of which took the lock.

    >>> answer("ann@laptop (process 7) since noon", "ann@laptop (process 7)")
    'held'
    """
    return HELD if said.startswith(f"{me} since ") else said
