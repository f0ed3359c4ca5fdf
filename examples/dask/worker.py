"""Dask's processes on one node of a job, one for each CPU: python3 worker.py DIRECTORY (see allocation.py)"""

import json
import os
import pathlib
import socket
import sys

HEAD_MEGABYTES = 300
"""Memory of the job's first node that is left to the scheduler and the program."""

SETTINGS = {
    # Pages that would tell everybody on the node how the cluster is doing.
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
    "DASK_LOGGING__DISTRIBUTED": "critical",
}

TLS_ERRORS = pathlib.Path(__file__).with_name("tls_errors.py")


def own_address() -> str:
    """Return this node's address in the cluster's network, which need not be that of its default route."""
    return socket.gethostbyname(os.environ["SLURMD_NODENAME"])


def tls_options(directory: pathlib.Path) -> list[str]:
    """Return the options that make Dask's commands talk to those alone that have the job's key."""
    cert, key = directory / "cert.pem", directory / "key.pem"
    return [f"--tls-ca-file={cert}", f"--tls-cert={cert}", f"--tls-key={key}", f"--preload={TLS_ERRORS}"]


def cpus() -> int:
    """Return how many CPUs of this node are the job's."""
    return min(int(os.environ.get("SLURM_CPUS_PER_TASK", 1)), len(os.sched_getaffinity(0)))


def megabytes() -> int | None:
    """Return how much memory of this node is the job's, in MiB; None if Slurm does not limit it."""
    if whole := int(os.environ.get("SLURM_MEM_PER_NODE", 0)):
        return whole
    each = int(os.environ.get("SLURM_MEM_PER_CPU", 0))
    return each * int(os.environ["SLURM_CPUS_ON_NODE"]) or None


def command(directory: pathlib.Path) -> list[str]:
    """Return the command line of `dask worker`."""
    scheduler = json.loads((directory / "scheduler.json").read_text())
    memory = megabytes()
    if memory and f"//{own_address()}:" in scheduler["address"]:
        memory -= HEAD_MEGABYTES
    limit = f"{memory * 1_000_000 // cpus()}" if memory else "auto"
    return [
        *(sys.executable, "-m", "dask", "worker", scheduler["address"], *tls_options(directory)),
        *(f"--host=tls://{own_address()}", f"--nworkers={cpus()}", "--nthreads=1", f"--memory-limit={limit}"),
        *(f"--local-directory={os.environ.get('TMPDIR', '/tmp')}", "--death-timeout=60"),
        *(f"--preload-nanny={TLS_ERRORS}", "--no-dashboard", "--dashboard-address=127.0.0.1:0"),
    ]


if __name__ == "__main__":
    line = command(pathlib.Path(sys.argv[1]))
    os.execve(line[0], line, {**os.environ, **SETTINGS})
