# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Who works on a cluster: a lock on the control node, held for as long as a process on this computer lives.

A watcher here keeps a connection to a holder there, which keeps a lock of flock(2). When the process that is watched
ends, however that may be, the watcher ends, and with it the connection, the holder and the lock. When the network or
this computer fails, the holder misses its heartbeats.
"""

from __future__ import annotations

import pathlib

PATH = pathlib.Path("/run/slurmstead/lock")

HEARTBEAT = 5
"""Seconds."""

SILENCE = 60
"""Seconds without a heartbeat after which the holder gives up."""

HELD = "held"
"""What the holder says when it has the lock; otherwise it prints what the other one wrote of itself."""

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
    """Return what the run that holds this cluster wrote of itself; empty where none does. For the control node."""
    try:
        return PATH.read_text()
    except OSError:
        return ""


def successor(before: str) -> str:
    """Return who holds this cluster after the holder that was there before; empty where nobody does.

    To be asked by what waits on the control node: it outlives an ansible-playbook that is killed.
    """
    now = holder()
    return now if now != before else ""


def answer(said: str, me: str) -> str:
    """Return what the holder said; HELD also where it named this run, a playbook of which took the lock before.

    >>> answer("ann@laptop (process 7) since noon", "ann@laptop (process 7)")
    'held'
    """
    return HELD if said.startswith(f"{me} since ") else said
