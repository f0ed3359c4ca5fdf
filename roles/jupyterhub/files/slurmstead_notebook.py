"""Start the server of a notebook on a port that no other user can have; each job of a notebook gives this to Python."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from typing import Any

HELD_FOR = 6
"""Seconds after the end of the server, in which the hub notices and its proxy forgets the port (`poll_interval`)."""


def announce(port: int) -> None:
    """Tell the hub the port of this notebook."""
    url, token = (os.environ[f"JUPYTERHUB_API_{name}"] for name in ("URL", "TOKEN"))
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{url}/batchspawner", json.dumps({"port": port}).encode(), headers))


def serve(held: socket.socket, command: list[str]) -> None:
    """Run a program of Python, whose server gets the socket instead of one that it would bind to this port."""
    import tornado.netutil

    bind = tornado.netutil.bind_sockets
    port = held.getsockname()[1]

    def bind_sockets(wanted: int, *place: Any, **how: Any) -> list[socket.socket]:
        if wanted != port:
            return list(bind(wanted, *place, **how))
        # Jupyter closes the first one, with which it only asks whether the port is free.
        copy = held.dup()
        copy.setblocking(False)
        copy.listen()
        return [copy]

    tornado.netutil.bind_sockets = bind_sockets
    sys.argv = command
    runpy.run_path(command[0], run_name="__main__")


def main() -> None:
    """Hold a port, start the server, and hold the port until the hub knows that the job has ended."""
    url = urllib.parse.urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    held = socket.socket()
    held.bind((url.hostname, 0))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork():
        os.wait()
        # The hub asks for the job only, also after a server that failed.
        subprocess.run(["scancel", "--quiet", os.environ["SLURM_JOB_ID"]], check=False)
        time.sleep(HELD_FOR)
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    port = held.getsockname()[1]
    os.environ["JUPYTERHUB_SERVICE_URL"] = url._replace(netloc=f"{url.hostname}:{port}").geturl()
    announce(port)
    serve(held, sys.argv[1:])


if __name__ == "__main__":
    main()
