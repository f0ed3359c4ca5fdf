"""Ray's processes on one node of a job: python3 node.py HEAD:PORT DASHBOARD_PORT, see allocation.py"""

import os
import pathlib
import socket
import sys

RAY_MEGABYTES = {True: 1200, False: 500}
"""Memory that Ray's own processes take, on the job's first node and on another."""

DIRECTORY = pathlib.Path(f"ray-{os.environ['SLURM_JOB_ID']}").absolute()
"""Where the job's token is, on the share."""

SCRATCH = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "ray"
"""Directory of Ray's own files, on each node."""

PATIENCE = {
    "RAY_NUM_REDIS_GET_RETRIES": "150",
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "300",
    "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": "300",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "300",
}
"""Up to five minutes for each of Ray's processes to start: it waits 40 s for the first node, in which a slow CPU or a
share on a slow disk does not start it."""

# Ray reads them when it is imported, so this module is imported before it.
os.environ.update(PATIENCE, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(DIRECTORY / "token"))


def own_address() -> str:
    """Return this node's address in the cluster's network, which need not be that of its default route."""
    return socket.gethostbyname(os.environ["SLURMD_NODENAME"])


def cpus() -> int:
    """Return how many CPUs of this node are the job's."""
    return min(int(os.environ.get("SLURM_CPUS_PER_TASK", 1)), len(os.sched_getaffinity(0)))


def free_port(address: str) -> int:
    """Return a port that nobody uses now: other jobs on this node can have Ray's usual ones."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def megabytes() -> int:
    """Return how much memory of this node is the job's, in MiB."""
    if whole := int(os.environ.get("SLURM_MEM_PER_NODE", 0)):
        return whole
    if each := int(os.environ.get("SLURM_MEM_PER_CPU", 0)):
        return each * int(os.environ["SLURM_CPUS_ON_NODE"])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def command(head: str, dashboard: str) -> list[str]:
    """Return the command line of `ray start` for this node; the dashboard has a port on the first."""
    address, port = head.split(":")
    first = address == own_address()
    left = max(megabytes() - RAY_MEGABYTES[first], 200) * 2**20
    place = ["--head", f"--port={port}", f"--temp-dir={SCRATCH}"] if first else [f"--address={head}"]
    if first:
        place += ["--include-dashboard=true", f"--dashboard-host={address}", f"--dashboard-port={dashboard}"]
        place += [f"--ray-client-server-port={free_port(address)}"]
    return [
        *(str(pathlib.Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats", *place),
        *(f"--node-ip-address={own_address()}", f"--num-cpus={cpus()}"),
        *(f"--memory={left * 2 // 3}", f"--object-store-memory={left // 3}"),
        *("--min-worker-port=0", "--max-worker-port=0"),
        *(f"--dashboard-agent-listen-port={free_port(own_address())}",),
    ]


if __name__ == "__main__":
    line = command(*sys.argv[1:])
    os.execv(line[0], line)
